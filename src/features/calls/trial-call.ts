// A call without a telephone: a caller of the server's own rings an assistant and says its lines.
// Called by routes.ts and, through the composition root, by templates.
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { Calling } from "./calling.ts";
import { holding } from "./capacity.ts";
import type { Calls } from "./calls.ts";
import type { PlacedCall } from "./placing.ts";
import type { VoiceChoice } from "./voice-choice.ts";

interface TrialCallOptions {
  calls: Calls;
  calling: Calling;
  log: Logger;
  whyCannotTalk: VoiceChoice["whyCannotTalk"];
  /** The number an assistant calls from; null: the carrier's own. */
  numberOf(assistant: Assistant): Promise<string | null>;
}

interface Trial {
  /** The number the caller shows. */
  number?: string;
  lines?: readonly string[];
  variables?: Record<string, string>;
  /** A repeated request with the same key does not ring again. */
  idempotencyKey?: string | null;
}

const LINES = ["Hello. When are you open?", "Thank you, goodbye."];
const CALLER = "+15550100000";

/**
 * Resolves once it rings. Rejects with Fault 422 when the assistant cannot talk, 503 when there is
 * no place.
 */
export type TrialCall = (assistant: Assistant, trial: Trial) => Promise<PlacedCall>;

export function createTrialCall(options: TrialCallOptions): TrialCall {
  const { calls, calling, whyCannotTalk, log } = options;
  return async (assistant, trial) => {
    const { number = CALLER, lines = LINES, variables = {}, idempotencyKey = null } = trial;
    const why = whyCannotTalk(assistant, "script");
    if (why !== null) throw new Fault(422, why);
    const assistantPhone = await options.numberOf(assistant);
    const begun = await holding(calling, assistant, "script", () => calls.begin({
      assistant, type: "inbound", conversationUuid: null, assistantPhone, customerPhone: number,
      variables, idempotencyKey,
    }));
    const { call, secondsMax, replayed } = begun;
    const placed = { id: call.id, status: call.status, replayed };
    if (replayed) return placed;
    calling.receive(call, assistant, secondsMax, [...lines]).catch((error: unknown) =>
      log.error({ err: error, call_id: call.id }, "could not accept an inbound call"));
    return placed;
  };
}
