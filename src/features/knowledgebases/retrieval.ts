// How a turn gets at what its assistant's knowledgebase knows: as a function the model may call,
// or as reference text beside the question. Each passage names where it is from.
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { estimateTokens } from "#engine/history.ts";
import type { Embedder } from "#providers/embeddings/port.ts";
import type { KnowledgebaseStore, Meaning, Passage } from "./knowledgebases.ts";

export const SEARCH_FUNCTION = "search_knowledgebase";

interface Retrieval {
  /** What `search_knowledgebase` answers. */
  search(
    accountId: number, knowledgebaseId: number, query: string,
  ): Promise<Record<string, unknown>>;
  /** The whole knowledgebase while it fits, else what a search for the question finds; or null. */
  reference(accountId: number, knowledgebaseId: number, question: string): Promise<string | null>;
}

const wirePassage = ({ documentId, document, chunk, headings, page, url, text }: Passage) => ({
  document,
  document_id: documentId,
  chunk,
  ...(headings.length > 0 ? { heading: headings.join(" > ") } : {}),
  ...(page === null ? {} : { page }),
  ...(url === null ? {} : { url }),
  text,
});

function sourceLine({ document, headings, page, url }: Passage): string {
  const place = [page === null ? "" : `page ${page}`, url ?? ""].filter((part) => part !== "");
  const where = place.length > 0 ? ` (${place.join(", ")})` : "";
  return `[${document}${where}]${headings.length > 0 ? ` ${headings.join(" > ")}:` : ""}`;
}

const asText = (passages: Passage[]): string =>
  passages.map((passage) => `${sourceLine(passage)}\n${passage.text}`).join("\n\n");

interface RetrievalOptions {
  store: Pick<KnowledgebaseStore, "find" | "search" | "passages">;
  embedder: Embedder | null;
  log: Logger;
}

export function createRetrieval({ store, embedder, log }: RetrievalOptions): Retrieval {
  /** Null when there is no embeddings server, or it is too slow for a person who waits. */
  const meaningOf = async (query: string): Promise<Meaning | null> => {
    if (!embedder || query.trim() === "") return null;
    try {
      const [vector] = await embedder.embed([query], AbortSignal.timeout(LIMITS.queryEmbeddingMs));
      return vector ? { model: embedder.model, vector } : null;
    } catch (error) {
      log.warn({ err: error }, "the search goes on without embeddings");
      return null;
    }
  };
  const find = async (knowledgebaseId: number, query: string): Promise<Passage[]> =>
    store.search(
      knowledgebaseId, query, LIMITS.passagesPerSearchMax, await meaningOf(query));
  return {
    search: async (accountId, knowledgebaseId, query) => {
      const knowledgebase = store.find(accountId, knowledgebaseId);
      if (!knowledgebase) return { error: "The knowledgebase is gone." };
      const found = await find(knowledgebase.id, query);
      return {
        results: found.map(wirePassage),
        version: knowledgebase.version,
        ...(found.length === 0 ? { note: "Nothing was found." } : {}),
      };
    },
    reference: async (accountId, knowledgebaseId, question) => {
      const knowledgebase = store.find(accountId, knowledgebaseId);
      if (!knowledgebase) return null;
      const whole = store.passages(knowledgebase.id, LIMITS.passagesInPromptMax + 1);
      const fits = whole.length <= LIMITS.passagesInPromptMax
        && estimateTokens(asText(whole)) <= LIMITS.knowledgeTokensMax;
      const chosen = fits ? whole : await find(knowledgebase.id, question);
      return chosen.length === 0 ? null : asText(chosen);
    },
  };
}
