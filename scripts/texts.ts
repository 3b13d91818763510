// Lists the dashboard's texts and what the catalogs of its languages lack (`npm run texts`).
//   npm run texts                     missing and unused texts, by language
//   npm run texts -- missing de       the missing texts as JSON, to be translated
//   npm run texts -- add de FILE      puts a JSON of translations into the catalog
//   npm run texts -- tidy             removes unused texts
import { globSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { CODES, SENTENCES, wordsOf } from "#ui/codes.ts";
import { hasTexts, translatable } from "#ui/translatable.ts";

const ROOT = join(import.meta.dirname, "..");
const CATALOGS = join(ROOT, "data/dashboard-texts");

type Catalog = Record<string, string | Record<string, string>>;
/** Keys with the file they are first found in and, for counted texts, the singular form. */
type Keys = Map<string, { file: string; one: string | null }>;

export function keysOfDashboard(): Keys {
  const keys: Keys = new Map();
  for (const file of globSync("src/ui/dashboard/**/*.{ts,tsx}", { cwd: ROOT }).sort()) {
    const path = join(ROOT, file);
    if (!hasTexts(path)) continue;
    for (const [text, one] of translatable(readFileSync(path, "utf8"), path).texts) {
      if (!keys.has(text)) keys.set(text, { file, one });
    }
  }
  for (const code of CODES) {
    const text = wordsOf(code);
    if (!keys.has(text)) keys.set(text, { file: "src/ui/codes.ts", one: null });
  }
  for (const text of SENTENCES) {
    if (!keys.has(text)) keys.set(text, { file: "src/ui/codes.ts", one: null });
  }
  return keys;
}

export const readCatalog = (language: string): Catalog =>
  JSON.parse(readFileSync(join(CATALOGS, `${language}.json`), "utf8")) as Catalog;

export const languages = (): string[] =>
  readdirSync(CATALOGS).map((name) => basename(name, ".json")).sort();

const placesIn = (text: string): string =>
  [...new Set(text.match(/\{\w+\}/g) ?? [])].sort().join(" ");

/** The singular may leave the number out: "a call". */
function isWrong(
  language: string, key: string, text: Catalog[string], isCounted: boolean,
): boolean {
  if (isCounted !== (typeof text === "object")) return true;
  if (typeof text === "string") return text.trim() === "" || placesIn(text) !== placesIn(key);
  const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions();
  return typeof text.other !== "string" || placesIn(text.other) !== placesIn(key) ||
    Object.entries(text).some(([category, form]) =>
      form.trim() === "" || !pluralCategories.includes(category as Intl.LDMLPluralRule));
}

export function problemsOf(language: string, catalog: Catalog, keys = keysOfDashboard()) {
  return {
    missing: [...keys.keys()].filter((key) => !Object.hasOwn(catalog, key)),
    stale: Object.keys(catalog).filter((key) => !keys.has(key)),
    wrong: Object.entries(catalog)
      .filter(([key, text]) =>
        keys.has(key) && isWrong(language, key, text, keys.get(key)?.one !== null))
      .map(([key]) => key),
  };
}

function write(language: string, catalog: Catalog): void {
  const sorted = Object.fromEntries(Object.entries(catalog).sort(([one], [other]) =>
    (one < other ? -1 : 1)));
  writeFileSync(join(CATALOGS, `${language}.json`), `${JSON.stringify(sorted, null, 2)}\n`);
}

function missingOf(language: string): Catalog {
  const keys = keysOfDashboard();
  return Object.fromEntries(problemsOf(language, readCatalog(language), keys).missing.map((key) => {
    const one = keys.get(key)?.one ?? null;
    return [key, one === null ? key : { one, other: key }];
  }));
}

function report(): void {
  const keys = keysOfDashboard();
  console.log(`${keys.size} texts`);
  for (const language of languages()) {
    const found = problemsOf(language, readCatalog(language), keys);
    for (const [kind, texts] of Object.entries(found)) {
      console.log(`${language}: ${texts.length} ${kind}`);
      for (const key of texts) console.log(`  ${JSON.stringify(key)}  ${keys.get(key)?.file ?? ""}`);
    }
  }
}

function tidy(): void {
  const keys = keysOfDashboard();
  for (const language of languages()) {
    write(language, Object.fromEntries(
      Object.entries(readCatalog(language)).filter(([key]) => keys.has(key))));
  }
}

if (import.meta.main) {
  const [command = "report", language = "", file = ""] = process.argv.slice(2);
  if (["missing", "add"].includes(command) && !languages().includes(language)) {
    console.error(`There are texts in ${languages().join(", ")}: for another language, begin with `
      + "data/dashboard-texts/CODE.json, a file of {}.");
    process.exitCode = 64;
  } else if (command === "missing") console.log(JSON.stringify(missingOf(language), null, 2));
  else if (command === "add") {
    const added = JSON.parse(readFileSync(file, "utf8")) as Catalog;
    write(language, { ...readCatalog(language), ...added });
  } else if (command === "tidy") tidy();
  else report();
}
