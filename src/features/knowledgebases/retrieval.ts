// How a turn uses its assistant's knowledgebase: as a function that the model may call, or as
// reference text added to the prompt. Each passage names its source.
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { timeLimit } from "#core/system.ts";
import { firstChars } from "#core/values.ts";
import { NO_FUNCTIONS, type FunctionSource } from "#engine/functions.ts";
import { estimateTokens } from "#engine/history.ts";
import type { Embedder } from "#providers/embeddings/port.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import type { FoundPassage, KnowledgebaseStore, Meaning, Passage } from "./knowledgebases.ts";

const SEARCH: ModelFunction = {
  name: "search_knowledgebase",
  description: "Searches the knowledgebase. Use it before answering anything about the business; "
    + "say which document (and page) an answer is from.",
  parameters: {
    type: "object",
    properties: { query: { type: "string", description: "What to look for, in a few words" } },
    required: ["query"],
    additionalProperties: false,
  },
};

/** An assistant, which may have a knowledgebase. */
interface Reader {
  accountId: number;
  settings: {
    knowledgebase_id: number | null;
    knowledgebase_mode: "function_call" | "prompt" | null;
  };
}

interface Tried {
  /** An assistant receives the first `passagesPerSearchMax` of them. */
  found: FoundPassage[];
  /** False: by words alone. */
  isByMeaning: boolean;
}

export interface Retrieval {
  /** The result of the function `search_knowledgebase`. */
  search(
    accountId: number, knowledgebaseId: number, query: string,
  ): Promise<Record<string, unknown>>;
  /** The same search for the owner: more passages, with scores. Null: no such knowledgebase. */
  trySearch(accountId: number, knowledgebaseId: number, query: string): Promise<Tried | null>;
  /** The search function, for a reader in the mode `function_call`. */
  functionsOf(turn: { assistant: Reader }): FunctionSource;
  /**
   * For a reader in the mode `prompt`: the whole knowledgebase if it fits, or else what a search
   * for the question finds; null: nothing.
   */
  referenceFor(reader: Reader, question: string): Promise<string | null>;
  /** Names of a reader's documents, which people who talk with it may mention. */
  titlesOf(reader: Reader): Promise<string[]>;
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
  store: Pick<KnowledgebaseStore, "find" | "search" | "passages" | "documents">;
  embedder: Embedder | null;
  log: Logger;
  /** Called when a search of the account succeeds, with the document of the best passage. */
  onFound?(accountId: number, document: string): void;
}

export function createRetrieval({ store, embedder, log, onFound }: RetrievalOptions): Retrieval {
  /** Null when there is no embeddings server, or it fails or is too slow for a live reply. */
  const meaningOf = async (query: string): Promise<Meaning | null> => {
    if (!embedder || query.trim() === "") return null;
    try {
      const [vector] = await embedder.embed([query], timeLimit(LIMITS.queryEmbeddingMs).signal);
      return vector ? { model: embedder.model, vector } : null;
    } catch (error) {
      log.warn({ err: error }, "searching without embeddings");
      return null;
    }
  };
  const report = (accountId: number, [best]: readonly Passage[]): void => {
    if (best) onFound?.(accountId, best.document);
  };
  const find = async (knowledgebaseId: number, query: string): Promise<Passage[]> =>
    store.search(
      knowledgebaseId, query, LIMITS.passagesPerSearchMax, await meaningOf(query));
  const trySearch: Retrieval["trySearch"] = async (accountId, knowledgebaseId, query) => {
    if (!await store.find(accountId, knowledgebaseId)) return null;
    const meaning = await meaningOf(query);
    const found = await store.search(knowledgebaseId, query, LIMITS.passagesTriedMax, meaning);
    report(accountId, found);
    return { found, isByMeaning: meaning !== null };
  };
  const search: Retrieval["search"] = async (accountId, knowledgebaseId, query) => {
    const knowledgebase = await store.find(accountId, knowledgebaseId);
    if (!knowledgebase) return { error: "The knowledgebase no longer exists." };
    const found = await find(knowledgebase.id, query);
    report(accountId, found);
    return {
      results: found.map(wirePassage),
      version: knowledgebase.version,
      ...(found.length === 0 ? { note: "Nothing was found." } : {}),
    };
  };
  return {
    search,
    trySearch,
    functionsOf: ({ assistant: { accountId, settings } }) => {
      const { knowledgebase_id: id, knowledgebase_mode: mode } = settings;
      if (id === null || mode === "prompt") return NO_FUNCTIONS;
      return {
        offered: [SEARCH],
        call: async ({ arguments: { query } }) =>
          typeof query === "string" && query.trim() !== ""
            ? search(accountId, id, firstChars(query, LIMITS.messageCharsMax))
            : { error: "The argument query is missing." },
      };
    },
    titlesOf: async ({ accountId, settings: { knowledgebase_id: id } }) =>
      (id === null || await store.find(accountId, id) === null
        ? []
        : (await store.documents(id)).slice(0, LIMITS.recogniserHintsMax).map(({ name }) => name)),
    referenceFor: async ({ accountId, settings }, question) => {
      const { knowledgebase_id: id, knowledgebase_mode: mode } = settings;
      if (id === null || mode !== "prompt") return null;
      const knowledgebase = await store.find(accountId, id);
      if (!knowledgebase) return null;
      const whole = await store.passages(knowledgebase.id, LIMITS.passagesInPromptMax + 1);
      const fits = whole.length <= LIMITS.passagesInPromptMax
        && estimateTokens(asText(whole)) <= LIMITS.knowledgeTokensMax;
      const chosen = fits ? whole : await find(knowledgebase.id, question);
      report(accountId, chosen);
      return chosen.length === 0 ? null : asText(chosen);
    },
  };
}
