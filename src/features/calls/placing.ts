// Places a call on request; the campaigns' dialler has rules of its own. Used by routes.ts.
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault } from "#core/faults.ts";
import type { Calling } from "./calling.ts";
import { holding } from "./capacity.ts";
import type { Calls } from "./calls.ts";
import type { Lines } from "./lines.ts";
import type { Call } from "./records/records.ts";

export interface AskedCall {
  accountId: number;
  /** Id or uuid. */
  assistantId: number | string;
  /** E.164. */
  number: string;
  variables: Record<string, string>;
  /** A repeated request with the same key places no second call. */
  idempotencyKey: string | null;
}

export interface PlacedCall extends Pick<Call, "id" | "status"> {
  /** True: an earlier request placed it. */
  replayed: boolean;
}

export interface PlacingOptions extends Pick<Lines, "isScript" | "whyCannotCall"> {
  calls: Pick<Calls, "begin">;
  calling: Pick<Calling, "dial" | "hold" | "refusal">;
  findAssistant(accountId: number, assistantId: number): Promise<Assistant | null>;
  findAssistantByUuid(uuid: string): Promise<Assistant | null>;
  /** The number an assistant calls from; null: the carrier's own. */
  numberOf(assistant: Assistant): Promise<string | null>;
  /** The other node that places calls from the number; null: this one does. */
  placedBy(accountId: number, number: string | null): Promise<number | null>;
}

/** The active assistant with this id or uuid. */
export async function activeAssistant(
  options: Pick<PlacingOptions, "findAssistant" | "findAssistantByUuid">,
  accountId: number, id: number | string,
): Promise<Assistant> {
  const assistant = /^\d{1,15}$/.test(String(id))
    ? await options.findAssistant(accountId, Number(id))
    : await options.findAssistantByUuid(String(id).toLowerCase());
  if (assistant?.accountId !== accountId) {
    throw new Fault(404, "Assistant not found or does not belong to the authenticated user");
  }
  if (assistant.status !== "active") throw new Fault(422, "The assistant is not active.");
  return assistant;
}

export function createPlacing(options: PlacingOptions) {
  const { calls, calling } = options;
  /** Places the call at this node, whichever node is registered. Throws Fault. */
  const here = async (
    { accountId, assistantId, number, variables, idempotencyKey }: AskedCall,
  ): Promise<PlacedCall> => {
    const assistant = await activeAssistant(options, accountId, assistantId);
    const assistantPhone = await options.numberOf(assistant);
    const why = await options.whyCannotCall(assistant, assistantPhone);
    if (why !== null) throw new Fault(422, why);
    const isScript = await options.isScript(accountId, assistantPhone);
    return holding(calling, assistant, isScript ? "script" : null, async () => {
      const { call, secondsMax, replayed } = await calls.begin({
        assistant, type: "outbound", conversationUuid: null, assistantPhone,
        customerPhone: number, variables, idempotencyKey,
      });
      if (!replayed) await calling.dial(call, assistant, secondsMax);
      return { id: call.id, status: call.status, replayed };
    });
  };
  return {
    here,
    /** `at` asks another node to place it; null: there are no other nodes. */
    anywhere: async (
      asked: AskedCall, at: ((nodeId: number, asked: AskedCall) => Promise<PlacedCall>) | null,
    ): Promise<PlacedCall> => {
      if (!at) return here(asked);
      const assistant = await activeAssistant(options, asked.accountId, asked.assistantId);
      const owner = await options.placedBy(asked.accountId, await options.numberOf(assistant));
      return owner === null ? here(asked) : at(owner, asked);
    },
  };
}
