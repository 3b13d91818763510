// A tool tried by its owner: the request a turn would make is really made, and shown beside what
// came back. Nothing is journaled: every trial is a call of its own.
import { Fault } from "#core/faults.ts";
import { MASK } from "#core/secrets.ts";
import {
  createSender, idempotencyKey, prepareRequest, type Answered, type SendingOptions,
} from "./invocation.ts";
import { LOCKED_PROBLEM, type Tool } from "./tools.ts";

export interface Trial {
  ok: boolean;
  durationMs: number;
  request: {
    method: string;
    url: string;
    /** Values of configured headers are hidden: they are secrets more often than not. */
    headers: Record<string, string>;
    body: string | null;
  };
  /** Null: there was no answer. */
  response: Answered | null;
  /** What a model would receive. */
  result: Record<string, unknown>;
}

/** Fault 422 when the arguments do not fit, or secrets do not open; then nothing is sent. */
export type TryTool = (
  tool: Tool, args: Record<string, unknown>, variables: Record<string, string>,
) => Promise<Trial>;

/** Say how to read the body, and nothing else. */
const SHOWN = new Set(["accept", "content-type"]);

export function createTryTool(options: SendingOptions): TryTool {
  const send = createSender(options);
  return async (tool, args, variables) => {
    if (tool.isLocked) throw new Fault(422, LOCKED_PROBLEM);
    const prepared = prepareRequest(tool, args, variables);
    if ("error" in prepared) {
      const { error, argument } = prepared;
      throw new Fault(422, error, { errors: { [`arguments.${argument}`]: [error] } });
    }
    const { built, digest } = prepared;
    const key = idempotencyKey(`try:${options.system.uuid()}`, digest);
    const { ok, seconds, answered, result } = await send(tool, built, key, true);
    const configured = new Set(tool.headers.map(({ name }) => name.toLowerCase()));
    const headers = Object.entries({ ...built.headers, "idempotency-key": key })
      .map(([name, value]) => [name, configured.has(name) && !SHOWN.has(name) ? MASK : value]);
    return {
      ok,
      durationMs: Math.round(seconds * 1000),
      request: {
        method: tool.method,
        url: built.url,
        headers: Object.fromEntries(headers) as Record<string, string>,
        body: built.body ?? null,
      },
      response: answered,
      result,
    };
  };
}
