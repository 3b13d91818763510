// The port to answers of requests with an Idempotency-Key: http/repeatable.ts gives them again,
// storage/accounts/kept-answers.ts keeps them.
import type { Instant } from "./system.ts";

interface Named {
  /** Identifies sender, route and key. */
  name: string;
  accountId: number;
}

/** A request with a key. */
export interface KeyedRequest extends Named {
  /** A hash of what is asked. */
  request: string;
  now: Instant;
  expiresAt: Instant;
}

export interface KeptAnswer {
  /** The first request's. */
  request: string;
  /** Null: it has not ended, or was interrupted. */
  status: number | null;
  /** The body as JSON, encrypted: it may contain a new secret. Null without a status. */
  sealed: string | null;
}

export interface KeptAnswers {
  /** Null: this request is the first with its name, and holds it from now on. */
  claim(request: KeyedRequest): Promise<KeptAnswer | null>;
  keep(answer: Named & { status: number; sealed: string }): Promise<void>;
  /** The request was refused, so the next one with its name is the first again. */
  release(request: Named): Promise<void>;
  /** Deletes up to that many that expired before; resolves to how many. */
  trim(before: Instant, rows: number): Promise<number>;
}
