// Texts by language: a folder with a file for each (`de.json`), and a folder of the server's own
// whose files add a language or replace single texts. Read once at the start, for the chat widget
// and for the dashboard.
import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const FILE = /^([a-z]{2,3}(?:-[a-z0-9]+)*)\.json$/;

function readFolder<Schema extends TSchema>(
  folder: string, schema: Schema,
): [language: string, texts: Static<Schema>][] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    const language = FILE.exec(name.toLowerCase())?.[1];
    if (language === undefined) return [];
    const file = join(folder, name);
    const texts: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (!Value.Check(schema, texts)) throw new Error(`${file} is no object of texts`);
    return [[language, texts]];
  });
}

/** Files of a later folder add to those of an earlier one, text by text. */
export function readLanguages<Schema extends TSchema>(
  folders: string[], schema: Schema,
): Map<string, Static<Schema>> {
  const files = new Map<string, Static<Schema>>();
  for (const [language, texts] of folders.flatMap((folder) => readFolder(folder, schema))) {
    files.set(language, Object.assign({}, files.get(language), texts) as Static<Schema>);
  }
  return files;
}

/** `pt-BR` is also met by `pt`. */
export function spellingsOf(wish: string): string[] {
  const whole = wish.toLowerCase().replaceAll("_", "-");
  const [first = ""] = whole.split("-");
  return first === whole ? [whole] : [whole, first];
}
