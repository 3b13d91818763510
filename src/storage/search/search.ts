// The search port: what finds passages and messages is the one part of the store that is written
// per engine. Called by knowledgebases.ts, inbox.ts and message-search.ts.
import type { Meaning } from "#features/knowledgebases/knowledgebases.ts";

/** A chunk that was found; scores of one ranking compare with each other alone. */
export interface Hit {
  id: number;
  score: number;
}

/** Rankings within one knowledgebase, of the chunks that are found. */
export interface SearchIndex {
  /** Chunks that have words of the query, best first, with their BM25. Takes any text. */
  words(knowledgebaseId: number, query: string, rows: number): Promise<Hit[]>;
  /** Chunks with a vector of the same model, nearest first, with their cosine. */
  meaning(knowledgebaseId: number, meaning: Meaning, rows: number): Promise<Hit[]>;
  /**
   * Ids of the account's conversations with a message that has every word of the query, among its
   * newest `rows` such messages. Takes any text; without a word in it nothing is found.
   */
  conversations(accountId: number, query: string, rows: number): Promise<number[]>;
}

export interface IndexedChunk {
  id: number;
  knowledgebaseId: number;
  /** From the document's name down. */
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
  /** The condition under which a message may not be in its index yet. */
  isMissing(id: string): string;
  indexMessages(messages: IndexedMessage[]): Promise<void>;
  clearMessages(): Promise<void>;
  /** To be called while the messages are still there. */
  forgetMessages(conversationId: number): Promise<void>;
  /**
   * The number of this transaction and of the oldest under way. Null: transactions run one after
   * another, so that numbers of rows are committed in their order.
   */
  transactions(): Promise<{ own: number; oldest: number } | null>;
}

/** And of those that store and remove chunks. */
export interface SearchCommands extends MessageSteps {
  index(chunks: IndexedChunk[]): Promise<void>;
  /**
   * Chunks of the document from position `first` to before `end`; to be called while they are
   * still there.
   */
  forget(chunks: { documentId: number; first: number; end: number }): Promise<void>;
}

/** A vector as it lies in the database. */
export const bytesOf = (vector: Float32Array): Buffer =>
  Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
