// Searches conversations by the words of their messages and by the visitor's identity. Called by
// the inbox and the list of conversations.
import { LIMITS } from "#core/limits.ts";
import type { SearchIndex } from "./search.ts";
import type { Reader } from "#storage/sql.ts";
import type { messageSearchCommands } from "./message-search.ts";
import type { WriterOf } from "#storage/writer.ts";

/** A LIKE pattern that finds the text anywhere; NUL is replaced, as it would end the pattern. */
export const patternOf = (text: string): string =>
  `%${text.toLowerCase().replaceAll("\0", "\uFFFD").replaceAll(/[\\%_]/g, "\\$&")}%`;

export function createFound(
  reader: Reader, writer: WriterOf<typeof messageSearchCommands>, search: SearchIndex,
) {
  const { among, lower } = reader.dialect;
  return {
    /** The condition on conversation `c`. */
    condition: `(CAST(@search AS TEXT) IS NULL
      OR ${lower("c.external_identifier")} LIKE @search ESCAPE '\\'
      OR ${lower("c.variables")} LIKE @search ESCAPE '\\'
      OR ${among("c.id", "@found")})`,
    parameters: async (
      accountId: number, text: string | null,
    ): Promise<{ search: string | null; found: number[] }> => {
      if (text === null) return { search: null, found: [] };
      // Indexes the latest messages first, so that they are found too.
      await writer.write("messages.index", { rows: LIMITS.messageIndexRows });
      return {
        search: patternOf(text),
        found: await search.conversations(accountId, text, LIMITS.messageHitsMax),
      };
    },
  };
}
