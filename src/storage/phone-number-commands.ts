// The commands of phone numbers: order (reserve), complete (post), fail (release), renew, release,
// and the operator's stock. What a number costs is posted in the transaction that gives it a month.
import {
  consequenceOf, monthAfter, type Consequence,
} from "#features/phone-numbers/billing.ts";
import type { NumberInventory } from "#features/phone-numbers/inventory.ts";
import type { OwnedNumberStore, ReleaseOutcome } from "#features/phone-numbers/phone-numbers.ts";
import type { OrderOutcome, PurchaseStore } from "#features/phone-numbers/purchases.ts";
import type { RenewalStore } from "#features/phone-numbers/renewals.ts";
import { dollarsFromMicros } from "#core/money.ts";
import { isoMicros, utcDay, type Instant } from "#core/system.ts";
import type { CommittedData, CommittedEvent, PhoneNumberEvent } from "#events/events.ts";
import { createDetacher, TOUCHED } from "./assistants.ts";
import type { Db } from "./engines/sqlite/database.ts";
import { createAccountSequence, createEventAppender } from "./events.ts";
import { createLedger } from "./ledger.ts";
import type { PhoneNumberRow, PurchaseRow } from "./phone-numbers.ts";

type Store = PurchaseStore & OwnedNumberStore & RenewalStore;
type Args<Name extends keyof Store> = Parameters<Store[Name]>[0];

const purchaseReference = (uuid: string): string => `number-purchase:${uuid}`;
const monthReference = (phoneNumberId: number, from: Instant): string =>
  `number:${phoneNumberId}:${utcDay(from)}`;

export function phoneNumberCommands(db: Db) {
  const rows = createNumberRows(db);
  return {
    "phoneNumbers.order": createOrder(db, rows),
    "phoneNumbers.complete": createComplete(db, rows),
    "phoneNumbers.fail": createFail(db, rows),
    "phoneNumbers.renew": createRenew(db, rows),
    "phoneNumbers.release": createRelease(db, rows),
    ...smallCommands(db),
    ...stockCommands(db),
  };
}

/** Steps more than one command takes. */
function createNumberRows(db: Db) {
  const append = createEventAppender(db);
  const nextAccountSequence = createAccountSequence(db);
  const detach = createDetacher(db);
  const campaigns = db.prepare<[object], { id: number; phone_number_ids: string }>(`
    SELECT id, phone_number_ids FROM campaigns
    WHERE account_id = @accountId AND phone_number_ids <> '[]'`);
  const setNumbers = db.prepare(`
    UPDATE campaigns SET phone_number_ids = @ids, updated_at = ${TOUCHED} WHERE id = @id`);
  const giveBack = db.prepare(`
    INSERT INTO number_returns (provider, provider_sid, phone_number, created_at)
    VALUES (@provider, @sid, @phoneNumber, @now)`);
  const remove = db.prepare("DELETE FROM phone_numbers WHERE id = @id");
  const find = db.prepare<[object], PhoneNumberRow>("SELECT * FROM phone_numbers WHERE id = @id");
  const tell = (
    { id, account_id, phone_number }: PhoneNumberRow,
    data: PhoneNumberEvent, now: Instant, sequence?: number,
  ): CommittedEvent => {
    const { type, ...members } = data;
    return append({
      accountId: account_id,
      accountSequence: sequence ?? nextAccountSequence(account_id, 1),
      conversation: null,
      data: { type, phone_number_id: id, phone_number, ...members } as CommittedData,
      now,
    });
  };
  const leaveCampaigns = ({ id, account_id }: PhoneNumberRow, now: Instant): void => {
    for (const campaign of campaigns.all({ accountId: account_id })) {
      const ids = JSON.parse(campaign.phone_number_ids) as number[];
      if (!ids.includes(id)) continue;
      const kept = JSON.stringify(ids.filter((one) => one !== id));
      setNumbers.run({ ids: kept, id: campaign.id, now });
    }
  };
  return {
    ledger: createLedger(db),
    tell,
    giveBack: (provider: string, sid: string, phoneNumber: string, now: Instant): void => {
      giveBack.run({ provider, sid, phoneNumber, now });
    },
    find: (id: number): PhoneNumberRow | undefined => find.get({ id }),
    /** Takes the number from everything that has it; the calls it made stay. */
    remove: (
      row: PhoneNumberRow, reason: "requested" | "unpaid", now: Instant,
    ): CommittedEvent => {
      detach.phoneNumber(row.account_id, row.id, now);
      leaveCampaigns(row, now);
      const { provider, provider_sid: sid } = row;
      if (provider !== null && sid !== null) {
        giveBack.run({ provider, sid, phoneNumber: row.phone_number, now });
      }
      remove.run({ id: row.id });
      return tell(row, { type: "phone_number_released", reason }, now);
    },
  };
}

