// The languages the dashboard can be read in; the choice is kept in this browser. The server
// decides which texts it sends (../../dashboard-texts.ts), so that a choice reloads the page.
import { LANGUAGE, LANGUAGES, LOCALE } from "./texts.ts";

const YEAR_S = 365 * 24 * 3600;

/** Many languages write such names in small letters, but not at the beginning of a line. */
export function languageName(language: string, locale = LOCALE): string {
  try {
    const name = new Intl.DisplayNames(locale, { type: "language" }).of(language) ?? language;
    return name.charAt(0).toLocaleUpperCase(locale) + name.slice(1);
  } catch {
    // An invalid code has no name.
    return language;
  }
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
        <option key={language} value={language} lang={language}>
          {languageName(language, language)}
        </option>
      ))}
    </select>
  );
}
