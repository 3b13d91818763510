// Commands that record a call's transfers as they are tried; the end of the call settles them. A
// warm transfer adds the possible cost of its leg to the call's reservation, which pays for both.
import type {
  BeginTransfer, BeginTransferOutcome, Call, CallStore,
} from "#features/calls/records/records.ts";
import { FOREVER_S, talkCost } from "#features/calls/records/failures.ts";
import {
  legFile, legSeconds, stepped, withFailure, withTransfer, type Transfer,
} from "#features/calls/records/transfers.ts";
import { WHY_NOT_TAKEN } from "#features/calls/records/warm-stages.ts";
import { barredReason } from "#features/phone-numbers/dial-guard.ts";
import { LIMITS } from "#core/limits.ts";
import type { Micros } from "#core/money.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import { CALL, callFromRow, type CallRow } from "./rows.ts";
import { reference, type CallRows } from "./steps.ts";
import { createDialRates } from "./dial-rates.ts";
import type { AsNode } from "#storage/nodes/nodes.ts";
import type { Exists, Sql } from "#storage/sql.ts";

type Args<Name extends keyof CallStore> = Parameters<CallStore[Name]>[0];

const SECOND = 1_000_000;

export function callTransferCommands(sql: Sql, rows: CallRows) {
  const find = sql.prepare<object, CallRow>(
    `${CALL} WHERE c.id = @callId AND c.account_id = @accountId`);
  const set = prepareTransfers(sql);
  const change = async (
    { accountId, callId }: { accountId: number; callId: number },
    next: (transfers: Call["transfers"]) => Transfer[],
  ): Promise<void> => {
    const row = await find.get({ accountId, callId });
    if (!row) return;
    await set.run({ callId, transfers: JSON.stringify(next(callFromRow(row).transfers)) });
  };
  return {
    "calls.addTransfer": (args: Args<"addTransfer">): Promise<void> =>
      change(args, (transfers) => withTransfer(transfers, args.transfer)),
    "calls.failTransfer": (args: Args<"failTransfer">): Promise<void> =>
      change(args, (transfers) => withFailure(transfers, args.failureReason, args.now)),
    "calls.beginTransfer": createBegin(sql, rows),
    "calls.stepTransfer": createStep(sql, rows),
  };
}

const prepareTransfers = (sql: Sql) =>
  sql.prepare("UPDATE calls SET transfers = @transfers WHERE id = @callId");

/** The step a warm transfer is at, as a numbered event of its call. */
export const publishStep = (
  rows: Pick<CallRows, "publish">, call: Call, number: number, transfer: Transfer, now: Instant,
): Promise<CommittedEvent> =>
  rows.publish(call, {
    type: "call_transfer_changed",
    call_id: call.id,
    transfer: {
      id: number, type: transfer.type, to: transfer.to, stage: transfer.leg?.stage ?? "over",
      outcome: transfer.outcome ?? null, failure_reason: transfer.failureReason,
      at: isoMicros(now),
    },
  }, now);

function createBegin(sql: Sql, rows: CallRows) {
  const set = prepareTransfers(sql);
  const whyNot = createWhyNot(sql);
  const reserve = createReserve(sql, rows);
  return async (args: AsNode<BeginTransfer>): Promise<BeginTransferOutcome> => {
    const { callId, type, to, carrierMicrosPerMinute, at } = args;
    const call = await rows.findOwn(args);
    if (call?.status !== "in-progress") return { kind: "over" };
    const why = await whyNot(call, args);
    const lasting = why === null ? await reserve(call, args) : null;
    const reason = why
      ?? (lasting === null ? "The balance is too low to call a colleague." : null);
    const asked = {
      type, to, assistantUuid: null, createdAt: at,
      failureReason: reason, finishedAt: reason === null ? null : at,
    };
    const transfer: Transfer = reason === null
      ? {
          ...asked, status: "in-progress", outcome: null,
          leg: {
            stage: "announcing", answeredAt: null, carrierMicrosPerMinute,
            recordingFile: nextLegFile(call),
          },
        }
      : { ...asked, status: "failed", outcome: "refused" };
    const transfers = withTransfer(call.transfers, transfer);
    await set.run({ callId, transfers: JSON.stringify(transfers) });
    const number = transfers.indexOf(transfer) + 1;
    const events = [await publishStep(rows, call, number, transfer, at)];
    if (lasting === null) return { kind: "refused", reason: reason ?? "", events };
    const recordingFile = transfer.leg?.recordingFile ?? null;
    return { kind: "begun", number, ...lasting, recordingFile, events };
  };
}

