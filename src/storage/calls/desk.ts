// The desk's commands for a call: who holds it, and what a colleague whispered to its assistant.
// The allowed changes are in features/conversations/desk/desk.ts.
import type { Call, CallDeskOutcome, CallStore } from "#features/calls/records/records.ts";
import { changeDesk, type Desk, type DeskMove } from "#features/conversations/desk/desk.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { Author, CommittedEvent, DeskActor, DeskReason } from "#events/events.ts";
import type { CallRows } from "./steps.ts";
import type { AsNode } from "#storage/nodes/nodes.ts";
import type { Sql } from "#storage/sql.ts";

type Args<Name extends keyof CallStore> = Parameters<CallStore[Name]>[0];

interface DeskStep {
  move: DeskMove;
  by: DeskActor;
  reason: DeskReason;
  holder: Author | null;
  now: Instant;
}

export type MoveCallDesk = ReturnType<typeof createCallDeskMove>;

/** One legal change with its event, as a step of another command. */
export function createCallDeskMove(sql: Sql, rows: Pick<CallRows, "publish">) {
  const update = sql.prepare(`
    UPDATE calls SET desk = @desk, desk_holder = @holderId, desk_holder_name = @holderName,
      desk_reason = @reason, desk_at = @now
    WHERE id = @callId`);
  return async (
    call: Call, { move, by, reason, holder: wished, now }: DeskStep,
  ): Promise<{ kind: "moved"; desk: Desk; events: CommittedEvent[] }
    | { kind: "held"; holder: Author }> => {
    const change = changeDesk(call.desk, move, wished);
    if (change.kind === "held") return change;
    if (change.kind === "unchanged") return { kind: "moved", desk: call.desk, events: [] };
    const { state, holder } = change;
    await update.run({
      callId: call.id, desk: state, holderId: holder?.id ?? null, holderName: holder?.name ?? null,
      reason, now,
    });
    const event = await rows.publish(call, {
      type: "desk_changed", call_id: call.id, desk: state, by, reason, holder, at: isoMicros(now),
    }, now);
    return { kind: "moved", desk: { state, holder, reason, at: now }, events: [event] };
  };
}

export function callDeskCommands(rows: CallRows, moveDesk: MoveCallDesk) {
  const findTalk = async (args: AsNode<{ accountId: number; callId: number }>) => {
    const call = await rows.findOwn(args);
    return call?.status === "in-progress" ? call : null;
  };
  return {
    "calls.moveDesk": async (args: AsNode<Args<"moveDesk">>): Promise<CallDeskOutcome> => {
      const call = await findTalk(args);
      return call ? moveDesk(call, args) : { kind: "not_live" };
    },
    "calls.whisper": async (args: AsNode<Args<"whisper">>): Promise<CommittedEvent[] | null> => {
      const { by, text, now } = args;
      const call = await findTalk(args);
      if (!call) return null;
      return [await rows.publish(call, {
        type: "call_whispered", call_id: call.id, by, text, at: isoMicros(now),
      }, now)];
    },
  };
}
