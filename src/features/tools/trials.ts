// Trials of a tool by its owner: the request that a turn would send is really sent, and shown with
// the answer. Nothing is journaled, because every trial is a separate call.
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
    /** Values of configured headers are masked, because they are usually secrets. */
    headers: Record<string, string>;
    body: string | null;
  };
  /** Null: there was no answer. */
  response: Answered | null;
  /** What a model would receive. */
  result: Record<string, unknown>;
}

/** Throws Fault 422 for invalid arguments or locked secrets; then nothing is sent. */
export type TryTool = (
  tool: Tool, args: Record<string, unknown>, variables: Record<string, string>,
) => Promise<Trial>;

/** Shown in full, as they only describe the body's format. */
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
