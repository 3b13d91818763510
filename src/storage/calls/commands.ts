// The commands of a call: create (reserve), change, end (post), finish, delete. Each keeps
// the table of calls/records/status.ts and the law of docs/money.md: what a call costs is posted in
// the transaction that ends it, once, and never more than was set aside.
import type { Charge } from "#features/calls/records/failures.ts";
import { isFinal, mayChange, type CallStatus } from "#features/calls/records/status.ts";
import type {
  AnsweredBy, AskedNewCall, Call, CallStore, CreateCallOutcome, EndReason, NewCall,
  TranscriptEntry,
} from "#features/calls/records/records.ts";
import { senderOf } from "#features/calls/records/transcript.ts";
import {
  legCarrierCost, legSeconds, settled, withoutSilent, type Transfer,
} from "#features/calls/records/transfers.ts";
import { dollarsFromMicros, type Micros } from "#core/money.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { CommittedData, CommittedEvent } from "#events/events.ts";
import { barredReason } from "#features/phone-numbers/dial-guard.ts";
import { callDeletionCommands } from "./deletion.ts";
import { callDeskCommands, createCallDeskMove, type MoveCallDesk } from "./desk.ts";
import { callSweepCommands } from "./sweeps.ts";
import { callTransferCommands, publishStep } from "./transfers.ts";
import {
  CALL, callFromRow, IS_FINAL, IS_LIVE, type CallRow,
} from "./rows.ts";
import { createDialRates } from "./dial-rates.ts";
import { createAccountSequence, createEventAppender } from "#storage/events.ts";
import { createLedger } from "#storage/accounts/ledger.ts";
import { NOBODY, type AsNode } from "#storage/nodes/nodes.ts";
import { together, type Exists, type Sql } from "#storage/sql.ts";

type Args<Name extends keyof CallStore> = Parameters<CallStore[Name]>[0];
type CallRef = { accountId: number; callId: number };
type OwnCall = AsNode<CallRef>;

const SECOND = 1_000_000;
/** The shortest call that is billed. */
const BILLED_SECONDS_MIN = 30;

export const reference = (callId: number): string => `call:${callId}`;

/** The price of so many seconds of talk, rounded up to the micro-dollar. */
export const talkCost = (seconds: number, pricePerMinute: Micros): Micros =>
  Math.ceil((Math.max(seconds, BILLED_SECONDS_MIN) * pricePerMinute) / 60);

export function callCommands(sql: Sql) {
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
    ...callDeletionCommands(sql, rows),
  };
}

/** Steps more than one command takes. */
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
  const orNull = (row: CallRow | undefined): Call | null => (row ? callFromRow(row) : null);
  return {
    find: async (ref: CallRef): Promise<Call | null> => orNull(await find.get(ref)),
    /** Null: the account has none, or it is another node's by now. */
    findOwn: async (ref: OwnCall): Promise<Call | null> => orNull(await findOwn.get(ref)),
    /** The call is there: the command has found or created it. */
    known: async (ref: CallRef): Promise<Call> => callFromRow(await find.one(ref)),
  };
}

