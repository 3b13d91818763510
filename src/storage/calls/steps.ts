// Steps that several commands of a call take: reading its row, changing its state, and the events
// that are published with both.
import type { AnsweredBy, Call, EndReason } from "#features/calls/records/records.ts";
import { isFinal, type CallStatus } from "#features/calls/records/status.ts";
import { dollarsFromMicros } from "#core/money.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { CommittedData, CommittedEvent } from "#events/events.ts";
import { createLedger } from "#storage/accounts/ledger.ts";
import { createAccountSequence, createEventAppender } from "#storage/events.ts";
import { NOBODY, type AsNode } from "#storage/nodes/nodes.ts";
import { orNull, type Sql } from "#storage/sql.ts";
import { CALL, callFromRow, type CallRow } from "./rows.ts";

type CallRef = { accountId: number; callId: number };
type OwnCall = AsNode<CallRef>;

export const reference = (callId: number): string => `call:${callId}`;

function prepareStatus(sql: Sql) {
  return sql.prepare(`
    UPDATE calls SET status = @to, end_reason = coalesce(@reason, end_reason),
      failure_reason = coalesce(@failureReason, failure_reason),
      answered_by = coalesce(@answeredBy, answered_by),
      answered_at = CASE WHEN @to = 'in-progress' THEN @now ELSE answered_at END,
      last_beat_at = CASE WHEN @to = 'in-progress' THEN @now ELSE last_beat_at END,
      ended_at = CASE WHEN CAST(@isOver AS BIGINT) = 1 AND ended_at IS NULL THEN @now ELSE ended_at END
    WHERE id = @callId`);
}

function createCallReads(sql: Sql) {
  const find = sql.prepare<object, CallRow>(
    `${CALL} WHERE c.id = @callId AND c.account_id = @accountId`);
  const findOwn = sql.prepare<object, CallRow>(`${CALL} WHERE c.id = @callId
    AND c.account_id = @accountId AND coalesce(c.node_id, ${NOBODY}) = @nodeId`);
  return {
    find: async (ref: CallRef): Promise<Call | null> =>
      orNull(await find.get(ref), callFromRow),
    /** Null: the account has no such call, or another node owns it by now. */
    findOwn: async (ref: OwnCall): Promise<Call | null> =>
      orNull(await findOwn.get(ref), callFromRow),
    /** The call exists: the command has found or created it. */
    known: async (ref: CallRef): Promise<Call> => callFromRow(await find.one(ref)),
  };
}

export function createCallRows(sql: Sql) {
  const append = createEventAppender(sql);
  const nextAccountSequence = createAccountSequence(sql);
  const advance = sql.prepare<object, { sequence: number }>(`
    UPDATE calls SET event_sequence = event_sequence + 1, updated_at = @now WHERE id = @callId
    RETURNING event_sequence AS sequence`);
  const setStatus = prepareStatus(sql);
  const { find, findOwn, known } = createCallReads(sql);
  const publish = async (
    call: Call, data: CommittedData, now: Instant,
  ): Promise<CommittedEvent> => {
    const drawn = await advance.get({ callId: call.id, now });
    if (!drawn) throw new Error("an event needs an existing call");
    return append({
      accountId: call.accountId,
      accountSequence: await nextAccountSequence(call.accountId),
      conversation: null,
      call: { id: call.id, sequence: drawn.sequence },
      data,
      now,
    });
  };
  return {
    ledger: createLedger(sql),
    append,
    nextAccountSequence,
    find,
    findOwn,
    known,
    publish,
    /**
     * Makes one transition of the state table and publishes its event; the caller has checked
     * `mayChange`.
     */
    change: async (call: Call, args: {
      to: CallStatus; answeredBy: AnsweredBy | null; reason: EndReason | null;
      failureReason: string | null; now: Instant;
    }): Promise<CommittedEvent> => {
      const { to, answeredBy, reason, failureReason, now } = args;
      const isOver = to === "ended" || isFinal(to) ? 1 : 0;
      await setStatus.run({ callId: call.id, to, answeredBy, reason, failureReason, isOver, now });
      return publish(call, {
        type: "call_status_changed",
        call_id: call.id,
        status: to,
        previous_status: call.status,
        answered_by: answeredBy ?? call.answeredBy,
        end_reason: reason ?? call.endReason,
        at: isoMicros(now),
      }, now);
    },
    /** The last event of every call. */
    publishEnded: async (ref: CallRef, now: Instant): Promise<CommittedEvent> => {
      const call = await known(ref);
      return publish(call, {
        type: "call_ended",
        call_id: call.id,
        status: call.status,
        end_reason: call.endReason,
        failure_reason: call.failureReason,
        duration: call.durationS,
        carrier_cost: dollarsFromMicros(call.carrierCostMicros),
        total_cost: dollarsFromMicros(call.totalCostMicros),
        evaluation: call.evaluation,
        evaluation_error: call.evaluationError,
        has_recording: call.recordingFile !== null,
      }, now);
    },
  };
}

export type CallRows = ReturnType<typeof createCallRows>;
