// What the client throws. Used by client.ts and stream.ts.

/** A refusal in the server's words. */
export class ParleyError extends Error {
  readonly status: number;
  /** The body as it came. */
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    const { message, error } = (body ?? {}) as { message?: unknown; error?: unknown };
    super(String(message ?? error ?? `the server answered ${status}`));
    this.name = "ParleyError";
    this.status = status;
    this.body = body;
  }
}
