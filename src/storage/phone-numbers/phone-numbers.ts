// Phone numbers, their purchases and the operator's stock in the database: reads for the main
// thread. The writes are in commands.ts.
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { InboundStore } from "#features/phone-numbers/inbound-routing.ts";
import type { ListedNumber, NumberInventory } from "#features/phone-numbers/inventory.ts";
import type {
  OwnedNumberStore, PhoneNumber, PhoneNumberType,
} from "#features/phone-numbers/phone-numbers.ts";
import type { Purchase, PurchaseState, PurchaseStore } from "#features/phone-numbers/purchases.ts";
import type { RenewalStore } from "#features/phone-numbers/renewals.ts";
import type { NumberStatus } from "#features/phone-numbers/billing.ts";
import { orNull, type Exists, type Reader } from "#storage/sql.ts";
import type { phoneNumberCommands } from "./commands.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

export interface PhoneNumberRow {
  id: number;
  account_id: number;
  phone_number: string;
  country_code: string;
  type: PhoneNumberType;
  nickname: string | null;
  sms_capable: number;
  region: string | null;
  provider: string | null;
  provider_sid: string | null;
  monthly_micros: number;
  status: NumberStatus;
  paid_until: number | null;
  grace_until: number | null;
  released_at: number | null;
  due_at: number | null;
  created_at: number;
}

function phoneNumberFromRow(row: PhoneNumberRow): PhoneNumber {
  return {
    id: row.id,
    accountId: row.account_id,
    phoneNumber: row.phone_number,
    countryCode: row.country_code,
    type: row.type,
    provider: row.provider,
    nickname: row.nickname,
    smsCapable: row.sms_capable === 1,
    region: row.region,
    monthlyMicros: row.monthly_micros,
    status: row.status,
    paidUntil: row.paid_until,
    graceUntil: row.grace_until,
    releasedAt: row.released_at,
    createdAt: row.created_at,
  };
}

export interface PurchaseRow {
  id: number;
  uuid: string;
  account_id: number;
  idempotency_key: string | null;
  phone_number: string;
  country_code: string;
  sms_capable: number;
  region: string | null;
  provider: string;
  price_micros: number;
  state: PurchaseState;
  status: number | null;
  error: string | null;
  phone_number_id: number | null;
  created_at: number;
  finished_at: number | null;
}

function purchaseFromRow(row: PurchaseRow): Purchase {
  return {
    id: row.id,
    uuid: row.uuid,
    accountId: row.account_id,
    idempotencyKey: row.idempotency_key,
    phoneNumber: row.phone_number,
    countryCode: row.country_code,
    smsCapable: row.sms_capable === 1,
    region: row.region,
    provider: row.provider,
    priceMicros: row.price_micros,
    state: row.state,
    status: row.status,
    error: row.error,
    phoneNumberId: row.phone_number_id,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  };
}

export type PhoneNumbersStorage = OwnedNumberStore & RenewalStore & PurchaseStore & InboundStore;

export function createPhoneNumberStore(
  reader: Reader, writer: WriterOf<typeof phoneNumberCommands>,
): PhoneNumbersStorage {
  const find = reader.prepare<object, PhoneNumberRow>(
    "SELECT * FROM phone_numbers WHERE id = @phoneNumberId AND account_id = @accountId");
  const list = reader.prepare<object, PhoneNumberRow>(
    "SELECT * FROM phone_numbers WHERE account_id = @accountId ORDER BY id");
  const due = reader.prepare<object, { accountId: number; phoneNumberId: number }>(`
    SELECT account_id AS "accountId", id AS "phoneNumberId" FROM phone_numbers
    WHERE due_at <= @now ORDER BY due_at, id LIMIT (@rows + 0)`);
  const findOwned = async (
    accountId: number, phoneNumberId: number,
  ): Promise<PhoneNumber | null> =>
    orNull(await find.get({ accountId, phoneNumberId }), phoneNumberFromRow);
  const listOwned = async (accountId: number): Promise<PhoneNumber[]> =>
    (await list.all({ accountId })).map(phoneNumberFromRow);
  return {
    ...createPurchaseReads(reader, writer),
    ...createInboundReads(reader),
    find: async (accountId, phoneNumberId) => {
      const number = await findOwned(accountId, phoneNumberId);
      return number?.status === "suspended" ? null : number;
    },
    list: async (accountId) =>
      (await listOwned(accountId)).filter(({ status }) => status !== "suspended"),
    findOwned,
    listOwned,
    ...writes(writer, "phoneNumbers", "rename", "release", "renew"),
    due: async (now, rows) => due.all({ now, rows }),
  };
}

function createInboundReads(reader: Reader): InboundStore {
  const provided = reader.prepare<object, PhoneNumberRow>(`
    SELECT * FROM phone_numbers
    WHERE phone_number = @phoneNumber AND provider IS NOT NULL AND status <> 'suspended'`);
  // A number bought from a carrier is hosted there; one from the stock names its carrier.
  const hosted = reader.prepare<object, { account_id: number; carrier: HostedAccount }>(`
    SELECT * FROM (
      SELECT p.account_id,
        CASE p.provider WHEN 'inventory' THEN i.carrier ELSE p.provider END AS carrier
      FROM phone_numbers p LEFT JOIN number_inventory i ON i.phone_number = p.phone_number
      WHERE p.phone_number = @phoneNumber AND p.provider IS NOT NULL AND p.status <> 'suspended'
    ) AS held WHERE carrier IS NOT NULL`);
  const holder = reader.prepare<object, { id: number; status: string }>(`
    SELECT id, status FROM assistants WHERE phone_number_id = @phoneNumberId
      AND type = 'inbound' AND deleted_at IS NULL`);
  return {
    findProvided: async (phoneNumber) =>
      orNull(await provided.get({ phoneNumber }), phoneNumberFromRow),
    findHosted: async (phoneNumber) => {
      const row = await hosted.get({ phoneNumber });
      return row ? { accountId: row.account_id, carrier: row.carrier } : null;
    },
    assistantOn: async (phoneNumberId) => {
      const row = await holder.get({ phoneNumberId });
      return row ? { id: row.id, isActive: row.status === "active" } : null;
    },
  };
}

