// The commands of phone numbers: order (reserve), complete (post), fail (release), renew, release,
// and the operator's stock. A number's price is posted in the transaction that grants it a month.
import {
  consequenceOf, monthAfter, type Consequence,
} from "#features/phone-numbers/billing.ts";
import type { MovedNumber, NumberInventory } from "#features/phone-numbers/inventory.ts";
import type { OwnedNumberStore, ReleaseOutcome } from "#features/phone-numbers/phone-numbers.ts";
import type { OrderOutcome, PurchaseStore } from "#features/phone-numbers/purchases.ts";
import type { RenewalStore } from "#features/phone-numbers/renewals.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import { dollarsFromMicros } from "#core/money.ts";
import { isoMicros, utcDay, type Instant } from "#core/system.ts";
import type { CommittedData, CommittedEvent, PhoneNumberEvent } from "#events/events.ts";
import { createDetacher, TOUCHED } from "#storage/assistants/assistants.ts";
import { createAccountSequence, createEventAppender } from "#storage/events.ts";
import { createLedger, type AppendPaid } from "#storage/accounts/ledger.ts";
import { isFree, NOBODY, type AsNode } from "#storage/nodes/nodes.ts";
import type { PhoneNumberRow, PurchaseRow } from "./phone-numbers.ts";
import type { Exists, Sql } from "#storage/sql.ts";

type Store = PurchaseStore & OwnedNumberStore & RenewalStore;
type Args<Name extends keyof Store> = Parameters<Store[Name]>[0];

const purchaseReference = (uuid: string): string => `number-purchase:${uuid}`;
const monthReference = (phoneNumberId: number, from: Instant): string =>
  `number:${phoneNumberId}:${utcDay(from)}`;

export function phoneNumberCommands(sql: Sql) {
  const rows = createNumberRows(sql);
  return {
    "phoneNumbers.order": createOrder(sql, rows),
    "phoneNumbers.attend": createAttend(sql),
    "phoneNumbers.complete": createComplete(sql, rows),
    "phoneNumbers.fail": createFail(sql, rows),
    "phoneNumbers.renew": createRenew(sql, rows),
    "phoneNumbers.release": createRelease(sql, rows),
    ...smallCommands(sql),
    ...stockCommands(sql),
  };
}

/** Steps shared by several commands. */
function createNumberRows(sql: Sql) {
  const append = createEventAppender(sql);
  const nextAccountSequence = createAccountSequence(sql);
  const detach = createDetacher(sql);
  const campaigns = sql.prepare<object, { id: number; phone_number_ids: string }>(`
    SELECT id, phone_number_ids FROM campaigns
    WHERE account_id = @accountId AND phone_number_ids <> '[]'`);
  const setNumbers = sql.prepare(`
    UPDATE campaigns SET phone_number_ids = @ids, updated_at = ${TOUCHED} WHERE id = @id`);
  const giveBack = sql.prepare(`
    INSERT INTO number_returns (provider, provider_sid, phone_number, created_at)
    VALUES (@provider, @sid, @phoneNumber, @now)`);
  const remove = sql.prepare("DELETE FROM phone_numbers WHERE id = @id");
  const find = sql.prepare<object, PhoneNumberRow>(
    "SELECT * FROM phone_numbers WHERE id = @phoneNumberId AND account_id = @accountId");
  const publish = async (
    { id, account_id, phone_number }: PhoneNumberRow,
    data: PhoneNumberEvent, now: Instant, paid?: Parameters<AppendPaid>[0],
  ): Promise<CommittedEvent> => {
    const { type, ...members } = data;
    const numbers = paid ?? { accountSequence: await nextAccountSequence(account_id) };
    return append({
      accountId: account_id,
      ...numbers,
      conversation: null,
      data: { type, phone_number_id: id, phone_number, ...members } as CommittedData,
      now,
    });
  };
  const leaveCampaigns = async (
    { id, account_id }: PhoneNumberRow, now: Instant,
  ): Promise<void> => {
    for (const campaign of await campaigns.all({ accountId: account_id })) {
      const ids = JSON.parse(campaign.phone_number_ids) as number[];
      if (!ids.includes(id)) continue;
      const kept = JSON.stringify(ids.filter((one) => one !== id));
      await setNumbers.run({ ids: kept, id: campaign.id, now });
    }
  };
  return {
    ledger: createLedger(sql),
    publish,
    giveBack: async (
      provider: string, sid: string, phoneNumber: string, now: Instant,
    ): Promise<void> => {
      await giveBack.run({ provider, sid, phoneNumber, now });
    },
    find: async (
      { accountId, phoneNumberId }: { accountId: number; phoneNumberId: number },
    ): Promise<PhoneNumberRow | undefined> => await find.get({ accountId, phoneNumberId }),
    /** Removes the number and all references to it; the calls it made stay. */
    remove: async (
      row: PhoneNumberRow, reason: "requested" | "unpaid", now: Instant,
    ): Promise<CommittedEvent> => {
      await detach.phoneNumber(row.account_id, row.id, now);
      await leaveCampaigns(row, now);
      const { provider, provider_sid: sid } = row;
      if (provider !== null && sid !== null) {
        await giveBack.run({ provider, sid, phoneNumber: row.phone_number, now });
      }
      await remove.run({ id: row.id });
      return publish(row, { type: "phone_number_released", reason }, now);
    },
  };
}

