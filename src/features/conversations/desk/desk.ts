// Who has a conversation, as one table of legal changes. Pure; asked by the storage inside the
// transaction of a change. The use cases around it are in handover.ts.
import type { Author, Away, DeskActor, DeskReason, DeskState } from "#events/events.ts";
import type { Instant } from "#core/system.ts";

export interface Desk {
  state: DeskState;
  /** The person who has it; null: nobody, or an unnamed person. */
  holder: Author | null;
  /** Why it is in this state; null: it has never changed. */
  reason: DeskReason | null;
  /** Since when it is in this state; null: it has never changed. */
  at: Instant | null;
}

export const DESK_MOVES = ["ask", "take", "assign", "hand_back", "lose", "end"] as const;
/**
 * `ask`: a person is requested. `take`: a person begins to answer. `assign`: it is given to a
 * person, whoever has it. `hand_back`: it returns to the assistant. `lose`: the person who has it
 * may no longer answer. `end`: the conversation ends.
 */
export type DeskMove = (typeof DESK_MOVES)[number];

export const DESK_CHANGES: Record<DeskState, Record<DeskMove, DeskState>> = {
  assistant: {
    ask: "waiting", take: "person", assign: "person", hand_back: "assistant", lose: "assistant",
    end: "assistant",
  },
  waiting: {
    ask: "waiting", take: "person", assign: "person", hand_back: "assistant", lose: "waiting",
    end: "assistant",
  },
  person: {
    ask: "person", take: "person", assign: "person", hand_back: "assistant", lose: "waiting",
    end: "assistant",
  },
};

type DeskChange =
  | { kind: "changed"; state: DeskState; holder: Author | null }
  | { kind: "unchanged" }
  /** Another person already has the conversation. */
  | { kind: "held"; holder: Author };

/** `holder`: the person who takes it, is assigned it or loses it; null for all other moves. */
export function changeDesk(
  { state, holder: held }: Pick<Desk, "state" | "holder">, move: DeskMove, holder: Author | null,
): DeskChange {
  const next = DESK_CHANGES[state][move];
  // Another person may have it by now.
  if (move === "lose" && held?.id !== holder?.id) return { kind: "unchanged" };
  if (move !== "take" && move !== "assign") {
    return next === state ? { kind: "unchanged" } : { kind: "changed", state: next, holder: null };
  }
  if (state === "person" && held?.id === holder?.id) return { kind: "unchanged" };
  if (move === "take" && held) return { kind: "held", holder: held };
  return { kind: "changed", state: next, holder };
}

/** Whether the assistant answers; otherwise messages are free, and stored for the person. */
export const assistantAnswers = (state: DeskState): boolean => state !== "person";

export interface MoveDesk {
  accountId: number;
  uuid: string;
  move: DeskMove;
  by: DeskActor;
  reason: DeskReason;
  /** The person who takes it, is assigned it or loses it. */
  holder: Author | null;
  /** A note that only the account sees; null: none. */
  note: string | null;
  /** If it now waits: nobody is available now; null: somebody is, or there are no office hours. */
  away?: Away | null;
  now: Instant;
}