type NumberRows = ReturnType<typeof createNumberRows>;

function createOrder(db: Db, { ledger }: NumberRows): (args: Args<"order">) => OrderOutcome {
  const known = db.prepare<[object], { uuid: string }>(`
    SELECT uuid FROM number_purchases
    WHERE account_id = @accountId AND idempotency_key = @idempotencyKey`);
  const inUse = db.prepare(`
    SELECT 1 FROM phone_numbers WHERE phone_number = @phoneNumber AND provider IS NOT NULL
    UNION ALL SELECT 1 FROM number_purchases
    WHERE phone_number = @phoneNumber AND state IN ('ordered', 'lost')`);
  const credited = db.prepare(
    "SELECT 1 FROM ledger WHERE account_id = @accountId AND amount_micros > 0 LIMIT 1");
  const insert = db.prepare(`
    INSERT INTO number_purchases (uuid, account_id, idempotency_key, phone_number, country_code,
      sms_capable, region, provider, price_micros, state, created_at)
    VALUES (@uuid, @accountId, @idempotencyKey, @phoneNumber, @countryCode, @smsCapable, @region,
      @provider, @priceMicros, 'ordered', @now)`);
  return (args) => {
    const { accountId, idempotencyKey, phoneNumber, priceMicros, uuid, now } = args;
    const earlier = idempotencyKey === null ? undefined : known.get({ accountId, idempotencyKey });
    if (earlier) return { kind: "repeated", uuid: earlier.uuid };
    if (!credited.get({ accountId })) return { kind: "no_payment_method" };
    if (inUse.get({ phoneNumber })) return { kind: "in_use" };
    // A reservation of nothing is none.
    const reserved = priceMicros === 0 || ledger.reserve({
      accountId, reference: purchaseReference(uuid), amountMicros: priceMicros, events: 0, now,
    });
    if (!reserved) return { kind: "balance_too_low" };
    insert.run({ ...args, smsCapable: args.smsCapable ? 1 : 0 });
    return { kind: "ordered" };
  };
}

const OF_PURCHASE = "SELECT * FROM number_purchases WHERE uuid = @uuid";
const END_PURCHASE = `UPDATE number_purchases SET state = @state, status = @status, error = @error,
  phone_number_id = @phoneNumberId, finished_at = @now WHERE uuid = @uuid`;

