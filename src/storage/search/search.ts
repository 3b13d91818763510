// The search port: the index of passages and messages is the one part of the store that each engine
// implements itself. Called by knowledgebases.ts, inbox.ts and message-search.ts.
import type { Meaning } from "#features/knowledgebases/knowledgebases.ts";

/** A chunk that was found; scores compare only within one ranking. */
export interface Hit {
  id: number;
  score: number;
}

/** Searches: rankings of the chunks of one knowledgebase, and conversations by their words. */
export interface SearchIndex {
  /** Chunks that have words of the query, best first, with their BM25. Takes any text. */
  words(knowledgebaseId: number, query: string, rows: number): Promise<Hit[]>;
  /** Chunks with a vector of the same model, nearest first, scored by cosine similarity. */
  meaning(knowledgebaseId: number, meaning: Meaning, rows: number): Promise<Hit[]>;
  /**
   * Ids of the account's conversations with a message that has every word of the query, among the
   * newest `rows` such messages. Accepts any text; a text without words finds nothing.
   */
  conversations(accountId: number, query: string, rows: number): Promise<number[]>;
}

export interface IndexedChunk {
  id: number;
  knowledgebaseId: number;
  /** Starts with the document's name, outermost first. */
  headings: string[];
  text: string;
}

export interface IndexedMessage {
  id: number;
  conversationId: number;
  accountId: number;
  text: string;
}

/** Steps of the commands that keep the index of messages, inside their transaction. */
export interface MessageSteps {
  /** An SQL condition: the message may be missing from the index. */
  isMissing(id: string): string;
  indexMessages(messages: IndexedMessage[]): Promise<void>;
  clearMessages(): Promise<void>;
  /** To be called while the messages are still there. */
  forgetMessages(conversationId: number): Promise<void>;
  /**
   * The ids of this transaction and of the oldest running one. Null: transactions run one after
   * another, so row ids are committed in order.
   */
  transactions(): Promise<{ own: number; oldest: number } | null>;
}

/** Steps of the commands that store and remove chunks, too. */
export interface SearchCommands extends MessageSteps {
  index(chunks: IndexedChunk[]): Promise<void>;
  /**
   * Removes the document's chunks from position `first` to before `end` from the index; must be
   * called while they still exist.
   */
  forget(chunks: { documentId: number; first: number; end: number }): Promise<void>;
}

/** A vector as it is stored in the database. */
export const bytesOf = (vector: Float32Array): Buffer =>
  Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
