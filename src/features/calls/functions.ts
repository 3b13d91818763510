// What a model may do with the call itself: end it, hand it on, press keys. Functions of the
// assistant's built-in tools, joined with its others by replies.ts.
import { isE164 } from "#core/values.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { FunctionSource } from "#engine/functions.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import type { LineTransfer } from "./transfers.ts";

/** What the functions do; each takes effect once what is being said has been said. */
export interface CallActions {
  hangUp(): void;
  /** Null when the carrier cannot; else as `handOver`. */
  transfer: ((to: string, type: LineTransfer) => string | null) | null;
  /** Null when the call has no keys. */
  sendDtmf: ((digits: string) => void) | null;
  /** A sentence says why not; null: it is done. */
  handOver(
    assistantId: number, settings: { message: string; greets: boolean },
  ): Promise<string | null>;
}

type Result = Record<string, unknown>;
type Call = (args: Record<string, unknown>) => Result | Promise<Result>;
interface CallFunction {
  tool: ModelFunction;
  call: Call;
}

const DTMF = /^[0-9A-D*#]{1,32}$/;

const define = (
  name: string, description: string, properties: Record<string, unknown>, call: Call,
): CallFunction => ({
  tool: {
    name,
    description,
    parameters: {
      type: "object", properties, required: Object.keys(properties), additionalProperties: false,
    },
  },
  call,
});

type BuiltIn = Assistant["settings"]["tools"][number];

function functionOf(tool: BuiltIn, index: number, actions: CallActions): CallFunction | null {
  const suffix = index === 0 ? "" : `_${index + 1}`;
  switch (tool.type) {
    case "end_call":
      return define("hang_up", tool.description
        || "Ends the call. Say goodbye first; use it when nothing is left to do.", {}, () => {
        actions.hangUp();
        return { ended: true };
      });
    case "call_transfer":
      return transferFunction(`transfer_call${suffix}`, {
        type: tool.type, description: tool.description, number: tool.phone_number,
        isFree: tool.custom === true,
      }, actions);
    case "warm_call_transfer":
      return transferFunction(`transfer_to_colleague${suffix}`, {
        type: tool.type, description: tool.description, number: tool.supervisor_phone,
        isFree: false,
      }, actions);
    case "dtmf_input":
      return define("send_dtmf", tool.description || "Presses keys of the telephone.", {
        digits: { type: "string", description: "Keys in order: digits, * and #" },
      }, ({ digits }) => {
        if (typeof digits !== "string" || !DTMF.test(digits)) return { error: "No such keys." };
        if (!actions.sendDtmf) return { error: "This call has no keys." };
        actions.sendDtmf(digits);
        return { sent: digits };
      });
    case "assistant_transfer":
      return define(`transfer_to_assistant${suffix}`, tool.description
        || "Hands the call over to another assistant.", {}, async () => {
        const error = await actions.handOver(tool.assistant_id, {
          message: tool.message_before_transfer ?? "", greets: tool.speak_transfer_greeting !== false,
        });
        return error === null ? { transferred: true } : { error };
      });
    case "collect_keypad":
    case "calendar":
    case "calendar_integration":
      return null;
  }
}

function transferFunction(
  name: string,
  tool: {
    type: LineTransfer; description: string | null | undefined; number: string; isFree: boolean;
  },
  actions: CallActions,
): CallFunction {
  const properties = tool.isFree
    ? { phone_number: { type: "string", description: "Number to transfer to, as +15551234567" } }
    : {};
  return define(name, tool.description || "Transfers the call to a person.", properties, (args) => {
    if (!actions.transfer) return { error: "This call cannot be transferred." };
    const wanted = tool.isFree ? args.phone_number : tool.number;
    if (typeof wanted !== "string" || (tool.isFree && !isE164(wanted))) {
      return { error: "The phone number must be in E.164 format (e.g. +1234567890)." };
    }
    const error = actions.transfer(wanted, tool.type);
    return error === null ? { transferring: true } : { error };
  });
}

export function callFunctions(assistant: Assistant, actions: CallActions): FunctionSource {
  const counts = new Map<string, number>();
  const functions = new Map<string, CallFunction>();
  for (const tool of assistant.settings.tools) {
    const index = counts.get(tool.type) ?? 0;
    counts.set(tool.type, index + 1);
    const made = functionOf(tool, index, actions);
    if (made) functions.set(made.tool.name, made);
  }
  return {
    offered: [...functions.values()].map(({ tool }) => tool),
    call: async ({ name, arguments: args }) =>
      await functions.get(name)?.call(args) ?? { error: "There is no such function." },
  };
}
