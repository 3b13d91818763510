// Runs in the threads that call tools' endpoints: one guarded request, its reply read into a small
// plain object. Whatever an endpoint sends is unpacked here, never in the main thread.
import { workerData } from "node:worker_threads";
import { LIMITS } from "#core/limits.ts";
import { sharedMs } from "#core/system.ts";
import { isRecord, isUnsafeKey, parsedJson, wholeStart } from "#core/values.ts";
import type { Answered, EndpointReply, EndpointRequest } from "#features/tools/invocation.ts";
import type { ThreadRequest } from "#features/tools/threads.ts";
import { createOutbound, type OutboundReply } from "#outbound/request.ts";
import { readingAll } from "./tools/answers.ts";
import { askMcp } from "./tools/mcp.ts";

const DEPTH_MAX = 32;
/**
 * A text so many times longer than a result is not read as JSON: a megabyte of it takes half a
 * second of a thread that calls everybody's tools, and would hardly ever be short enough.
 */
const LONGER_MAX = 16;
const { allowPrivateNetworks } = workerData as { allowPrivateNetworks: string[] };
const endpoints = readingAll(createOutbound({ allowPrivateNetworks }));

// Control characters, and the invisible ones that hide or reorder text (tags, bidi).
const UNSEEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;

function cleaned(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return value.replace(UNSEEN, "");
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEPTH_MAX) return "…";
  if (Array.isArray(value)) return value.map((item) => cleaned(item, depth + 1));
  const entries = Object.entries(value)
    .filter(([key]) => !isUnsafeKey(key))
    .map(([key, item]) => [key.replace(UNSEEN, ""), cleaned(item, depth + 1)] as const);
  return Object.fromEntries(entries);
}

/** The endpoint's JSON object unchanged; anything else under `data`, or as `text`. */
function resultOf(body: Buffer, charsMax: number): Record<string, unknown> {
  const text = body.toString("utf8");
  const asText = (): Record<string, unknown> => {
    const clean = text.replace(UNSEEN, "");
    const isLong = clean.length > charsMax;
    return isLong ? { text: wholeStart(clean, charsMax), truncated: true } : { text: clean };
  };
  if (text.length > LONGER_MAX * charsMax) return asText();
  let parsed: unknown;
  try {
    parsed = cleaned(parsedJson(text));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return asText();
    throw error;
  }
  const result = isRecord(parsed) ? parsed : { data: parsed };
  return JSON.stringify(result).length > charsMax ? asText() : result;
}

function answeredOf(
  { status, headers, body }: Extract<OutboundReply, { kind: "reply" }>, charsMax: number,
): Answered {
  const type = headers["content-type"];
  return {
    status,
    // The header that tells how to read the body; cookies and the like are dropped.
    headers: type === undefined ? {} : { "content-type": type },
    body: wholeStart(body.toString("utf8").replace(UNSEEN, ""), charsMax),
  };
}

/** The result as it may be passed on: cleaned, and within the size limit. */
function bounded(result: Record<string, unknown>, charsMax: number): Record<string, unknown> {
  return resultOf(Buffer.from(JSON.stringify(result)), charsMax);
}

async function invokeMcp(request: EndpointRequest): Promise<EndpointReply> {
  const { resultCharsMax, isTrial } = request;
  const reply = await askMcp(endpoints, request);
  if ("kind" in reply) return reply;
  const { answered, mcp } = reply;
  const seen = isTrial && answered ? {
    answered: answeredOf(
      { kind: "reply", ...answered, body: Buffer.from(answered.text) }, resultCharsMax),
  } : {};
  return { kind: "result", result: bounded(reply.result, resultCharsMax), mcp, ...seen };
}

export default async function invoke(
  { askedMs, ...asked }: ThreadRequest,
): Promise<EndpointReply> {
  // The caller waits no longer: a call that it has given up is not made.
  const leftMs = askedMs + asked.totalMs + LIMITS.toolThreadGraceMs - sharedMs();
  if (leftMs <= 0) return { kind: "failed", reason: "timeout", sent: false };
  const request = { ...asked, totalMs: Math.min(asked.totalMs, leftMs) };
  if (request.mcp) return invokeMcp(request);
  const { resultCharsMax, isTrial, ...wanted } = request;
  const reply = await endpoints.request(wanted);
  if (reply.kind !== "reply") return reply;
  const seen = isTrial ? { answered: answeredOf(reply, resultCharsMax) } : {};
  const { status } = reply;
  if (status < 200 || status > 299) return { kind: "status", status, ...seen };
  return { kind: "result", result: resultOf(reply.body, resultCharsMax), ...seen };
}
