// The commands of a call: create (reserve), change, end (post), finish, recover, delete. Each keeps
// the table of calls/status.ts and the law of docs/money.md: what a call costs is posted in the
// transaction that ends it, once, and never more than was set aside.
import { failureOf, type Charge } from "#features/calls/failures.ts";
import { isFinal, mayChange, type CallStatus } from "#features/calls/status.ts";
import type {
  AnsweredBy, Call, CallStore, CreateCallOutcome, EndReason, NewCall, RecoveredCalls,
  TranscriptEntry,
} from "#features/calls/records.ts";
import { settled } from "#features/calls/transfers.ts";
import { dollarsFromMicros, type Micros } from "#core/money.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { CommittedData, CommittedEvent } from "#events/events.ts";
import { barredReason } from "#features/phone-numbers/dial-guard.ts";
import { callTransferCommands } from "./call-transfers.ts";
import { CALL, callFromRow, IS_LIVE, type CallRow } from "./calls.ts";
import type { Db } from "./engines/sqlite/database.ts";
import { createDialRates } from "./dial-rates.ts";
import { createAccountSequence, createEventAppender } from "./events.ts";
import { createLedger } from "./ledger.ts";

type Args<Name extends keyof CallStore> = Parameters<CallStore[Name]>[0];

const SECOND = 1_000_000;
/** The shortest call that is billed. */
export const BILLED_SECONDS_MIN = 30;

const reference = (callId: number): string => `call:${callId}`;

/** Of so many seconds of talk, rounded up to the micro-dollar. */
export const talkCost = (seconds: number, pricePerMinute: Micros): Micros =>
  Math.ceil((Math.max(seconds, BILLED_SECONDS_MIN) * pricePerMinute) / 60);

export function callCommands(db: Db) {
  const rows = createCallRows(db);
  const end = createEnd(db, rows);
  return {
    "calls.create": createCreate(db, rows),
    "calls.change": createChange(db, rows),
    "calls.setVariables": createSetVariables(db),
    ...callTransferCommands(db),
    "calls.addTranscript": createAddTranscript(db, rows),
    "calls.end": end,
    "calls.finish": createFinish(db, rows),
    "calls.beat": createBeat(db),
    "calls.recover": createRecover(db, rows, end),
    "calls.delete": createDelete(db, rows),
    "calls.expireRecordings": createExpireRecordings(db),
  };
}

/** Steps more than one command takes. */
function prepareStatus(db: Db) {
  return db.prepare(`
    UPDATE calls SET status = @to, end_reason = coalesce(@reason, end_reason),
      failure_reason = coalesce(@failureReason, failure_reason),
      answered_by = coalesce(@answeredBy, answered_by),
      answered_at = CASE WHEN @to = 'in-progress' THEN @now ELSE answered_at END,
      last_beat_at = CASE WHEN @to = 'in-progress' THEN @now ELSE last_beat_at END,
      ended_at = CASE WHEN @isOver = 1 AND ended_at IS NULL THEN @now ELSE ended_at END
    WHERE id = @callId`);
}

