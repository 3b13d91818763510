// Texts as vectors, so that what is meant alike is found alike.

export interface Embedder {
  /** Names the model the vectors are of: those of two models cannot be compared. */
  readonly model: string;
  /** One vector a text, all of one length. Throws ProviderError; rejects when the signal aborts. */
  embed(texts: string[], signal: AbortSignal): Promise<Float32Array[]>;
}
