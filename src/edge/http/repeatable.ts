// Answers to requests that create something, kept for a day: a client that got none repeats its
// request with the same Idempotency-Key, and creates nothing twice. Messages, calls, purchases and
// appointments remember their key themselves, in the transaction that creates them.
import { hash } from "node:crypto";
import { Fault, fieldFault, StorageFailure } from "#core/faults.ts";
import type { KeptAnswer, KeptAnswers } from "#core/kept-answers.ts";
import { LIMITS } from "#core/limits.ts";
import type { SecretBox } from "#core/secrets.ts";
import type { System } from "#core/system.ts";
import { IDEMPOTENCY_KEY, replayHeaders } from "./answers.ts";
import { json, type Reply } from "./exchange.ts";
import type { KeyRoute, Route } from "./route.ts";
import { readIdempotencyKey } from "./validation.ts";

interface Options {
  answers: KeptAnswers;
  box: SecretBox;
  system: System;
}

const OPEN = "A request with this Idempotency-Key is still being handled, or was interrupted: send it"
  + " again in a moment. If the answer stays the same, look whether the request took effect, and use"
  + " a new key if it did not.";

const digest = (value: unknown): string => hash("sha256", JSON.stringify(value), "base64url");

/** Wraps a route that is `isRepeatable`; others stay as they are. */
export function repeatable(route: Route, options: Options): Route {
  if (route.auth !== "key" || !route.isRepeatable) return route;
  const handle: KeyRoute["handle"] = (request) => handleOnce(route, request, options);
  return {
    ...route,
    handle,
    headers: { ...route.headers, "Idempotency-Key": IDEMPOTENCY_KEY },
    responses: {
      409: { description: "A request with this Idempotency-Key has not ended" },
      ...route.responses,
    },
  };
}

async function handleOnce(
  route: KeyRoute, request: Parameters<KeyRoute["handle"]>[0], { answers, box, system }: Options,
): Promise<Reply> {
  const { http: { headers, params, form }, caller: { accountId }, query, body } = request;
  const key = readIdempotencyKey(headers["idempotency-key"]);
  if (key === null) return route.handle(request);
  const name = digest([accountId, route.method, route.path, params, key]);
  const asked = digest([query, body, form?.file?.name, form?.file?.bytes]);
  const now = system.now();
  const known = await answers.claim({
    name, accountId, request: asked, now, expiresAt: now + LIMITS.answersKeptMs * 1000,
  });
  const place = `kept_answers:${name}`;
  if (known) return repeated(known, asked, (sealed) => box.tryOpen(sealed, place));
  let reply: Reply;
  try {
    reply = await route.handle(request);
  } catch (error) {
    // Nothing that was asked has happened. After any other error nobody knows.
    if (error instanceof Fault || error instanceof StorageFailure) {
      await answers.release({ name, accountId });
    }
    throw error;
  }
  if (!("json" in reply)) throw new Error(`${route.path} is repeatable, and answers no JSON`);
  await answers.keep({
    name, accountId, status: reply.status, sealed: box.seal(JSON.stringify(reply.json), place),
  });
  return reply;
}

function repeated(
  { request, status, sealed }: KeptAnswer, asked: string, open: (sealed: string) => string | null,
): Reply {
  if (request !== asked) {
    throw fieldFault("idempotency_key", "The Idempotency-Key was used for another request.");
  }
  const text = sealed === null ? null : open(sealed);
  if (status === null || text === null) throw new Fault(409, OPEN, { retryAfterS: 1 });
  return json(status, JSON.parse(text), replayHeaders(true));
}
