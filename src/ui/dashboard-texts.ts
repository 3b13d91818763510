// The texts of the dashboard in the reader's language, as a script that runs before it. In English
// it has no texts, but the list of languages. Mounted by app/mount.ts.
import { Type } from "@sinclair/typebox";
import { readLanguages, spellingsOf } from "#core/language-files.ts";
import { COMMAND } from "#core/command.ts";
import { assetOf, assetReply, type Asset } from "#http/asset.ts";
import type { HttpRequest } from "#http/exchange.ts";
import type { HttpServer } from "#http/server.ts";
import { PAGE_HEADERS } from "./pages.ts";

/** The language of the sources. */
const ENGLISH = "en";
/** Set by dashboard/kit/languages.tsx. */
const CHOSEN = /(?:^|[;,])\s*parley-language=([\w-]{2,35})/;
/** Browsers send only a few languages; the rest of a longer list is ignored. */
const WISHES_MAX = 20;

const Texts = Type.Record(
  Type.String(), Type.Union([Type.String(), Type.Record(Type.String(), Type.String())]));

/** The chosen language first, then the browser's, which are in the reader's order of preference. */
function wishesOf({ headers }: HttpRequest): string[] {
  const [, chosen] = CHOSEN.exec(headers.cookie ?? "") ?? [];
  const asked = (headers["accept-language"] ?? "").split(",", WISHES_MAX)
    .map((wish) => (wish.split(";")[0] ?? "").trim());
  return [chosen ?? "", ...asked].flatMap(spellingsOf);
}

/** `folders`: what is shipped, then those that add to it, text by text. */
export function mountDashboardTexts(server: HttpServer, folders: string[]): void {
  const { names, textsOf } = readLanguages(folders, Texts);
  const languages = [...new Set([ENGLISH, ...names])].sort();
  const scripts = new Map<string, Asset>();
  const scriptOf = (language: string): Asset => {
    const made = scripts.get(language);
    if (made) return made;
    const [, own = language] = spellingsOf(language);
    // `de-at` takes the texts that it lacks from `de`.
    const texts = { ...textsOf(own), ...textsOf(language) };
    const script = assetOf(`globalThis.parleyTexts = ${JSON.stringify({
      language, languages, texts, command: COMMAND,
    })};\n`);
    scripts.set(language, script);
    return script;
  };
  server.route({
    method: "GET", pattern: "/dashboard/texts.js", bodyBytesMax: 0,
    handle: (http) => {
      const language = wishesOf(http).find((wish) => languages.includes(wish)) ?? ENGLISH;
      const reply = assetReply(
        scriptOf(language), "text/javascript; charset=utf-8", http, PAGE_HEADERS);
      return {
        ...reply,
        headers: { ...reply.headers, Vary: "Accept-Encoding, Accept-Language, Cookie" },
      };
    },
  });
}
