// Requests that create or cause something, repeated with their Idempotency-Key because an answer
// was lost: by a program, by a person who presses again, or by a browser, which repeats a POST by
// itself where a kept connection was closed. They get the first answer, for a day, and nothing is
// created twice. Routes that name the header themselves keep the key with what they make.
import { createHash, hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { Fault, fieldFault, StorageFailure } from "#core/faults.ts";
import type { KeptAnswer, KeptAnswers } from "#core/kept-answers.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
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
  log: Logger;
}

type Request = Parameters<KeyRoute["handle"]>[0];

interface Asked {
  accountId: number;
  name: string;
  /** A hash of what is asked. */
  request: string;
}

const HEADER = "Idempotency-Key";
const UNKNOWN = "It is not known yet whether this was done when it was asked for before. Try again in"
  + " a moment. If this stays so, look whether it was done before you do it anew.";

const isRepeatable = (route: Route): route is KeyRoute =>
  route.auth === "key" && route.method === "POST" && route.headers?.[HEADER] === undefined
  && (route.isRepeatable
    ?? (route.scope !== "read" && (201 in route.responses || 202 in route.responses)));

/** Only who sent the first request gets its answer again: there may be a new secret in it. */
function nameOf(route: KeyRoute, { caller, http }: Request, key: string): string {
  const who = [caller.accountId, caller.keyId, caller.member?.userId];
  return hash("sha256", JSON.stringify([who, route.path, http.params, key]), "base64url");
}

async function digestOf({ query, body, http: { form } }: Request): Promise<string> {
  const { file = null } = form ?? {};
  const digest = createHash("sha256").update(JSON.stringify([query, body, file?.name]));
  if (file) for await (const chunk of createReadStream(file.path)) digest.update(chunk as Buffer);
  return digest.digest("base64url");
}

const keyReused = (): Fault =>
  fieldFault("idempotency_key", "The Idempotency-Key was used for another request.");
const repeated = (reply: Reply): Reply =>
  ({ ...reply, headers: { ...reply.headers, ...replayHeaders(true) } });

/** Carries out what is asked for the first time, else answers as then. */
async function carryOut(
  asked: Asked, work: () => Reply | Promise<Reply>, { answers, box, system, log }: Options,
): Promise<Reply> {
  const { name, accountId, request } = asked;
  const place = `kept_answers:${name}`;
  const now = system.now();
  const expiresAt = now + LIMITS.answersKeptMs * 1000;
  const known = await answers.claim({ ...asked, now, expiresAt });
  if (known) return answerAgain(known, request, (sealed) => box.tryOpen(sealed, place));
  let reply: Reply;
  try {
    reply = await work();
  } catch (error) {
    // Nothing that was asked has happened. After any other error nobody knows.
    if (error instanceof Fault || error instanceof StorageFailure) {
      const released = answers.release({ name, accountId }).catch((err: unknown) =>
        log.error({ err }, "could not free an Idempotency-Key whose request came to nothing"));
      // The refusal does not wait until the storage is back, as the release does.
      if (error instanceof Fault) await released;
    }
    throw error;
  }
  if (!("json" in reply)) throw new Error("only JSON can be answered again");
  const sealed = box.seal(JSON.stringify(reply.json), place);
  // What was done is answered, even where the answer cannot be kept.
  await answers.keep({ name, accountId, status: reply.status, sealed }).catch((err: unknown) =>
    log.error({ err }, "could not keep an answer for its request to be repeated"));
  return reply;
}

function answerAgain(
  known: KeptAnswer, request: string, open: (sealed: string) => string | null,
): Reply {
  if (known.request !== request) throw keyReused();
  const text = known.sealed === null ? null : open(known.sealed);
  if (known.status === null || text === null) throw new Fault(409, UNKNOWN, { retryAfterS: 1 });
  return repeated(json(known.status, JSON.parse(text)));
}

/** Wraps the routes that are repeatable; any other stays as it is. */
export function createRepeatable(options: Options): (route: Route) => Route {
  const underWay = new Map<string, { request: string; reply: Promise<Reply> }>();
  return (route) => {
    if (!isRepeatable(route)) return route;
    const handle: KeyRoute["handle"] = async (given) => {
      const key = readIdempotencyKey(given.http.headers["idempotency-key"]);
      if (key === null) return route.handle(given);
      const name = nameOf(route, given, key);
      const request = await digestOf(given);
      const first = underWay.get(name);
      if (first && first.request !== request) throw keyReused();
      if (first) return repeated(await first.reply);
      const { accountId } = given.caller;
      const reply = carryOut({ accountId, name, request }, () => route.handle(given), options);
      underWay.set(name, { request, reply });
      try {
        return await reply;
      } finally {
        underWay.delete(name);
      }
    };
    return {
      ...route, handle,
      headers: { ...route.headers, [HEADER]: IDEMPOTENCY_KEY },
      responses: { 409: { description: "Whether the first request was carried out is not known yet" }, ...route.responses },
    };
  };
}