type NumberRows = ReturnType<typeof createNumberRows>;

function createOrder(
  sql: Sql, { ledger }: NumberRows,
): (args: AsNode<Args<"order">>) => Promise<OrderOutcome> {
  const known = sql.prepare<object, { uuid: string }>(`
    SELECT uuid FROM number_purchases
    WHERE account_id = @accountId AND idempotency_key = @idempotencyKey`);
  const isOwned = sql.prepare<object, Exists>(`
    SELECT 1 FROM phone_numbers WHERE phone_number = @phoneNumber AND provider IS NOT NULL`);
  const credited = sql.prepare<object, Exists>(
    "SELECT 1 FROM ledger WHERE account_id = @accountId AND amount_micros > 0 LIMIT 1");
  const insert = sql.prepare(`
    INSERT INTO number_purchases (uuid, account_id, idempotency_key, phone_number, country_code,
      sms_capable, region, provider, price_micros, state, node_id, created_at)
    VALUES (@uuid, @accountId, @idempotencyKey, @phoneNumber, @countryCode, @smsCapable, @region,
      @provider, @priceMicros, 'ordered', @nodeId, @now)
    ON CONFLICT (phone_number) WHERE state IN ('ordered', 'lost') DO NOTHING`);
  const remove = sql.prepare("DELETE FROM number_purchases WHERE uuid = @uuid");
  return async (args) => {
    const { accountId, idempotencyKey, phoneNumber, priceMicros, uuid, now } = args;
    const earlier = idempotencyKey === null
      ? undefined
      : await known.get({ accountId, idempotencyKey });
    if (earlier) return { kind: "repeated", uuid: earlier.uuid };
    if (!await credited.get({ accountId })) return { kind: "no_payment_method" };
    if (await isOwned.get({ phoneNumber })) return { kind: "in_use" };
    // The unique index admits one of all that are ordering a number, maybe in parallel.
    const { changes } = await insert.run({ ...args, smsCapable: args.smsCapable ? 1 : 0 });
    if (changes === 0) return { kind: "in_use" };
    // A price of 0 needs no reservation.
    const isReserved = priceMicros === 0 || await ledger.reserve({
      accountId, reference: purchaseReference(uuid), amountMicros: priceMicros, now,
    });
    if (!isReserved) await remove.run({ uuid });
    return { kind: isReserved ? "ordered" : "balance_too_low" };
  };
}

/** No row when another node owns the purchase by now. */
const OF_PURCHASE = `SELECT * FROM number_purchases WHERE uuid = @uuid AND account_id = @accountId
  AND coalesce(node_id, ${NOBODY}) = @nodeId`;
const END_PURCHASE = `UPDATE number_purchases SET state = @state, status = @status, error = @error,
  phone_number_id = @phoneNumberId, finished_at = @now WHERE uuid = @uuid`;

/**
 * Lets this node take over a purchase: one in state `lost` is nobody's any more, as its client was
 * told that the outcome is unknown.
 */
function createAttend(sql: Sql) {
  const take = sql.prepare(`
    UPDATE number_purchases SET node_id = @nodeId
    WHERE uuid = @uuid AND account_id = @accountId AND state IN ('ordered', 'lost')
      AND (state = 'lost' OR node_id = @nodeId OR ${isFree("number_purchases.node_id")})`);
  return async (args: AsNode<Args<"attend">>): Promise<boolean> =>
    (await take.run(args)).changes > 0;
}

