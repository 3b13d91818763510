// Every error body the server sends is made here, in the shape the contract gives the route.
import { hasNoRoom } from "#core/disk.ts";
import { Fault, StorageFailure } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { json, type HeaderMap, type HttpRequest, type Reply } from "./exchange.ts";
import type { ErrorShape } from "./route.ts";

function bodyOf(fault: Fault, shape: ErrorShape): Record<string, unknown> {
  if (fault.errors) return { message: fault.message, errors: fault.errors };
  switch (shape) {
    case "message":
      return { message: fault.message, ...fault.extra };
    case "error":
      return { error: fault.message, ...fault.extra };
    case "conversation":
      return { status: false, error: fault.message, ...fault.extra };
    case "success":
      return {
        success: false,
        error: fault.message,
        ...(fault.code ? { error_code: fault.code } : {}),
        ...fault.extra,
      };
  }
}

/** How long a client refused for lack of space should wait before it retries. */
export const STORAGE_RETRY_S = 30;

/** Why the server cannot store anything, in words for the client; null: that is not the problem. */
export function storageTrouble(error: unknown): string | null {
  if (error instanceof StorageFailure) return "The server cannot store anything at the moment.";
  return hasNoRoom(error) ? "The server has no room to store this at the moment." : null;
}

/** In one line; the error for several failed addresses of one name has no message of its own. */
const causeOf = (cause: unknown): string | undefined => (cause instanceof AggregateError
  ? cause.errors.map(String).join("; ")
  : cause ? String(cause) : undefined);

/** Turns anything thrown into a refusal; an unexpected error is logged and not shown. */
export function toFault(error: unknown, log: Logger, request: HttpRequest | null): Fault {
  if (error instanceof Fault) {
    // The contract has its own words for this failure, so its cause is recorded only here.
    if (error.status === 500 && error.cause !== undefined) {
      log.error({ err: error.cause, req_id: request?.id, path: request?.path }, "request failed");
    }
    return error;
  }
  const trouble = storageTrouble(error);
  if (trouble !== null) {
    const isStorage = error instanceof StorageFailure;
    const isRead = request?.method === "GET" || request?.method === "HEAD";
    const text = isStorage && isRead ? "The server cannot read its data at the moment." : trouble;
    const what = isStorage ? "storage failed" : "the disk is full";
    // Every request fails while the database is away: a line each, without stacks.
    const cause = causeOf((error as Error).cause);
    log.error({ error: String(error), cause, req_id: request?.id }, what);
    return new Fault(503, text, { retryAfterS: STORAGE_RETRY_S });
  }
  log.error({ err: error, req_id: request?.id, path: request?.path }, "request failed");
  return new Fault(500, "Server error.");
}

export function renderFault(fault: Fault, shape: ErrorShape, headers: HeaderMap = {}): Reply {
  const retry: HeaderMap = fault.retryAfterS === undefined
    ? {}
    : { "Retry-After": String(Math.max(1, Math.ceil(fault.retryAfterS))) };
  return json(fault.status, bodyOf(fault, shape), { ...headers, ...retry });
}

const FRAMING = "framing";

/** Two readers of these bytes could take them for different requests. */
export const framingFault = (): Fault =>
  new Fault(400, "The request framing is ambiguous.", { code: FRAMING });

export const isFramingFault = (error: unknown): boolean =>
  error instanceof Fault && error.code === FRAMING;

/** 429 as clients of this API family expect it: `retry_after` as an integer. */
export function rateLimitFault(retryAfterMs: number, shape: ErrorShape): Fault {
  const retryAfterS = Math.max(1, Math.ceil(retryAfterMs / 1000));
  const message = `Too many requests. Try again in ${retryAfterS} seconds.`;
  const text = shape === "message" ? message : "Rate limit exceeded";
  return new Fault(429, text, {
    retryAfterS,
    extra: { error: "Rate limit exceeded", message, retry_after: retryAfterS },
  });
}