function createCallRows(sql: Sql) {
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
      accountSequence: await nextAccountSequence(call.accountId, 1),
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
    /** One row of the table of states, published as an event. The caller has asked `mayChange`. */
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

/** Begins a call as a step of another command. */
export const createCallBegin = (
  sql: Sql,
): (args: AsNode<NewCall>) => Promise<CreateCallOutcome> => createCreate(sql, createCallRows(sql));

/** Asked for again under its key, a call is the one there is. */
function createOnce(sql: Sql, rows: CallRows) {
  const create = createCreate(sql, rows);
  const known = sql.prepare<object, { id: number }>(
    "SELECT id FROM calls WHERE account_id = @accountId AND idempotency_key = @key");
  const mark = sql.prepare("UPDATE calls SET idempotency_key = @key WHERE id = @callId");
  return async (
    { idempotencyKey: key, ...args }: AsNode<AskedNewCall>,
  ): Promise<CreateCallOutcome | { kind: "repeated"; call: Call }> => {
    const { accountId } = args;
    const earlier = key === null ? undefined : await known.get({ accountId, key });
    if (earlier) {
      return { kind: "repeated", call: await rows.known({ accountId, callId: earlier.id }) };
    }
    const outcome = await create(args);
    if (key !== null && outcome.kind === "created") {
      await mark.run({ key, callId: outcome.call.id });
    }
    return outcome;
  };
}

function createCreate(
  sql: Sql, rows: CallRows,
): (args: AsNode<NewCall>) => Promise<CreateCallOutcome> {
  const free = sql.prepare<object, { micros: number }>(
    "SELECT balance_micros - reserved_micros AS micros FROM accounts WHERE id = @accountId");
  const live = sql.prepare<object, { calls: number }>(
    `SELECT count(*) AS calls FROM calls WHERE account_id = @accountId AND ${IS_LIVE}`);
  const insert = sql.prepare(`
    INSERT INTO calls (account_id, assistant_id, type, status, conversation_uuid, assistant_phone,
      customer_phone, variables, campaign_id, lead_id, price_per_minute, node_id, created_at,
      updated_at)
    VALUES (@accountId, @assistantId, @type, 'initiated', @conversationUuid, @assistantPhone,
      @customerPhone, @variables, @campaignId, @leadId, @priceMicrosPerMinute, @nodeId, @now,
      @now)`);
  const takeTurn = createDialRates(sql);
  const blocked = sql.prepare<object, Exists>(`
    SELECT 1 FROM blocked_numbers WHERE account_id = @accountId AND phone_number = @customerPhone`);
  return async (args) => {
    const { accountId, assistant, variables, customerPhone, dialling, origin, now } = args;
    const isOutbound = args.type === "outbound";
    if (isOutbound && await blocked.get({ accountId, customerPhone })) return { kind: "blocked" };
    const reason = isOutbound ? barredReason(customerPhone ?? "", dialling.countries) : null;
    if (reason !== null) return { kind: "barred", reason };
    if (((await live.get({ accountId }))?.calls ?? 0) >= args.parallelMax) {
      return { kind: "too_many_calls" };
    }
    const freeMicros = (await free.get({ accountId }))?.micros ?? 0;
    if (freeMicros < args.reserveMinMicros) return { kind: "balance_too_low" };
    // Last: only a call that begins is counted.
    const until = isOutbound ? await takeTurn(accountId, dialling.perMinute, now) : null;
    if (until !== null) return { kind: "too_fast", until };
    const reservedMicros = Math.min(args.reserveMaxMicros, freeMicros);
    const callId = await insert.insert({
      ...args, assistant: null, assistantId: assistant.id, variables: JSON.stringify(variables),
      dialling: null,
      origin: null, campaignId: origin?.campaignId ?? null, leadId: origin?.leadId ?? null,
    });
    if (reservedMicros > 0) {
      const isReserved = await rows.ledger.reserve({
        accountId, reference: reference(callId), amountMicros: reservedMicros, now,
      });
      if (!isReserved) throw new Error("what is free could not be reserved");
    }
    const call = await rows.known({ accountId, callId });
    const event = await rows.publish(call, {
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
      // Found out while they talk: no change of state, but one that watchers see.
      await setAnsweredBy.run({ callId, answeredBy });
      return [await rows.publish(call, {
        type: "call_status_changed", call_id: callId, status: to, previous_status: to,
        answered_by: answeredBy, end_reason: null, at: isoMicros(now),
      }, now)];
    }
    // A call that talks ends by `end`, which settles what it costs.
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
      rows.nextAccountSequence(accountId, 1),
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

/** What the account owes for one leg, by how the call ended. */
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

export type EndCall = ReturnType<typeof createEnd>;

/** Each leg to a colleague that was answered is billed like a call that was placed. */
const owedForLegs = (charge: Charge, transfers: readonly Transfer[], perMinute: Micros): Micros =>
  transfers.reduce((sum, one) => {
    const { leg, finishedAt } = one;
    if (!leg || leg.answeredAt === null || finishedAt === null) return sum;
    const lastedMicros = finishedAt - leg.answeredAt;
    return sum + owedOf(charge, { lastedMicros, seconds: legSeconds(one), perMinute });
  }, 0);

function createEnd(sql: Sql, rows: CallRows, moveDesk: MoveCallDesk) {
  const prices = sql.prepare<object, { ours: Micros; carriers: Micros }>(`
    SELECT price_per_minute AS ours, carrier_price_per_minute AS carriers FROM calls
    WHERE id = @callId`);
  const settle = sql.prepare(`
    UPDATE calls SET duration_seconds = @seconds, carrier_cost_micros = @carrierCostMicros,
      total_cost_micros = @totalMicros, final_status = @finalStatus, turns = @turns,
      quality = @quality, transfers = @transfers,
      recording_file = CASE WHEN CAST(@hasRecording AS BIGINT) = 1 THEN recording_file END, ended_at = @endedAt
    WHERE id = @callId`);
  return async (args: AsNode<Args<"end">>): Promise<CommittedEvent[]> => {
    const { callId, finalStatus, reason, now } = args;
    const call = await rows.findOwn(args);
    if (!call || call.status !== "in-progress" || call.answeredAt === null) return [];
    const endedAt = Math.max(args.endedAt ?? now, call.answeredAt);
    const seconds = Math.max(0, Math.ceil((endedAt - call.answeredAt) / SECOND));
    const { ours: perMinute, carriers } = await prices.get({ callId }) ?? { ours: 0, carriers: 0 };
    const { charge = "full", silent = [] } = args;
    const transfers = settled(call.transfers, { ...args, endedAt });
    const owed = owedOf(charge, { lastedMicros: endedAt - call.answeredAt, seconds, perMinute })
      + owedForLegs(charge, transfers, perMinute);
    const steps: CommittedEvent[] = [];
    for (const [at, one] of transfers.entries()) {
      if (!one.leg || one === call.transfers[at]) continue;
      steps.push(await publishStep(rows, call, at + 1, one, now));
    }
    const posted = owed > 0
      ? await rows.ledger.post({
          accountId: call.accountId, reference: reference(callId), kind: "call", amountMicros: owed, now,
        })
      : null;
    if (!posted) await rows.ledger.release(call.accountId, reference(callId));
    await settle.run({
      callId, seconds, finalStatus, endedAt,
      // Carriers bill whole minutes.
      carrierCostMicros: transfers.reduce(
        (sum, one) => sum + legCarrierCost(one), Math.ceil(seconds / 60) * carriers),
      totalMicros: posted ? -posted.amountMicros : 0,
      turns: JSON.stringify(args.turns),
      quality: args.quality ? JSON.stringify(args.quality) : null,
      transfers: JSON.stringify(withoutSilent(transfers, silent)),
      hasRecording: args.hasRecording ? 1 : 0,
    });
    const to = finalStatus === "failed" ? "failed" : "ended";
    // Nobody has a call that is over.
    const left = await moveDesk(call, {
      move: "end", by: { role: "rule" }, reason: "ended", holder: null, now,
    });
    const events = [
      ...steps,
      ...(posted?.events ?? []),
      ...left.kind === "moved" ? left.events : [],
      await rows.change(call, {
        to, answeredBy: null, reason, failureReason: args.failureReason ?? null, now,
      }),
    ];
    return to === "failed" ? [...events, await rows.publishEnded(args, now)] : events;
  };
}

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