function createComplete(db: Db, rows: NumberRows) {
  const purchaseOf = db.prepare<[object], PurchaseRow>(OF_PURCHASE);
  const end = db.prepare(END_PURCHASE);
  const giveUp = db.prepare("UPDATE number_purchases SET state = 'failed' WHERE uuid = @uuid");
  const insert = db.prepare<[object], PhoneNumberRow>(`
    INSERT INTO phone_numbers (account_id, phone_number, country_code, type, sms_capable, region,
      provider, provider_sid, monthly_micros, paid_until, due_at, created_at)
    VALUES (@accountId, @phoneNumber, @countryCode, 'normal', @smsCapable, @region,
      @provider, @sid, @monthlyMicros, @paidUntil, @paidUntil, @now) RETURNING *`);
  return ({ uuid, sid, now }: Args<"complete">): CommittedEvent[] => {
    const purchase = purchaseOf.get({ uuid });
    if (!purchase || purchase.state === "completed") return [];
    const { phone_number: phoneNumber, provider, price_micros: monthlyMicros } = purchase;
    if (purchase.state !== "ordered") {
      // Too late: its client was told that nothing came of it.
      rows.giveBack(provider, sid, phoneNumber, now);
      giveUp.run({ uuid });
      return [];
    }
    const paidUntil = monthAfter(now, now);
    const row = insert.get({
      accountId: purchase.account_id, phoneNumber, countryCode: purchase.country_code,
      smsCapable: purchase.sms_capable, region: purchase.region, provider, sid, monthlyMicros,
      paidUntil, now,
    });
    if (!row) throw new Error("an insert returned no row");
    end.run({
      uuid, state: "completed", status: 201, error: null, phoneNumberId: row.id, now,
    });
    const bought: PhoneNumberEvent = {
      type: "phone_number_purchased",
      monthly_price: dollarsFromMicros(monthlyMicros),
      paid_until: isoMicros(paidUntil),
    };
    if (monthlyMicros === 0) return [rows.tell(row, bought, now)];
    const posted = rows.ledger.post({
      reference: purchaseReference(uuid), kind: "number", now,
      reason: (accountSequence) => rows.tell(row, bought, now, accountSequence),
    });
    if (!posted) throw new Error("an order has no reservation");
    return posted.events;
  };
}

function createFail(db: Db, { ledger }: NumberRows) {
  const purchaseOf = db.prepare<[object], PurchaseRow>(OF_PURCHASE);
  const end = db.prepare(END_PURCHASE);
  const giveUp = db.prepare("UPDATE number_purchases SET state = 'failed' WHERE uuid = @uuid");
  return ({ uuid, status, error, mayArrive, now }: Args<"fail">): void => {
    const purchase = purchaseOf.get({ uuid });
    // What its client was told stays what it was told.
    if (purchase?.state === "lost" && !mayArrive) giveUp.run({ uuid });
    if (purchase?.state !== "ordered") return;
    ledger.release(purchaseReference(uuid));
    const state = mayArrive ? "lost" : "failed";
    end.run({ uuid, state, status, error, phoneNumberId: null, now });
  };
}

function createRenew(db: Db, rows: NumberRows) {
  const extend = db.prepare(`
    UPDATE phone_numbers SET status = 'active', paid_until = @paidUntil, grace_until = NULL,
      due_at = @paidUntil
    WHERE id = @id`);
  const worsen = db.prepare(`
    UPDATE phone_numbers SET status = @kind, grace_until = @graceUntil, due_at = @dueAt
    WHERE id = @id`);
  const wait = db.prepare("UPDATE phone_numbers SET due_at = @dueAt WHERE id = @id");

  const charge = (row: PhoneNumberRow, from: Instant, now: Instant): CommittedEvent[] | null => {
    if (row.monthly_micros === 0) return [];
    const posted = rows.ledger.enter({
      accountId: row.account_id, kind: "number", reference: monthReference(row.id, from),
      amountMicros: -row.monthly_micros, now,
    });
    return posted && posted.events;
  };
  const bear = (
    row: PhoneNumberRow, consequence: Consequence, now: Instant,
  ): CommittedEvent[] => {
    switch (consequence.kind) {
      case "waiting":
        wait.run({ id: row.id, dueAt: consequence.dueAt });
        return [];
      case "removed":
        return [rows.remove(row, "unpaid", now)];
      case "grace":
        worsen.run({ id: row.id, ...consequence });
        return [rows.tell(row, {
          type: "phone_number_grace", grace_until: isoMicros(consequence.graceUntil),
        }, now)];
      case "suspended":
        worsen.run({ id: row.id, ...consequence });
        return [rows.tell(row, {
          type: "phone_number_suspended", release_at: isoMicros(consequence.graceUntil),
        }, now)];
    }
  };
  return ({ phoneNumberId, now, graceMicros }: Args<"renew">): CommittedEvent[] => {
    const row = rows.find(phoneNumberId);
    if (!row || row.due_at === null || row.due_at > now || row.paid_until === null) return [];
    if (row.released_at !== null) return [rows.remove(row, "requested", now)];
    const from = row.paid_until;
    const charged = charge(row, from, now);
    if (!charged) {
      const unpaid = { status: row.status, graceUntil: row.grace_until };
      return bear(row, consequenceOf(unpaid, now, graceMicros), now);
    }
    const paidUntil = monthAfter(from, row.created_at);
    extend.run({ id: row.id, paidUntil });
    const renewed = rows.tell(row, {
      type: "phone_number_renewed",
      monthly_price: dollarsFromMicros(row.monthly_micros),
      paid_until: isoMicros(paidUntil),
    }, now);
    return [...charged, renewed];
  };
}

