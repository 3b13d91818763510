// The search port: what finds passages is the one part of the store that is written per engine.
// Called by knowledgebases.ts.
import type { Meaning } from "#features/knowledgebases/knowledgebases.ts";

/** Rankings within one knowledgebase, of passages whose document is active. */
export interface SearchIndex {
  /** Ids of chunks that have words of the query, best first. Takes any text. */
  words(knowledgebaseId: number, query: string, rows: number): Promise<number[]>;
  /** Ids of chunks with a vector of the same model, nearest first. */
  meaning(knowledgebaseId: number, meaning: Meaning, rows: number): Promise<number[]>;
}

export interface IndexedChunk {
  id: number;
  knowledgebaseId: number;
  /** From the document's name down. */
  headings: string[];
  text: string;
}

/** Steps of the commands that store and remove chunks, inside their transaction. */
export interface SearchCommands {
  index(chunks: IndexedChunk[]): Promise<void>;
  /** To be called while the document's chunks are still there. */
  forget(documentId: number): Promise<void>;
}

/** A vector as it lies in the database. */
export const bytesOf = (vector: Float32Array): Buffer =>
  Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