function createPurchaseReads(
  reader: Reader, writer: WriterOf<typeof phoneNumberCommands>,
): PurchaseStore {
  const credited = reader.prepare<object, Exists>(
    "SELECT 1 FROM ledger WHERE account_id = @accountId AND amount_micros > 0 LIMIT 1");
  const inUse = reader.prepare<object, Exists>(`
    SELECT 1 FROM phone_numbers WHERE phone_number = @phoneNumber AND provider IS NOT NULL
    UNION ALL SELECT 1 FROM number_purchases
    WHERE phone_number = @phoneNumber AND state IN ('ordered', 'lost') LIMIT 1`);
  const find = reader.prepare<object, PurchaseRow>(
    "SELECT * FROM number_purchases WHERE uuid = @uuid");
  const findByKey = reader.prepare<object, PurchaseRow>(`
    SELECT * FROM number_purchases
    WHERE account_id = @accountId AND idempotency_key = @idempotencyKey`);
  const awaited = reader.prepare<object, { provider: string }>(`
    SELECT provider FROM number_purchases WHERE state IN ('ordered', 'lost')
    UNION SELECT provider FROM number_returns ORDER BY 1`);
  const open = reader.prepare<object, PurchaseRow>(`
    SELECT * FROM number_purchases WHERE state IN ('ordered', 'lost') AND provider = @provider
    ORDER BY id LIMIT (@rows + 0)`);
  const returns = reader.prepare<object, { id: number; sid: string }>(`
    SELECT id, provider_sid AS sid FROM number_returns
    WHERE provider = @provider AND id > @behindId ORDER BY id LIMIT (@rows + 0)`);
  return {
    hasPaymentMethod: async (accountId) => await credited.get({ accountId }) !== undefined,
    isInUse: async (phoneNumber) => await inUse.get({ phoneNumber }) !== undefined,
    findPurchase: async (uuid) => orNull(await find.get({ uuid }), purchaseFromRow),
    findPurchaseByKey: async (accountId, idempotencyKey) =>
      orNull(await findByKey.get({ accountId, idempotencyKey }), purchaseFromRow),
    awaited: async () => (await awaited.all({})).map(({ provider }) => provider),
    openPurchases: async (provider, rows) =>
      (await open.all({ provider, rows })).map(purchaseFromRow),
    ...writes(writer, "phoneNumbers", "order", "attend", "complete", "fail"),
    returns: async (provider, behindId, rows) => returns.all({ provider, behindId, rows }),
    finishReturn: (id) => writer.write("phoneNumbers.finishReturn", { id }),
  };
}

interface StockRow {
  phone_number: string;
  country_code: string;
  sms_capable: number;
  price_micros: number | null;
  carrier: HostedAccount | null;
  account_id: number | null;
}

function stockFromRow(row: StockRow): ListedNumber {
  return {
    phoneNumber: row.phone_number,
    countryCode: row.country_code,
    smsCapable: row.sms_capable === 1,
    monthlyMicros: row.price_micros,
    carrier: row.carrier,
    accountId: row.account_id,
  };
}

const STOCK = `SELECT i.phone_number, i.country_code, i.sms_capable, i.price_micros, i.carrier,
    p.account_id
  FROM number_inventory i LEFT JOIN number_purchases p ON p.uuid = i.purchase_uuid`;
const FREE = "i.purchase_uuid IS NULL";

export function createNumberInventory(
  reader: Reader, writer: WriterOf<typeof phoneNumberCommands>,
): NumberInventory {
  const free = reader.prepare<object, StockRow>(`${STOCK}
    WHERE ${FREE} AND i.country_code = @countryCode AND i.phone_number LIKE '%' || @contains || '%'
    ORDER BY i.phone_number LIMIT (@most + 0)`);
  const freeNumber = reader.prepare<object, StockRow>(
    `${STOCK} WHERE ${FREE} AND i.phone_number = @phoneNumber`);
  const taken = reader.prepare<object, Exists>("SELECT 1 FROM number_inventory WHERE purchase_uuid = @purchaseUuid");
  const all = reader.prepare<object, StockRow>(`${STOCK} ORDER BY i.phone_number`);
  return {
    findFree: async (countryCode, contains, most) =>
      (await free.all({ countryCode, contains, most })).map(stockFromRow),
    findFreeNumber: async (phoneNumber) =>
      orNull(await freeNumber.get({ phoneNumber }), stockFromRow),
    take: (args) => writer.write("phoneNumbers.take", args),
    isTaken: async (purchaseUuid) => await taken.get({ purchaseUuid }) !== undefined,
    putBack: (purchaseUuid) => writer.write("phoneNumbers.putBack", { purchaseUuid }),
    stock: (args) => writer.write("phoneNumbers.stock", args),
    list: async () => (await all.all({})).map(stockFromRow),
  };
}