function createRelease(db: Db, rows: NumberRows) {
  const schedule = db.prepare("UPDATE phone_numbers SET released_at = @now WHERE id = @id");
  return ({ accountId, phoneNumberId, now }: Args<"release">): ReleaseOutcome => {
    const row = rows.find(phoneNumberId);
    if (row?.account_id !== accountId) return { kind: "not_found" };
    if (row.released_at !== null) return { kind: "repeated" };
    const { type } = row;
    if (row.paid_until !== null && row.paid_until > now) {
      schedule.run({ id: row.id, now });
      return { kind: "scheduled", type, events: [] };
    }
    return { kind: "removed", type, events: [rows.remove(row, "requested", now)] };
  };
}

function smallCommands(db: Db) {
  const rename = db.prepare(`
    UPDATE phone_numbers SET nickname = @nickname
    WHERE id = @phoneNumberId AND account_id = @accountId`);
  const finish = db.prepare("DELETE FROM number_returns WHERE id = @id");
  return {
    "phoneNumbers.rename": (args: Args<"rename">): boolean => rename.run(args).changes > 0,
    "phoneNumbers.finishReturn": (args: { id: number }): void => {
      finish.run(args);
    },
  };
}

function stockCommands(db: Db) {
  const take = db.prepare(`
    UPDATE number_inventory SET purchase_uuid = @purchaseUuid
    WHERE phone_number = @phoneNumber AND (purchase_uuid IS NULL OR purchase_uuid = @purchaseUuid)`);
  const putBack = db.prepare(`
    UPDATE number_inventory SET purchase_uuid = NULL WHERE purchase_uuid = @purchaseUuid`);
  const insert = db.prepare(`
    INSERT INTO number_inventory (
      phone_number, country_code, sms_capable, price_micros, carrier, created_at)
    VALUES (@phoneNumber, @countryCode, @smsCapable, @monthlyMicros, @carrier, @now)
    ON CONFLICT (phone_number) DO NOTHING`);
  const move = db.prepare(
    "UPDATE number_inventory SET carrier = @carrier WHERE phone_number = @phoneNumber");
  return {
    "phoneNumbers.take": (args: Parameters<NumberInventory["take"]>[0]): boolean =>
      take.run(args).changes > 0,
    "phoneNumbers.putBack": (args: { purchaseUuid: string }): void => {
      putBack.run(args);
    },
    "phoneNumbers.stock": ({ numbers, now }: Parameters<NumberInventory["stock"]>[0]): number =>
      numbers.filter((number) => {
        const row = { ...number, smsCapable: number.smsCapable ? 1 : 0, now };
        const isNew = insert.run(row).changes > 0;
        if (!isNew && number.carrier !== null) move.run(number);
        return isNew;
      }).length,
  };
}