function createComplete(sql: Sql, rows: NumberRows) {
  const purchaseOf = sql.prepare<object, PurchaseRow>(OF_PURCHASE);
  const end = sql.prepare(END_PURCHASE);
  const giveUp = sql.prepare("UPDATE number_purchases SET state = 'failed' WHERE uuid = @uuid");
  const insert = sql.prepare<object, PhoneNumberRow>(`
    INSERT INTO phone_numbers (account_id, phone_number, country_code, type, sms_capable, region,
      provider, provider_sid, monthly_micros, paid_until, due_at, created_at)
    VALUES (@accountId, @phoneNumber, @countryCode, 'normal', @smsCapable, @region,
      @provider, @sid, @monthlyMicros, @paidUntil, @paidUntil, @now) RETURNING *`);
  return async (args: AsNode<Args<"complete">>): Promise<CommittedEvent[]> => {
    const { accountId, uuid, sid, now } = args;
    const purchase = await purchaseOf.get(args);
    if (!purchase || purchase.state === "completed") return [];
    const { phone_number: phoneNumber, provider, price_micros: monthlyMicros } = purchase;
    if (purchase.state !== "ordered") {
      // Too late: the client was told that the purchase failed.
      await rows.giveBack(provider, sid, phoneNumber, now);
      await giveUp.run({ uuid });
      return [];
    }
    const paidUntil = monthAfter(now, now);
    const row = await insert.one({
      accountId, phoneNumber, countryCode: purchase.country_code,
      smsCapable: purchase.sms_capable, region: purchase.region, provider, sid, monthlyMicros,
      paidUntil, now,
    });
    await end.run({
      uuid, state: "completed", status: 201, error: null, phoneNumberId: row.id, now,
    });
    const bought: PhoneNumberEvent = {
      type: "phone_number_purchased",
      monthly_price: dollarsFromMicros(monthlyMicros),
      paid_until: isoMicros(paidUntil),
    };
    if (monthlyMicros === 0) return [await rows.publish(row, bought, now)];
    const posted = await rows.ledger.post({
      accountId, reference: purchaseReference(uuid), kind: "number", now,
      paidFor: (numbers) => rows.publish(row, bought, now, numbers),
    });
    if (!posted) throw new Error("an order has no reservation");
    return posted.events;
  };
}

function createFail(sql: Sql, { ledger }: NumberRows) {
  const purchaseOf = sql.prepare<object, PurchaseRow>(OF_PURCHASE);
  const end = sql.prepare(END_PURCHASE);
  const giveUp = sql.prepare("UPDATE number_purchases SET state = 'failed' WHERE uuid = @uuid");
  return async (args: AsNode<Args<"fail">>): Promise<void> => {
    const { accountId, uuid, status, error, mayArrive, now } = args;
    const purchase = await purchaseOf.get(args);
    // The client's answer stays as it was given.
    if (purchase?.state === "lost" && !mayArrive) await giveUp.run({ uuid });
    if (purchase?.state !== "ordered") return;
    await ledger.release(accountId, purchaseReference(uuid));
    const state = mayArrive ? "lost" : "failed";
    await end.run({ uuid, state, status, error, phoneNumberId: null, now });
  };
}

function createRenew(sql: Sql, rows: NumberRows) {
  const extend = sql.prepare(`
    UPDATE phone_numbers SET status = 'active', paid_until = @paidUntil, grace_until = NULL,
      due_at = @paidUntil
    WHERE id = @id`);
  const worsen = sql.prepare(`
    UPDATE phone_numbers SET status = @kind, grace_until = @graceUntil, due_at = @dueAt
    WHERE id = @id`);
  const wait = sql.prepare("UPDATE phone_numbers SET due_at = @dueAt WHERE id = @id");

  const charge = async (
    row: PhoneNumberRow, from: Instant, now: Instant,
  ): Promise<CommittedEvent[] | null> => {
    if (row.monthly_micros === 0) return [];
    const posted = await rows.ledger.enter({
      accountId: row.account_id, kind: "number", reference: monthReference(row.id, from),
      amountMicros: -row.monthly_micros, now,
    });
    return posted && posted.events;
  };
  const bear = async (
    row: PhoneNumberRow, consequence: Consequence, now: Instant,
  ): Promise<CommittedEvent[]> => {
    switch (consequence.kind) {
      case "waiting":
        await wait.run({ id: row.id, dueAt: consequence.dueAt });
        return [];
      case "removed":
        return [await rows.remove(row, "unpaid", now)];
      case "grace":
        await worsen.run({ id: row.id, ...consequence });
        return [await rows.publish(row, {
          type: "phone_number_grace", grace_until: isoMicros(consequence.graceUntil),
        }, now)];
      case "suspended":
        await worsen.run({ id: row.id, ...consequence });
        return [await rows.publish(row, {
          type: "phone_number_suspended", release_at: isoMicros(consequence.graceUntil),
        }, now)];
    }
  };
  return async (args: Args<"renew">): Promise<CommittedEvent[]> => {
    const { now, graceMicros } = args;
    const row = await rows.find(args);
    if (!row || row.due_at === null || row.due_at > now || row.paid_until === null) return [];
    if (row.released_at !== null) return [await rows.remove(row, "requested", now)];
    const from = row.paid_until;
    const charged = await charge(row, from, now);
    if (!charged) {
      const unpaid = { status: row.status, graceUntil: row.grace_until };
      return bear(row, consequenceOf(unpaid, now, graceMicros), now);
    }
    const paidUntil = monthAfter(from, row.created_at);
    await extend.run({ id: row.id, paidUntil });
    const renewed = await rows.publish(row, {
      type: "phone_number_renewed",
      monthly_price: dollarsFromMicros(row.monthly_micros),
      paid_until: isoMicros(paidUntil),
    }, now);
    return [...charged, renewed];
  };
}

