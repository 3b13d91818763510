// Runs in the threads that call tools' endpoints: one guarded request, its reply read into a small
// plain object. Whatever an endpoint sends is unpacked here, never in the main thread.
import { workerData } from "node:worker_threads";
import { createOutbound, type OutboundReply } from "../src/outbound/request.ts";

export interface ToolRequest {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: string;
  totalMs: number;
  bytesMax: number;
  /** Longest result as JSON text. */
  resultCharsMax: number;
}

export type ToolReply =
  | { kind: "result"; result: Record<string, unknown> }
  | { kind: "status"; status: number }
  | Exclude<OutboundReply, { kind: "reply" }>;

const DEPTH_MAX = 32;
const { allowPrivateNetworks } = workerData as { allowPrivateNetworks: string[] };
const outbound = createOutbound({ allowPrivateNetworks });

// Control characters, and the invisible ones that hide or reorder text (tags, bidi).
const UNSEEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;

function cleaned(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return value.replace(UNSEEN, "");
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEPTH_MAX) return "…";
  if (Array.isArray(value)) return value.map((item) => cleaned(item, depth + 1));
  const entries = Object.entries(value)
    .filter(([key]) => key !== "__proto__" && key !== "constructor" && key !== "prototype")
    .map(([key, item]) => [key.replace(UNSEEN, ""), cleaned(item, depth + 1)] as const);
  return Object.fromEntries(entries);
}

/** The endpoint's JSON object as it is; anything else under `data`, or as `text`. */
function resultOf(body: Buffer, charsMax: number): Record<string, unknown> {
  const text = body.toString("utf8");
  const asText = (): Record<string, unknown> => {
    const clean = text.replace(UNSEEN, "");
    const isLong = clean.length > charsMax;
    return isLong ? { text: clean.slice(0, charsMax), truncated: true } : { text: clean };
  };
  let parsed: unknown;
  try {
    parsed = cleaned(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return asText();
    throw error;
  }
  const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
  const result = isObject ? (parsed as Record<string, unknown>) : { data: parsed };
  return JSON.stringify(result).length > charsMax ? asText() : result;
}

export default async function invoke(request: ToolRequest): Promise<ToolReply> {
  const { resultCharsMax, ...wanted } = request;
  const reply = await outbound.request(wanted);
  if (reply.kind !== "reply") return reply;
  if (reply.status < 200 || reply.status > 299) return { kind: "status", status: reply.status };
  return { kind: "result", result: resultOf(reply.body, resultCharsMax) };
}
