// The words of the chat widget by language: the shipped files of data/widget-texts, each beside it
// or in place of it from a folder of the server's own, and what an assistant puts in place of
// single ones. Read once at the start; asked by widget-routes.ts.
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

type Texts = Record<string, string>;

export interface WidgetTexts {
  /** The first wish there are words for; English where there are for none. */
  choose(wishes: (string | undefined)[], own: Record<string, Texts>): {
    language: string; texts: Texts;
  };
}

const DEFAULT = "en";
const FILE = /^([a-z]{2,3}(?:-[a-z0-9]+)*)\.json$/;
const Words = Type.Record(Type.String(), Type.String());

function readFolder(folder: string): [language: string, Texts][] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    const language = FILE.exec(name.toLowerCase())?.[1];
    if (language === undefined) return [];
    const file = join(folder, name);
    const texts: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (!Value.Check(Words, texts)) throw new Error(`${file} is no object of texts`);
    return [[language, texts]];
  });
}

/** `pt-BR` is also met by `pt`. */
function spellings(wish: string): string[] {
  const whole = wish.toLowerCase().replaceAll("_", "-");
  const [first = ""] = whole.split("-");
  return first === whole ? [whole] : [whole, first];
}

/** Files of a later folder add to those of an earlier one, text by text. */
export function loadWidgetTexts(folders: string[]): WidgetTexts {
  const files = new Map<string, Texts>();
  for (const [language, texts] of folders.flatMap(readFolder)) {
    files.set(language, { ...files.get(language), ...texts });
  }
  return {
    choose: (wishes, given) => {
      const own = new Map(
        Object.entries(given).map(([name, texts]) => [name.toLowerCase(), texts]));
      const language = wishes.flatMap((wish) => (wish ? spellings(wish) : []))
        .find((one) => files.has(one) || own.has(one)) ?? DEFAULT;
      const texts: Texts = { ...files.get(DEFAULT) };
      for (const one of spellings(language).reverse()) {
        Object.assign(texts, files.get(one), own.get(one));
      }
      return { language, texts };
    },
  };
}