/** A leg's recording is kept beside the call's, and deleted with it. */
const nextLegFile = ({ recordingFile, transfers }: Call): string | null =>
  (recordingFile === null
    ? null : legFile(recordingFile, transfers.filter(({ leg }) => leg).length + 1));

function createWhyNot(sql: Sql) {
  const blocked = sql.prepare<object, Exists>(`
    SELECT 1 FROM blocked_numbers WHERE account_id = @accountId AND phone_number = @to`);
  const takeTurn = createDialRates(sql);
  return async (
    { transfers, accountId }: Call, { to, dialling, now }: BeginTransfer,
  ): Promise<string | null> => {
    const legs = transfers.filter(({ leg }) => leg);
    if (legs.some(({ status }) => status === "in-progress")) {
      return "A colleague is already being called.";
    }
    if (legs.length >= LIMITS.warmTransfersMax) {
      return "This call has reached its limit of calls to colleagues.";
    }
    if (await blocked.get({ accountId, to })) return "The phone number is on the do-not-call list.";
    const barred = to.startsWith("+") ? barredReason(to, dialling.countries) : null;
    if (barred !== null) return barred;
    const until = await takeTurn(accountId, dialling.perMinute, now);
    return until === null ? null : "Too many calls were placed in a minute.";
  };
}

/**
 * Reserves the cost of both legs for `secondsMax`, or what is free. Returns how many seconds that
 * lasts, and how long after its answer the call can last if nobody takes it. Null: too little
 * money.
 */
function createReserve(sql: Sql, { ledger }: CallRows) {
  const money = sql.prepare<object, { price: Micros; reserved: Micros; free: Micros }>(`
    SELECT c.price_per_minute AS price, coalesce(r.amount_micros, 0) AS reserved,
      a.balance_micros - a.reserved_micros AS free
    FROM calls c JOIN accounts a ON a.id = c.account_id
    LEFT JOIN reservations r ON r.reference = @reference AND r.account_id = c.account_id
    WHERE c.id = @callId`);
  return async (
    call: Call, { secondsMax, at }: BeginTransfer,
  ): Promise<{ secondsMax: number; afterwardsS: number } | null> => {
    const { id: callId, accountId, answeredAt, transfers } = call;
    const found = await money.get({ callId, reference: reference(callId) });
    if (!found || answeredAt === null) return null;
    const { price, reserved, free } = found;
    if (price === 0) return { secondsMax, afterwardsS: FOREVER_S };
    const talkedS = Math.ceil(Math.max(0, at - answeredAt) / SECOND);
    const owed = transfers.reduce((sum, one) => sum + legCost(one, price), 0);
    const costOf = (seconds: number): Micros =>
      owed + talkCost(talkedS + seconds, price) + talkCost(seconds, price);
    const amountMicros = Math.max(0, Math.min(costOf(secondsMax) - reserved, free));
    // Both legs are billed at the same price; each is rounded up separately.
    const lasts = Math.floor((((reserved + amountMicros - owed - 2) * 60) / price - talkedS) / 2);
    const seconds = Math.min(secondsMax, lasts);
    if (seconds < BRIEFING_S_MIN) return null;
    const isHeld = amountMicros === 0
      || await ledger.extend({ accountId, reference: reference(callId), amountMicros });
    const untaken = owed + talkCost(Math.min(seconds, UNTAKEN_S_MAX), price);
    const afterwardsS = Math.floor(((reserved + amountMicros - untaken) * 60) / price);
    return isHeld ? { secondsMax: seconds, afterwardsS } : null;
  };
}

/** The briefing of a colleague who does not take the call is assumed to last no longer. */
const UNTAKEN_S_MAX = 300;
/** Less leaves no time to pick up and be asked; it is also the shortest time that is billed. */
const BRIEFING_S_MIN = 30;

const legCost = (transfer: Transfer, price: Micros): Micros =>
  transfer.leg && transfer.leg.answeredAt !== null ? talkCost(legSeconds(transfer), price) : 0;

function createStep(sql: Sql, rows: CallRows) {
  const set = prepareTransfers(sql);
  return async (args: AsNode<Args<"stepTransfer">>): Promise<CommittedEvent[]> => {
    const { callId, number, outcome, now } = args;
    const call = await rows.findOwn(args);
    if (call?.status !== "in-progress") return [];
    const failureReason = args.failureReason ?? (outcome === null || outcome === "completed"
      || outcome === "refused" ? null : WHY_NOT_TAKEN[outcome]);
    const transfers = stepped(call.transfers, number, { ...args, failureReason });
    const transfer = transfers?.[number - 1];
    if (!transfers || !transfer) return [];
    await set.run({ callId, transfers: JSON.stringify(transfers) });
    return [await publishStep(rows, call, number, transfer, now)];
  };
}
