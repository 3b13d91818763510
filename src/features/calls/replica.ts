// The replica that a watcher of a call holds: a snapshot, changed by numbered events. Pure; clients
// and tests use the same function, so that their state at n is the server's state at n.
import type { TransferBody } from "#events/events.ts";

/** A call as watchers keep it; the members are named as on the wire. */
export interface CallState {
  id: number;
  status: string;
  answered_by: string;
  end_reason: string | null;
  transcript: { number: number; sender: string; text: string; interrupted: boolean }[];
  duration: number;
  total_cost: number;
  evaluation: Record<string, unknown>;
  /** Who has it: the assistant or a person. */
  desk: string;
  desk_holder: { id: string; name: string } | null;
  transfers: TransferState[];
}

/** A transfer as its events report it; a snapshot has more members. */
interface TransferState {
  id: number;
  type: string;
  transfer_to: string;
  assistant_id: string | null;
  status: string;
  outcome: string | null;
  stage: string | null;
  failure_reason: string | null;
  created_at: string;
}

export interface CallFrame {
  type: string;
  call_id?: number;
  [member: string]: unknown;
}

/** Frames of other kinds and of other calls change nothing; null once the call is deleted. */
export function applyCallEvent(state: CallState | null, frame: CallFrame): CallState | null {
  if (frame.type === "snapshot") return frame.call as CallState;
  if (frame.type === "call_created") return created(frame.call as Partial<CallState>);
  if (!state || frame.call_id !== state.id) return state;
  switch (frame.type) {
    case "call_status_changed":
      return {
        ...state,
        status: frame.status as string,
        answered_by: frame.answered_by as string,
        end_reason: (frame.end_reason as string | null) ?? state.end_reason,
      };
    case "desk_changed":
      return {
        ...state, desk: frame.desk as string,
        desk_holder: frame.holder as CallState["desk_holder"],
      };
    case "transcript_added":
      return { ...state, transcript: [...state.transcript, frame.entry as CallState["transcript"][0]] };
    case "call_transfer_changed":
      return { ...state, transfers: afterStep(state.transfers, frame.transfer as TransferBody) };
    case "call_ended":
      return {
        ...state,
        status: frame.status as string,
        duration: frame.duration as number,
        total_cost: frame.total_cost as number,
        evaluation: frame.evaluation as Record<string, unknown>,
      };
    case "call_deleted":
      return null;
    default:
      return state;
  }
}

function afterStep(transfers: TransferState[], step: TransferBody): TransferState[] {
  const { id, type, to, stage, outcome, failure_reason, at } = step;
  const status = outcome === null ? "in-progress" : outcome === "completed" ? outcome : "failed";
  const known = transfers.find((one) => one.id === id)
    ?? { id, type, transfer_to: to, assistant_id: null, created_at: at };
  const others = transfers.filter((one) => one.id !== id);
  return [...others, { ...known, status, outcome, stage, failure_reason }];
}

function created({ id = 0, status = "initiated" }: Partial<CallState>): CallState {
  return {
    id, status, answered_by: "unknown", end_reason: null, transcript: [], duration: 0,
    total_cost: 0, evaluation: {}, transfers: [], desk: "assistant", desk_holder: null,
  };
}
