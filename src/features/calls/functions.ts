// What a model may do with the call itself: end it, transfer it, press keys. These are functions of
// the assistant's built-in tools; replies.ts joins them with its other functions.
import { isE164 } from "#core/values.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import { MUSIC_VOLUME, WARM_TEXTS } from "#features/assistants/built-in-tools.ts";
import type { FunctionSource } from "#engine/functions.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import type { LineTransfer } from "./records/transfers.ts";

/** What the functions do; the call ends or is transferred only after the current utterance. */
export interface CallActions {
  hangUp(): void;
  /** Null when the carrier cannot; else as `handOver`. */
  transfer: ((to: string, type: LineTransfer) => string | null) | null;
  /** Transfers to a colleague who is called and briefed first; works for web calls too. */
  warmTransfer(tool: WarmTool): Promise<string | null>;
  /** Null when the call has no keys. */
  sendDtmf: ((digits: string) => void) | null;
  /** Resolves to a sentence that says why not; null: it is done. */
  handOver(
    assistantId: number, settings: { message: string; greets: boolean },
  ): Promise<string | null>;
}

/** A colleague to be called for a warm transfer, and what is said to whom. */
export interface WarmTool {
  type: LineTransfer;
  to: string;
  /** Dialled as written, regardless of the trunk's number format. */
  isRaw: boolean;
  /** The number the colleague is called from; null: the call's own. */
  phoneNumberId: number | null;
  /** The caller id the colleague sees; null: the number they are called from. */
  shown: { mode: "customer_number" } | { mode: "custom"; number: string } | null;
  /** How loud the music is, from 0 to 1; null: none is played. */
  musicGain: number | null;
  /** The time zone of dates and times in the texts; null: the assistant's. */
  timezone: string | null;
  texts: { hold: string; opening: string; connected: string; summary: string };
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
      if (tool.warm_transfer === true) {
        return warmFunction(`transfer_call${suffix}`, {
          description: tool.description, isFree: tool.custom === true, warm: announced(tool),
        }, actions);
      }
      return transferFunction(`transfer_call${suffix}`, {
        type: tool.type, description: tool.description, number: tool.phone_number,
        isFree: tool.custom === true,
      }, actions);
    case "warm_call_transfer":
      return warmFunction(`transfer_to_colleague${suffix}`, {
        description: tool.description, isFree: false, warm: briefed(tool),
      }, actions);
    case "dtmf_input":
      return define("send_dtmf", tool.description || "Presses keys of the telephone.", {
        digits: { type: "string", description: "Keys in order: digits, * and #" },
      }, ({ digits }) => {
        if (typeof digits !== "string" || !DTMF.test(digits)) return { error: "These keys do not exist." };
        if (!actions.sendDtmf) return { error: "Keys cannot be sent in this call." };
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
  const properties = tool.isFree ? PHONE_NUMBER : {};
  return define(name, tool.description || "Transfers the call to a person.", properties, (args) => {
    if (!actions.transfer) return { error: "This call cannot be transferred." };
    const wanted = tool.isFree ? args.phone_number : tool.number;
    if (typeof wanted !== "string" || (tool.isFree && !isE164(wanted))) {
      return { error: NO_NUMBER };
    }
    const error = actions.transfer(wanted, tool.type);
    return error === null ? { transferring: true } : { error };
  });
}

const PHONE_NUMBER = {
  phone_number: { type: "string", description: "Number to transfer to, as +15551234567" },
};
const NO_NUMBER = "The phone number must be in E.164 format (e.g. +1234567890).";

function warmFunction(
  name: string,
  tool: { description: string | null | undefined; isFree: boolean; warm: WarmTool },
  actions: CallActions,
): CallFunction {
  const description = tool.description || "Asks a colleague to take the call, and connects the two.";
  return define(name, description, tool.isFree ? PHONE_NUMBER : {}, async (args) => {
    const to = tool.isFree ? args.phone_number : tool.warm.to;
    if (typeof to !== "string" || (tool.isFree && !isE164(to))) return { error: NO_NUMBER };
    const error = await actions.warmTransfer({ ...tool.warm, to });
    return error === null ? { calling_colleague: true, caller_is_told: "to hold" } : { error };
  });
}

type Transfer<Type extends LineTransfer> = Extract<BuiltIn, { type: Type }>;

/** `call_transfer` with an announcement: its message takes the place of the opening. */
const announced = (tool: Transfer<"call_transfer">): WarmTool => ({
  type: tool.type, to: tool.phone_number, isRaw: false, phoneNumberId: null, shown: null,
  musicGain: MUSIC_VOLUME / 100, timezone: tool.timezone ?? null,
  texts: {
    hold: WARM_TEXTS.hold_message,
    opening: tool.warm_transfer_message || WARM_TEXTS.briefing_initial_message,
    connected: WARM_TEXTS.connected_message, summary: WARM_TEXTS.summary_instructions,
  },
});

function briefed(tool: Transfer<"warm_call_transfer">): WarmTool {
  const { caller_id_mode: mode, custom_caller_id: number } = tool;
  return {
    type: tool.type, to: tool.supervisor_phone, isRaw: tool.custom_sip === true,
    phoneNumberId: tool.outbound_phone_id,
    shown: mode === "customer_number" ? { mode }
      : mode === "custom" && number ? { mode, number } : null,
    musicGain: tool.hold_music === "none" ? null : (tool.hold_music_volume ?? MUSIC_VOLUME) / 100,
    timezone: null,
    texts: {
      hold: tool.hold_message ?? WARM_TEXTS.hold_message,
      opening: tool.briefing_initial_message ?? WARM_TEXTS.briefing_initial_message,
      connected: tool.connected_message ?? WARM_TEXTS.connected_message,
      summary: tool.summary_instructions ?? WARM_TEXTS.summary_instructions,
    },
  };
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
