// The commands that sweeps over all calls run for one account: heartbeats of calls in progress,
// calls closed by a restart, recordings past their retention.
import { failureOf } from "#features/calls/records/failures.ts";
import type { CallStatus } from "#features/calls/records/status.ts";
import { placesOf } from "#features/calls/records/transfers.ts";
import type { Instant } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import type { EndCall } from "./ending.ts";
import { IS_UNFINISHED } from "./rows.ts";
import { reference, type CallRows } from "./steps.ts";
import { isFree, NOBODY, type AsNode } from "#storage/nodes/nodes.ts";
import { createUnwanted } from "#storage/removals.ts";
import type { Sql } from "#storage/sql.ts";

export function callSweepCommands(sql: Sql, rows: CallRows, end: EndCall) {
  return {
    "calls.beat": createBeat(sql),
    "calls.recover": createRecover(sql, rows, end),
    "calls.forgetRecordings": createForgetRecordings(sql),
  };
}

function createBeat(sql: Sql) {
  const beat = sql.prepare(`
    UPDATE calls SET last_beat_at = @at
    WHERE id = @callId AND account_id = @accountId AND status = 'in-progress'
      AND coalesce(node_id, ${NOBODY}) = @nodeId`);
  return async (
    { beats, ...args }: AsNode<{
      accountId: number; beats: { callId: number; at: Instant }[];
    }>,
  ): Promise<void> => {
    for (const one of beats) await beat.run({ ...args, ...one });
  };
}

interface UnfinishedRow {
  id: number;
  node_id: number;
  status: CallStatus;
  last_beat_at: number | null;
  recording_file: string | null;
}

function createRecover(sql: Sql, rows: CallRows, end: EndCall) {
  const unfinished = sql.prepare<object, UnfinishedRow>(`
    SELECT id, coalesce(node_id, ${NOBODY}) AS node_id, status, last_beat_at, recording_file
    FROM calls
    WHERE account_id = @accountId AND ${IS_UNFINISHED} AND ${isFree("calls.node_id")} ORDER BY id`);
  const take = sql.prepare("UPDATE calls SET node_id = @nodeId WHERE id = @callId");
  return async (
    { accountId, silent, nodeId, now }: AsNode<{
      accountId: number; silent: readonly string[]; now: Instant;
    }>,
  ): Promise<CommittedEvent[]> => {
    const events: CommittedEvent[] = [];
    const reason = "server_restarted";
    const failureReason = failureOf({
      reason, isAnswered: true, isOwnLine: true, detail: null, wasMute: false,
    });
    for (const row of await unfinished.all({ accountId })) {
      const { id: callId, status, last_beat_at: beatAt } = row;
      if (status === "ended") {
        await take.run({ callId, nodeId });
        continue;
      }
      if (status === "in-progress") {
        events.push(...await end({
          accountId, callId, nodeId: row.node_id, finalStatus: "failed", reason, failureReason, charge: "lasted",
          turns: [], hasRecording: !silent.includes(row.recording_file ?? ""), silent, now,
          ...(beatAt === null ? {} : { endedAt: beatAt }),
        }));
        continue;
      }
      const call = await rows.find({ accountId, callId });
      if (!call) continue;
      await rows.ledger.release(call.accountId, reference(callId));
      events.push(await rows.change(
        call, { to: "failed", answeredBy: null, reason, failureReason, now }));
      events.push(await rows.publishEnded({ accountId, callId }, now));
    }
    return events;
  };
}

function createForgetRecordings(sql: Sql) {
  const forget = sql.prepare(`
    UPDATE calls SET recording_file = NULL WHERE id = @callId AND account_id = @accountId`);
  const unwanted = createUnwanted(sql);
  return async ({ accountId, callIds, recordings, now }: {
    accountId: number; callIds: number[]; recordings: string[]; now: Instant;
  }): Promise<void> => {
    for (const callId of callIds) await forget.run({ accountId, callId });
    await unwanted.note(recordings.flatMap(placesOf), now);
  };
}
