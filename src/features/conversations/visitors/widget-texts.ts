// The chat widget's texts by language: the shipped files of data/widget-texts, those of a folder of
// the server's own that add to them or override them, and an assistant's own wording of single
// texts. Used by widget-routes.ts.
import { Type } from "@sinclair/typebox";
import { readLanguages, spellingsOf } from "#core/language-files.ts";

type Texts = Record<string, string>;

export interface WidgetTexts {
  /** The first requested language that has texts, or else English. */
  choose(wishes: (string | undefined)[], own: Record<string, Texts>): {
    language: string; texts: Texts;
  };
}

const DEFAULT = "en";
const Words = Type.Record(Type.String(), Type.String());

/** `folders`: the shipped one first; later folders override it text by text. */
export function loadWidgetTexts(folders: string[]): WidgetTexts {
  const { names, textsOf } = readLanguages(folders, Words);
  return {
    choose: (wishes, given) => {
      const own = new Map(
        Object.entries(given).map(([name, texts]) => [name.toLowerCase(), texts]));
      const language = wishes.flatMap((wish) => (wish ? spellingsOf(wish) : []))
        .find((one) => names.has(one) || own.has(one)) ?? DEFAULT;
      const texts: Texts = { ...textsOf(DEFAULT) };
      for (const one of spellingsOf(language).reverse()) {
        Object.assign(texts, textsOf(one), own.get(one));
      }
      return { language, texts };
    },
  };
}
