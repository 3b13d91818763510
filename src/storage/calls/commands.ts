// The commands of a call: create (reserve), change, end (post), finish, delete. Each keeps
// the table of calls/records/status.ts and the law of docs/money.md.
import { isFinal, mayChange, type CallStatus } from "#features/calls/records/status.ts";
import type { CallStore, TranscriptEntry } from "#features/calls/records/records.ts";
import { senderOf } from "#features/calls/records/transcript.ts";
import { isoMicros } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import { NOBODY, type AsNode } from "#storage/nodes/nodes.ts";
import { together, type Sql } from "#storage/sql.ts";
import { createOnce } from "./creation.ts";
import { callDeletionCommands, type Settling } from "./deletion.ts";
import { callDeskCommands, createCallDeskMove } from "./desk.ts";
import { createEnd } from "./ending.ts";
import { IS_FINAL } from "./rows.ts";
import { createCallRows, reference, type CallRows } from "./steps.ts";
import { callSweepCommands } from "./sweeps.ts";
import { callTransferCommands } from "./transfers.ts";

type Args<Name extends keyof CallStore> = Parameters<CallStore[Name]>[0];

export function callCommands(sql: Sql, campaigns: Settling) {
  const rows = createCallRows(sql);
  const moveDesk = createCallDeskMove(sql, rows);
  const end = createEnd(sql, rows, moveDesk);
  return {
    "calls.create": createOnce(sql, rows),
    "calls.change": createChange(sql, rows),
    "calls.setVariables": createSetVariables(sql),
    ...callTransferCommands(sql, rows),
    ...callDeskCommands(rows, moveDesk),
    "calls.addTranscript": createAddTranscript(sql, rows),
    "calls.end": end,
    "calls.finish": createFinish(sql, rows),
    ...callSweepCommands(sql, rows, end),
    ...callDeletionCommands(sql, rows, campaigns),
  };
}

function createChange(sql: Sql, rows: CallRows) {
  const setAnsweredBy = sql.prepare("UPDATE calls SET answered_by = @answeredBy WHERE id = @callId");
  const setMedia = sql.prepare(
    `UPDATE calls SET recording_file = @recordingFile, hearing = @hearing, warnings = @warnings,
       carrier_price_per_minute = @carrierPerMinute
     WHERE id = @callId`);
  return async (args: AsNode<Args<"change">>): Promise<CommittedEvent[]> => {
    const { callId, to, answeredBy, reason, recordingFile = null, hearing = null, now } = args;
    const call = await rows.findOwn(args);
    if (!call) return [];
    if (answeredBy !== undefined && call.status === to && answeredBy !== call.answeredBy) {
      // Learned during the call: the status stays, but watchers are notified.
      await setAnsweredBy.run({ callId, answeredBy });
      return [await rows.publish(call, {
        type: "call_status_changed", call_id: callId, status: to, previous_status: to,
        answered_by: answeredBy, end_reason: null, at: isoMicros(now),
      }, now)];
    }
    // A call in progress is ended by `end`, which settles its cost.
    if (!mayChange(call.status, to) || call.status === "in-progress" || call.status === "ended") {
      return [];
    }
    const events = [
      await rows.change(call, {
        to, answeredBy: answeredBy ?? null, reason: reason ?? null,
        failureReason: args.failureReason ?? null, now,
      }),
    ];
    if (to === "in-progress") {
      const warnings = JSON.stringify(args.warnings ?? []);
      const { carrierMicrosPerMinute: carrierPerMinute = 0 } = args;
      await setMedia.run({ callId, recordingFile, hearing, warnings, carrierPerMinute });
    }
    if (!isFinal(to)) return events;
    await rows.ledger.release(call.accountId, reference(callId));
    return [...events, await rows.publishEnded(args, now)];
  };
}

function createSetVariables(sql: Sql) {
  const set = sql.prepare(`
    UPDATE calls SET variables = @variables WHERE id = @callId AND account_id = @accountId`);
  return async ({ accountId, callId, variables }: Args<"setVariables">): Promise<void> =>
    void await set.run({ accountId, callId, variables: JSON.stringify(variables) });
}

function createAddTranscript(sql: Sql, rows: CallRows) {
  // `call_ended` is the last event of a call.
  const draw = sql.prepare<object, { number: number; sequence: number }>(`
    UPDATE calls SET entries = entries + 1, event_sequence = event_sequence + 1, updated_at = @now
    WHERE id = @callId AND account_id = @accountId AND NOT ${IS_FINAL}
      AND coalesce(node_id, ${NOBODY}) = @nodeId
    RETURNING entries AS number, event_sequence AS sequence`);
  const insert = sql.prepare(`
    INSERT INTO call_entries (call_id, number, speaker, author, text, start_ms, end_ms, interrupted,
      function_calls, transfer)
    VALUES (@callId, @number, @speaker, @author, @text, @startMs, @endMs, @interrupted,
      @functionCalls, @transfer)`);
  return async (
    { accountId, callId, nodeId, entry, now }: AsNode<Args<"addTranscript">>,
  ): Promise<CommittedEvent[]> => {
    const drawn = await draw.get({ accountId, callId, nodeId, now });
    if (!drawn) return [];
    const { number, sequence } = drawn;
    const { author, functionCalls, interrupted, speaker, transfer = null } = entry;
    const [, accountSequence] = await together(
      insert.run({
        ...entry, transfer, callId, number, interrupted: interrupted ? 1 : 0,
        speaker: speaker === "operator" ? "assistant" : speaker,
        author: author ? JSON.stringify(author) : null,
        functionCalls: functionCalls.length > 0 ? JSON.stringify(functionCalls) : null,
      }),
      rows.nextAccountSequence(accountId),
    );
    return [await rows.append({
      accountId,
      accountSequence,
      conversation: null,
      call: { id: callId, sequence },
      data: { type: "transcript_added", call_id: callId, entry: bodyOf({ ...entry, number }) },
      now,
    })];
  };
}

const bodyOf = (entry: TranscriptEntry) => ({
  number: entry.number,
  sender: senderOf(entry),
  ...(entry.author ? { author: entry.author } : {}),
  text: entry.text,
  start_ms: entry.startMs,
  end_ms: entry.endMs,
  interrupted: entry.interrupted,
  ...(entry.functionCalls.length > 0 ? { function_calls: entry.functionCalls } : {}),
  ...(entry.transfer === undefined ? {} : { transfer: entry.transfer }),
});

function createFinish(sql: Sql, rows: CallRows) {
  const read = sql.prepare<object, { final_status: CallStatus | null }>(
    "SELECT final_status FROM calls WHERE id = @callId");
  const set = sql.prepare(`
    UPDATE calls SET evaluation = @evaluation, evaluation_error = @evaluationError
    WHERE id = @callId`);
  return async (args: AsNode<Args<"finish">>): Promise<CommittedEvent[]> => {
    const { callId, evaluation, evaluationError, now } = args;
    const call = await rows.findOwn(args);
    const to = (await read.get({ callId }))?.final_status;
    if (!call || !to || !mayChange(call.status, to)) return [];
    await set.run({ callId, evaluation: JSON.stringify(evaluation), evaluationError });
    const changed = await rows.change(
      call, { to, answeredBy: null, reason: null, failureReason: null, now });
    return [changed, await rows.publishEnded(args, now)];
  };
}
