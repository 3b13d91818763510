// Texts by language: a folder with a file for each (`de.json`), and a folder of the server's own
// whose files add a language or replace single texts, for the chat widget and for the dashboard.
import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readText } from "./disk.ts";
import { MisconfiguredStart } from "./faults.ts";

const FILE = /^([a-z]{2,3}(?:-[a-z0-9]+)*)\.json$/;

interface Languages<Texts> {
  names: ReadonlySet<string>;
  /** Null: there is no file for this language. */
  textsOf(language: string): Texts | null;
}

/** Paths by language. */
function filesOf(folder: string): Map<string, string> {
  if (!existsSync(folder)) return new Map();
  return new Map(readdirSync(folder).flatMap((name) => {
    const language = FILE.exec(name.toLowerCase())?.[1];
    return language === undefined ? [] : [[language, join(folder, name)]];
  }));
}

function parsed(file: string): unknown {
  try {
    return JSON.parse(readText(file));
  } catch (error) {
    throw new MisconfiguredStart(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function readTexts<Schema extends TSchema>(file: string, schema: Schema): Static<Schema> {
  const texts = parsed(file);
  if (!Value.Check(schema, texts)) throw new MisconfiguredStart(`${file} must be a JSON object of texts`);
  return texts;
}

/**
 * The first folder ships with the program; a language in it is read when it is first requested.
 * The server's own files are read at once, so that a mistake in one is reported at the start; those
 * of a later folder override those of an earlier one, text by text.
 */
export function readLanguages<Schema extends TSchema>(
  [folder = "", ...folders]: string[], schema: Schema,
): Languages<Static<Schema>> {
  const shipped = filesOf(folder);
  const own = new Map<string, Static<Schema>>();
  for (const [language, file] of folders.flatMap((one) => [...filesOf(one)])) {
    const texts = Object.assign({}, own.get(language), readTexts(file, schema));
    own.set(language, texts as Static<Schema>);
  }
  const read = new Map<string, Static<Schema>>();
  return {
    names: new Set([...shipped.keys(), ...own.keys()]),
    textsOf: (language) => {
      const file = shipped.get(language);
      if (file === undefined) return own.get(language) ?? null;
      const texts = read.get(language)
        ?? Object.assign(readTexts(file, schema) as object, own.get(language)) as Static<Schema>;
      read.set(language, texts);
      return texts;
    },
  };
}

/** `pt-BR` also matches `pt`. */
export function spellingsOf(wish: string): string[] {
  const whole = wish.toLowerCase().replaceAll("_", "-");
  const [first = ""] = whole.split("-");
  return first === whole ? [whole] : [whole, first];
}
