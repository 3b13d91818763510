// The languages the dashboard can be read in; the choice is kept in this browser. The server
// decides which texts it sends (../../dashboard-texts.ts), so that a choice reloads the page.
import { LANGUAGE, LANGUAGES } from "./texts.ts";

const YEAR_S = 365 * 24 * 3600;

/** As its own speakers call it. */
function nameOf(language: string): string {
  const name = new Intl.DisplayNames(language, { type: "language" }).of(language) ?? language;
  return name.charAt(0).toLocaleUpperCase(language) + name.slice(1);
}

function choose(language: string): void {
  document.cookie = `parley-language=${language}; path=/; max-age=${YEAR_S}; SameSite=Lax`;
  location.reload();
}

export function Languages() {
  return (
    <select
      class="languages" aria-label="Language" value={LANGUAGE}
      onChange={({ currentTarget }) => choose(currentTarget.value)}
    >
      {LANGUAGES.map((language) => (
        <option key={language} value={language} lang={language}>{nameOf(language)}</option>
      ))}
    </select>
  );
}
