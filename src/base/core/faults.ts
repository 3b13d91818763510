// Refusals the client should read, and the two helpers every module uses for programmer errors.
// Thrown anywhere below a face; caught once per face (http/api.ts, realtime/session.ts).

/** Field name (dotted for nested fields) to every message about it. */
export type FieldErrors = Record<string, string[]>;

interface FaultDetails {
  /** Machine-readable reason; sent only where the contract has a place for it. */
  code?: string | undefined;
  /** Validation messages by field; makes the body `{ message, errors }`. */
  errors?: FieldErrors | undefined;
  /** Seconds after which the same request may succeed; sent as `Retry-After`. */
  retryAfterS?: number | undefined;
  /** Extra members of the error body, as the contract documents them. */
  extra?: Record<string, unknown> | undefined;
  cause?: unknown;
}

/** A refusal with an HTTP status and a text meant for the caller. Never carries secrets. */
export class Fault extends Error {
  readonly status: number;
  readonly code: string | undefined;
  readonly errors: FieldErrors | undefined;
  readonly retryAfterS: number | undefined;
  readonly extra: Record<string, unknown> | undefined;

  constructor(status: number, message: string, details: FaultDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "Fault";
    this.status = status;
    this.code = details.code;
    this.errors = details.errors;
    this.retryAfterS = details.retryAfterS;
    this.extra = details.extra;
  }
}

/** One field at fault, in the contract's validation shape. */
export function fieldFault(field: string, message: string): Fault {
  return new Fault(422, message, { errors: { [field]: [message] } });
}

/** The refusal of requests while the server is stopping. */
export const restarting = (): Fault =>
  new Fault(503, "The server is restarting. Please try again.", { retryAfterS: 1 });

/** Failure of something outside this process; made only in adaptors under `providers/`. */
export class ProviderError extends Error {
  /** True when the same request may succeed later and nothing has been received yet. */
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: { retryable: boolean; retryAfterMs?: number | undefined; cause?: unknown },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ProviderError";
    this.retryable = options.retryable;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The storage engine can no longer promise durability; nothing that was asked has happened. */
export class StorageFailure extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "StorageFailure";
  }
}

/** A reason not to start that an operator can remove; its message says how. */
export class StartFailure extends Error {}

/** The same where a setting names something unusable: the exit code is that of a wrong setting. */
export class MisconfiguredStart extends StartFailure {}

export function assertNever(value: never): never {
  throw new Error(`unexpected variant: ${JSON.stringify(value)}`);
}
