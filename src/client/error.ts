// What the client throws. Used by client.ts and stream.ts.

/** A refusal in the server's words. */
export class ParleyError extends Error {
  readonly status: number;
  /** The body as it was received. */
  readonly body: unknown;
  /** How long the server asks to wait before a retry; 0: it did not say. */
  readonly retryAfterMs: number;

  constructor(status: number, body: unknown, retryAfterMs = 0) {
    const { message, error } = (body ?? {}) as { message?: unknown; error?: unknown };
    super(String(message ?? error ?? `the server answered ${status}`));
    this.name = "ParleyError";
    this.status = status;
    this.body = body;
    this.retryAfterMs = retryAfterMs;
  }
}
