// Phone numbers in SQLite: reads for the main thread.
import type {
  PhoneNumber, PhoneNumberStore, PhoneNumberType,
} from "../../phone-numbers/phone-numbers.ts";
import type { Db } from "./database.ts";

interface PhoneNumberRow {
  id: number;
  account_id: number;
  phone_number: string;
  country_code: string;
  type: PhoneNumberType;
  created_at: number;
}

const PHONE_NUMBER = "id, account_id, phone_number, country_code, type, created_at";

function phoneNumberFromRow(row: PhoneNumberRow): PhoneNumber {
  return {
    id: row.id,
    accountId: row.account_id,
    phoneNumber: row.phone_number,
    countryCode: row.country_code,
    type: row.type,
    createdAt: row.created_at,
  };
}

export function createPhoneNumberStore(db: Db): PhoneNumberStore {
  const find = db.prepare<[object], PhoneNumberRow>(`
    SELECT ${PHONE_NUMBER} FROM phone_numbers
    WHERE id = @phoneNumberId AND account_id = @accountId`);
  const list = db.prepare<[object], PhoneNumberRow>(`
    SELECT ${PHONE_NUMBER} FROM phone_numbers WHERE account_id = @accountId ORDER BY id`);
  return {
    find: (accountId, phoneNumberId) => {
      const row = find.get({ accountId, phoneNumberId });
      return row ? phoneNumberFromRow(row) : null;
    },
    list: (accountId) => list.all({ accountId }).map(phoneNumberFromRow),
  };
}
