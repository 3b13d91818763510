// The port of embeddings: texts as vectors, so that texts of similar meaning are found.

export interface Embedder {
  /** The model that made the vectors: those of two models cannot be compared. */
  readonly model: string;
  /** One vector per text, all of one length. Throws ProviderError; rejects if the signal aborts. */
  embed(texts: string[], signal: AbortSignal): Promise<Float32Array[]>;
}