function createRelease(sql: Sql, rows: NumberRows) {
  const schedule = sql.prepare("UPDATE phone_numbers SET released_at = @now WHERE id = @id");
  return async ({ accountId, phoneNumberId, now }: Args<"release">): Promise<ReleaseOutcome> => {
    const row = await rows.find({ accountId, phoneNumberId });
    if (!row) return { kind: "not_found" };
    if (row.released_at !== null) return { kind: "repeated" };
    const { type } = row;
    if (row.paid_until !== null && row.paid_until > now) {
      await schedule.run({ id: row.id, now });
      return { kind: "scheduled", type, events: [] };
    }
    return { kind: "removed", type, events: [await rows.remove(row, "requested", now)] };
  };
}

function smallCommands(sql: Sql) {
  const rename = sql.prepare(`
    UPDATE phone_numbers SET nickname = @nickname
    WHERE id = @phoneNumberId AND account_id = @accountId`);
  const finish = sql.prepare("DELETE FROM number_returns WHERE id = @id");
  return {
    "phoneNumbers.rename": async (args: Args<"rename">): Promise<boolean> =>
      (await rename.run(args)).changes > 0,
    "phoneNumbers.finishReturn": async (args: { id: number }): Promise<void> => {
      await finish.run(args);
    },
  };
}

function stockCommands(sql: Sql) {
  const take = sql.prepare(`
    UPDATE number_inventory SET purchase_uuid = @purchaseUuid
    WHERE phone_number = @phoneNumber AND (purchase_uuid IS NULL OR purchase_uuid = @purchaseUuid)`);
  const putBack = sql.prepare(`
    UPDATE number_inventory SET purchase_uuid = NULL WHERE purchase_uuid = @purchaseUuid`);
  const insert = sql.prepare(`
    INSERT INTO number_inventory (
      phone_number, country_code, sms_capable, price_micros, carrier, created_at)
    VALUES (@phoneNumber, @countryCode, @smsCapable, @monthlyMicros, @carrier, @now)
    ON CONFLICT (phone_number) DO NOTHING`);
  const carrierOf = sql.prepare<object, { carrier: HostedAccount | null }>(
    "SELECT carrier FROM number_inventory WHERE phone_number = @phoneNumber");
  const move = sql.prepare(
    "UPDATE number_inventory SET carrier = @to WHERE phone_number = @phoneNumber");
  return {
    "phoneNumbers.take": async (args: Parameters<NumberInventory["take"]>[0]): Promise<boolean> =>
      (await take.run(args)).changes > 0,
    "phoneNumbers.putBack": async (args: { purchaseUuid: string }): Promise<void> => {
      await putBack.run(args);
    },
    "phoneNumbers.stock": async (
      { numbers, now }: Parameters<NumberInventory["stock"]>[0],
    ): ReturnType<NumberInventory["stock"]> => {
      let imported = 0;
      const moved: MovedNumber[] = [];
      for (const number of numbers) {
        const { phoneNumber, carrier: to } = number;
        const row = {
          ...number, carrier: to ?? null, smsCapable: number.smsCapable ? 1 : 0, now,
        };
        if ((await insert.run(row)).changes > 0) {
          imported += 1;
          continue;
        }
        const from = (await carrierOf.get({ phoneNumber }))?.carrier ?? null;
        if (to === undefined || to === from) continue;
        await move.run({ phoneNumber, to });
        moved.push({ phoneNumber, from, to });
      }
      return { imported, moved };
    },
  };
}