function createCallRows(db: Db) {
  const append = createEventAppender(db);
  const nextAccountSequence = createAccountSequence(db);
  const advance = db.prepare<[object], { sequence: number }>(`
    UPDATE calls SET event_sequence = event_sequence + 1, updated_at = @now WHERE id = @callId
    RETURNING event_sequence AS sequence`);
  const find = db.prepare<[object], CallRow>(`${CALL} WHERE c.id = @callId`);
  const setStatus = prepareStatus(db);
  const find1 = (callId: number): Call | null => {
    const row = find.get({ callId });
    return row ? callFromRow(row) : null;
  };
  const tell = (call: Call, data: CommittedData, now: Instant): CommittedEvent => {
    const drawn = advance.get({ callId: call.id, now });
    if (!drawn) throw new Error("an event needs an existing call");
    return append({
      accountId: call.accountId,
      accountSequence: nextAccountSequence(call.accountId, 1),
      conversation: null,
      call: { id: call.id, sequence: drawn.sequence },
      data,
      now,
    });
  };
  return {
    ledger: createLedger(db),
    append,
    nextAccountSequence,
    find: find1,
    tell,
    /** One row of the table of states, told as an event. The caller has asked `mayChange`. */
    change: (call: Call, args: {
      to: CallStatus; answeredBy: AnsweredBy | null; reason: EndReason | null;
      failureReason: string | null; now: Instant;
    }): CommittedEvent => {
      const { to, answeredBy, reason, failureReason, now } = args;
      const isOver = to === "ended" || isFinal(to) ? 1 : 0;
      setStatus.run({ callId: call.id, to, answeredBy, reason, failureReason, isOver, now });
      return tell(call, {
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
    tellEnded: (callId: number, now: Instant): CommittedEvent => {
      const call = find1(callId);
      if (!call) throw new Error("the call is gone");
      return tell(call, {
        type: "call_ended",
        call_id: callId,
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

type CallRows = ReturnType<typeof createCallRows>;

/** Begins a call as a step of another command. */
export const createCallBegin = (db: Db): (args: NewCall) => CreateCallOutcome =>
  createCreate(db, createCallRows(db));

function createCreate(db: Db, rows: CallRows): (args: NewCall) => CreateCallOutcome {
  const free = db.prepare<[object], { micros: number }>(
    "SELECT balance_micros - reserved_micros AS micros FROM accounts WHERE id = @accountId");
  const live = db.prepare<[object], { calls: number }>(
    `SELECT count(*) AS calls FROM calls WHERE account_id = @accountId AND ${IS_LIVE}`);
  const insert = db.prepare(`
    INSERT INTO calls (account_id, assistant_id, type, status, conversation_uuid, assistant_phone,
      customer_phone, variables, campaign_id, lead_id, price_per_minute, created_at, updated_at)
    VALUES (@accountId, @assistantId, @type, 'initiated', @conversationUuid, @assistantPhone,
      @customerPhone, @variables, @campaignId, @leadId, @priceMicrosPerMinute, @now, @now)`);
  const takeTurn = createDialRates(db);
  const blocked = db.prepare(`
    SELECT 1 FROM blocked_numbers WHERE account_id = @accountId AND phone_number = @customerPhone`);
  return (args) => {
    const { accountId, assistant, variables, customerPhone, dialling, origin, now } = args;
    const isOutbound = args.type === "outbound";
    if (isOutbound && blocked.get({ accountId, customerPhone })) return { kind: "blocked" };
    const reason = isOutbound ? barredReason(customerPhone ?? "", dialling.countries) : null;
    if (reason !== null) return { kind: "barred", reason };
    if ((live.get({ accountId })?.calls ?? 0) >= args.parallelMax) return { kind: "too_many_calls" };
    const freeMicros = free.get({ accountId })?.micros ?? 0;
    if (freeMicros < args.reserveMinMicros) return { kind: "balance_too_low" };
    // Last: only a call that begins is counted.
    const until = isOutbound ? takeTurn(accountId, dialling.perMinute, now) : null;
    if (until !== null) return { kind: "too_fast", until };
    const reservedMicros = Math.min(args.reserveMaxMicros, freeMicros);
    const callId = Number(insert.run({
      ...args, assistant: null, assistantId: assistant.id, variables: JSON.stringify(variables),
      dialling: null,
      origin: null, campaignId: origin?.campaignId ?? null, leadId: origin?.leadId ?? null,
    }).lastInsertRowid);
    if (reservedMicros > 0) {
      const held = rows.ledger.reserve({
        accountId, reference: reference(callId), amountMicros: reservedMicros, events: 0, now,
      });
      if (!held) throw new Error("what is free could not be reserved");
    }
    const call = rows.find(callId);
    if (!call) throw new Error("an insert returned no row");
    const event = rows.tell(call, {
      type: "call_created",
      call_id: callId,
      call: {
        id: callId,
        assistant_id: call.assistantUuid,
        assistant_name: call.assistantName,
        type: call.type,
        status: call.status,
        assistant_phone_number: call.assistantPhone,
        client_phone_number: call.customerPhone,
        variables,
        created_at: isoMicros(now),
      },
    }, now);
    return { kind: "created", call: { ...call, eventSequence: 1 }, reservedMicros, events: [event] };
  };
}

function createChange(db: Db, rows: CallRows) {
  const setAnsweredBy = db.prepare("UPDATE calls SET answered_by = @answeredBy WHERE id = @callId");
  const setMedia = db.prepare(
    `UPDATE calls SET recording_file = @recordingFile, hearing = @hearing, warnings = @warnings,
       carrier_price_per_minute = @carrierPerMinute
     WHERE id = @callId`);
  return (args: Args<"change">): CommittedEvent[] => {
    const { callId, to, answeredBy, reason, recordingFile = null, hearing = null, now } = args;
    const call = rows.find(callId);
    if (!call) return [];
    if (answeredBy !== undefined && call.status === to && answeredBy !== call.answeredBy) {
      // Found out while they talk: no change of state, but one that watchers see.
      setAnsweredBy.run({ callId, answeredBy });
      return [rows.tell(call, {
        type: "call_status_changed", call_id: callId, status: to, previous_status: to,
        answered_by: answeredBy, end_reason: null, at: isoMicros(now),
      }, now)];
    }
    // A call that talks ends by `end`, which settles what it costs.
    if (!mayChange(call.status, to) || call.status === "in-progress" || call.status === "ended") {
      return [];
    }
    const events = [
      rows.change(call, {
        to, answeredBy: answeredBy ?? null, reason: reason ?? null,
        failureReason: args.failureReason ?? null, now,
      }),
    ];
    if (to === "in-progress") {
      const warnings = JSON.stringify(args.warnings ?? []);
      const { carrierMicrosPerMinute: carrierPerMinute = 0 } = args;
      setMedia.run({ callId, recordingFile, hearing, warnings, carrierPerMinute });
    }
    if (!isFinal(to)) return events;
    rows.ledger.release(reference(callId));
    return [...events, rows.tellEnded(callId, now)];
  };
}

function createSetVariables(db: Db) {
  const set = db.prepare("UPDATE calls SET variables = @variables WHERE id = @callId");
  return ({ callId, variables }: Args<"setVariables">): void =>
    void set.run({ callId, variables: JSON.stringify(variables) });
}

function createAddTranscript(db: Db, rows: CallRows) {
  const draw = db.prepare<[object], { number: number }>(
    "UPDATE calls SET entries = entries + 1 WHERE id = @callId RETURNING entries AS number");
  const insert = db.prepare(`
    INSERT INTO call_entries (call_id, number, speaker, text, start_ms, end_ms, interrupted,
      function_calls)
    VALUES (@callId, @number, @speaker, @text, @startMs, @endMs, @interrupted, @functionCalls)`);
  return ({ callId, entry, now }: Args<"addTranscript">): CommittedEvent[] => {
    const call = rows.find(callId);
    // `call_ended` is the last event of a call.
    if (!call || isFinal(call.status)) return [];
    const number = draw.get({ callId })?.number;
    if (number === undefined) return [];
    const { functionCalls, interrupted } = entry;
    insert.run({
      ...entry, callId, number, interrupted: interrupted ? 1 : 0,
      functionCalls: functionCalls.length > 0 ? JSON.stringify(functionCalls) : null,
    });
    return [rows.tell(call, {
      type: "transcript_added", call_id: callId, entry: bodyOf({ ...entry, number }),
    }, now)];
  };
}

export const bodyOf = (entry: TranscriptEntry) => ({
  number: entry.number,
  sender: entry.speaker === "assistant" ? "bot" as const : "human" as const,
  text: entry.text,
  start_ms: entry.startMs,
  end_ms: entry.endMs,
  interrupted: entry.interrupted,
  ...(entry.functionCalls.length > 0 ? { function_calls: entry.functionCalls } : {}),
});

/** What the account owes for its talk, by how it ended. */
function owedOf(
  charge: Charge,
  { lastedMicros, seconds, perMinute }: {
    lastedMicros: number; seconds: number; perMinute: Micros;
  },
): Micros {
  if (charge === "nothing") return 0;
  return charge === "full"
    ? talkCost(seconds, perMinute)
    : Math.floor((Math.max(0, lastedMicros) * perMinute) / (60 * SECOND));
}

function createEnd(db: Db, rows: CallRows) {
  const prices = db.prepare<[object], { ours: Micros; carriers: Micros }>(`
    SELECT price_per_minute AS ours, carrier_price_per_minute AS carriers FROM calls
    WHERE id = @callId`);
  const settle = db.prepare(`
    UPDATE calls SET duration_seconds = @seconds, carrier_cost_micros = @carrierCostMicros,
      total_cost_micros = @totalMicros, final_status = @finalStatus, turns = @turns,
      transfers = @transfers,
      recording_file = iif(@hasRecording = 1, recording_file, NULL), ended_at = @endedAt
    WHERE id = @callId`);
  return (args: Args<"end"> & { endedAt?: Instant }): CommittedEvent[] => {
    const { callId, finalStatus, reason, now } = args;
    const call = rows.find(callId);
    if (!call || call.status !== "in-progress" || call.answeredAt === null) return [];
    const endedAt = args.endedAt ?? now;
    const seconds = Math.max(0, Math.ceil((endedAt - call.answeredAt) / SECOND));
    const { ours: perMinute, carriers } = prices.get({ callId }) ?? { ours: 0, carriers: 0 };
    const owed = owedOf(
      args.charge ?? "full", { lastedMicros: endedAt - call.answeredAt, seconds, perMinute });
    const posted = owed > 0
      ? rows.ledger.post({
          reference: reference(callId), kind: "call", amountMicros: owed, now,
        })
      : null;
    if (!posted) rows.ledger.release(reference(callId));
    settle.run({
      callId, seconds, finalStatus, endedAt,
      // Carriers bill whole minutes.
      carrierCostMicros: Math.ceil(seconds / 60) * carriers,
      totalMicros: posted ? -posted.amountMicros : 0,
      turns: JSON.stringify(args.turns),
      transfers: JSON.stringify(settled(call.transfers, { ...args, endedAt })),
      hasRecording: args.hasRecording ? 1 : 0,
    });
    const to = finalStatus === "failed" ? "failed" : "ended";
    const events = [
      ...(posted?.events ?? []),
      rows.change(call, {
        to, answeredBy: null, reason, failureReason: args.failureReason ?? null, now,
      }),
    ];
    return to === "failed" ? [...events, rows.tellEnded(callId, now)] : events;
  };
}

function createFinish(db: Db, rows: CallRows) {
  const read = db.prepare<[object], { final_status: CallStatus | null }>(
    "SELECT final_status FROM calls WHERE id = @callId");
  const set = db.prepare(`
    UPDATE calls SET evaluation = @evaluation, evaluation_error = @evaluationError
    WHERE id = @callId`);
  return ({ callId, evaluation, evaluationError, now }: Args<"finish">): CommittedEvent[] => {
    const call = rows.find(callId);
    const to = read.get({ callId })?.final_status;
    if (!call || !to || !mayChange(call.status, to)) return [];
    set.run({ callId, evaluation: JSON.stringify(evaluation), evaluationError });
    const changed = rows.change(
      call, { to, answeredBy: null, reason: null, failureReason: null, now });
    return [changed, rows.tellEnded(callId, now)];
  };
}

function createBeat(db: Db) {
  const beat = db.prepare(`
    UPDATE calls SET last_beat_at = @now WHERE id = @callId AND status = 'in-progress'`);
  return ({ callIds, now }: Args<"beat">): void => {
    for (const callId of callIds) beat.run({ callId, now });
  };
}

interface UnfinishedRow {
  id: number;
  status: CallStatus;
  last_beat_at: number | null;
  recording_file: string | null;
}

function createRecover(db: Db, rows: CallRows, end: ReturnType<typeof createEnd>) {
  const unfinished = db.prepare<[], UnfinishedRow>(`
    SELECT id, status, last_beat_at, recording_file FROM calls
    WHERE status IN ('initiated', 'ringing', 'in-progress', 'ended') ORDER BY id`);
  return ({ now }: { now: Instant }): RecoveredCalls => {
    const events: CommittedEvent[] = [];
    const cut: string[] = [];
    const late: number[] = [];
    const reason = "server_restarted";
    const failureReason = failureOf({
      reason, isAnswered: true, isOwnLine: true, detail: null, wasMute: false,
    });
    for (const row of unfinished.all()) {
      const { id: callId, status, last_beat_at: beatAt } = row;
      if (status === "ended") {
        late.push(callId);
        continue;
      }
      if (status === "in-progress") {
        if (row.recording_file !== null) cut.push(row.recording_file);
        events.push(...end({
          callId, finalStatus: "failed", reason, failureReason, charge: "lasted",
          turns: [], hasRecording: true, now,
          ...(beatAt === null ? {} : { endedAt: beatAt }),
        }));
        continue;
      }
      const call = rows.find(callId);
      if (!call) continue;
      rows.ledger.release(reference(callId));
      events.push(rows.change(
        call, { to: "failed", answeredBy: null, reason, failureReason, now }));
      events.push(rows.tellEnded(callId, now));
    }
    return { events, unfinished: late, cut };
  };
}

function createDelete(db: Db, rows: CallRows) {
  // The account's numbering must have no holes: events it was told stay, what they said goes.
  const blankEvents = db.prepare(`
    UPDATE events SET call_id = NULL, sequence = 0, type = 'call_deleted', data = @data
    WHERE call_id = @callId`);
  const remove = db.prepare("DELETE FROM calls WHERE id = @callId");
  return ({ accountId, callId, now }: Args<"delete">) => {
    const call = rows.find(callId);
    if (call?.accountId !== accountId) return { kind: "not_found" as const };
    if (!isFinal(call.status)) return { kind: "live" as const };
    const data = { type: "call_deleted", call_id: callId } as const;
    blankEvents.run({ callId, data: JSON.stringify(data) });
    const event = rows.append({
      accountId,
      accountSequence: rows.nextAccountSequence(accountId, 1),
      conversation: null,
      data,
      now,
    });
    remove.run({ callId });
    return { kind: "deleted" as const, recordingFile: call.recordingFile, events: [event] };
  };
}

function createExpireRecordings(db: Db) {
  const expire = db.prepare<[object], { recording_file: string }>(`
    SELECT recording_file FROM calls WHERE recording_file IS NOT NULL AND ended_at < @before
    ORDER BY ended_at LIMIT @rows`);
  const forget = db.prepare(
    "UPDATE calls SET recording_file = NULL WHERE recording_file = @file");
  return (args: Args<"expireRecordings">): string[] => {
    const files = expire.all(args).map(({ recording_file: file }) => file);
    for (const file of files) forget.run({ file });
    return files;
  };
}
