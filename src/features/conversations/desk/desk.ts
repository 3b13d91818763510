// Who has a conversation, as one table of legal changes. Pure; asked by the storage inside the
// transaction of a change. The use cases around it are in handover.ts.
import type { Author, Away, DeskActor, DeskReason, DeskState } from "#events/events.ts";
import type { Instant } from "#core/system.ts";

export interface Desk {
  state: DeskState;
  /** Who has it; null: nobody, or a person nobody has named. */
  holder: Author | null;
  /** Why it is there; null: it never was anywhere else. */
  reason: DeskReason | null;
  /** Since when; null as before. */
  at: Instant | null;
}

export const DESK_MOVES = ["ask", "take", "assign", "hand_back", "end"] as const;
/**
 * `ask`: for a person. `take`: a person begins to answer. `assign`: it is given to a person,
 * whoever has it. `hand_back`: to the assistant. `end`: of the conversation.
 */
export type DeskMove = (typeof DESK_MOVES)[number];

export const DESK_CHANGES: Record<DeskState, Record<DeskMove, DeskState>> = {
  assistant: {
    ask: "waiting", take: "person", assign: "person", hand_back: "assistant", end: "assistant",
  },
  waiting: {
    ask: "waiting", take: "person", assign: "person", hand_back: "assistant", end: "assistant",
  },
  person: {
    ask: "person", take: "person", assign: "person", hand_back: "assistant", end: "assistant",
  },
};

type DeskChange =
  | { kind: "changed"; state: DeskState; holder: Author | null }
  | { kind: "unchanged" }
  /** Two people cannot have one conversation. */
  | { kind: "held"; holder: Author };

/** `holder`: who takes it or is given it; null for all other moves. */
export function changeDesk(
  { state, holder: held }: Pick<Desk, "state" | "holder">, move: DeskMove, holder: Author | null,
): DeskChange {
  const next = DESK_CHANGES[state][move];
  if (move !== "take" && move !== "assign") {
    return next === state ? { kind: "unchanged" } : { kind: "changed", state: next, holder: null };
  }
  if (state === "person" && held?.id === holder?.id) return { kind: "unchanged" };
  if (move === "take" && held) return { kind: "held", holder: held };
  return { kind: "changed", state: next, holder };
}

/** Whether the assistant answers; else messages are stored, free, for the person. */
export const assistantAnswers = (state: DeskState): boolean => state !== "person";

export interface MoveDesk {
  accountId: number;
  uuid: string;
  move: DeskMove;
  by: DeskActor;
  reason: DeskReason;
  /** Who takes it or is given it. */
  holder: Author | null;
  /** For the account's eyes, beside it; null: none. */
  note: string | null;
  /** With `ask`: nobody is there now; null: somebody is, or nobody has said when. */
  away?: Away | null;
  now: Instant;
}
