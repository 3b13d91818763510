// Turns that another node answers: this node waits until they end and reads the result from the
// store. Called by conversations.ts.
import { LIMITS } from "#core/limits.ts";
import { wait, type System } from "#core/system.ts";
import type { ConversationStore, TurnResult } from "#features/conversations/records.ts";

interface ElsewhereOptions {
  store: Pick<ConversationStore, "isAnsweredElsewhere" | "turnEnd">;
  limits: { turnTotalMs: number };
  system: System;
}

/** The result for a waiting client when another node, or none, has the turn. */
export const LOST: TurnResult = {
  kind: "failed", reason: "interrupted", cause: null,
  error: "The server was restarted before the reply was complete.",
};

export function createElsewhere({ store, limits, system }: ElsewhereOptions) {
  const looks = async (waitMs: number, isOver: () => Promise<boolean>): Promise<boolean> => {
    const endMs = system.monotonicMs() + waitMs;
    while (system.monotonicMs() < endMs) {
      await wait(system, LIMITS.otherNodeLookMs);
      if (await isOver()) return true;
    }
    return false;
  };
  return {
    /** Resolves when no living node answers in the conversation any more; false: timed out. */
    free: (conversationId: number): Promise<boolean> =>
      looks(LIMITS.turnWaitMs, async () => !await store.isAnsweredElsewhere(conversationId)),
    /** How the turn ends; if its node dies, the node that declares it dead ends the turn. */
    resultOf: async (turnId: number): Promise<TurnResult> => {
      let end: TurnResult | null = null;
      await looks(limits.turnTotalMs + 2 * LIMITS.nodeLeaseMs, async () => {
        end = await store.turnEnd(turnId);
        return end !== null;
      });
      return end ?? LOST;
    },
  };
}
