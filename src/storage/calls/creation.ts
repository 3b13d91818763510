// The creation of a call, within the account's limits on spending, dialling and parallel calls.
import type {
  AskedNewCall, Call, CreateCallOutcome, NewCall,
} from "#features/calls/records/records.ts";
import { isoMicros } from "#core/system.ts";
import { barredReason } from "#features/phone-numbers/dial-guard.ts";
import type { AsNode } from "#storage/nodes/nodes.ts";
import type { Exists, Sql } from "#storage/sql.ts";
import { createDialRates } from "./dial-rates.ts";
import { IS_LIVE } from "./rows.ts";
import { createCallRows, reference, type CallRows } from "./steps.ts";

/** Begins a call as a step of another command. */
export const createCallBegin = (
  sql: Sql,
): (args: AsNode<NewCall>) => Promise<CreateCallOutcome> => createCreate(sql, createCallRows(sql));

/** A call asked for again under its idempotency key is the one created before. */
export function createOnce(sql: Sql, rows: CallRows) {
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
    // Checked last, so that only calls which begin count towards the rate.
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
      if (!isReserved) throw new Error("could not reserve the free balance");
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
