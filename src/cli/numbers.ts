// The number commands of the `parley` program: the operator's own numbers, which accounts can buy.
import { readFileSync } from "node:fs";
import { whyUnread } from "#core/disk.ts";
import { LIMITS } from "#core/limits.ts";
import { dollarsFromMicros, formatMicros } from "#core/money.ts";
import { readNumberPrices, type NumberPrices } from "#core/price-lists.ts";
import { createSystem } from "#core/system.ts";
import type { NewStock } from "#features/phone-numbers/inventory.ts";
import { parseNumber } from "#features/phone-numbers/prices.ts";
import { HOSTED_ACCOUNTS } from "#core/hosted-accounts.ts";
import {
  readAmount, table, text, UsageError, withStorage, type Command, type Invocation,
} from "./command.ts";

function textOf(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new Error(`${file} cannot be read: ${whyUnread(error)}`, { cause: error });
  }
}

function readLines(file: string): string[] {
  return textOf(file)
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim());
}

function readCountry(values: Invocation["values"]): string | undefined {
  const country = text(values, "country")?.toUpperCase();
  if (country === undefined || /^[A-Z]{2}$/.test(country)) return country;
  throw new UsageError("--country must be two letters, such as US");
}

/** All lines, or an error that names each invalid one. */
function readStock(
  lines: string[], values: Invocation["values"], prices: NumberPrices,
): NewStock[] {
  const country = readCountry(values);
  const monthlyMicros = values.price === undefined
    ? null
    : readAmount(text(values, "price"), "--price");
  if (monthlyMicros !== null && monthlyMicros < 0) throw new UsageError("--price must not be negative");
  const carrier = readCarrier(values);
  const problems: string[] = [];
  const stock: NewStock[] = [];
  lines.forEach((line, index) => {
    if (line === "") return;
    const refuse = (why: string) => problems.push(`line ${index + 1}: ${line} ${why}`);
    const number = parseNumber(line);
    const countryCode = country ?? number?.countryCode;
    if (!number) refuse("is not a number in E.164");
    else if (!countryCode) refuse("does not reveal its country: add --country");
    else if (monthlyMicros === null && prices.of(countryCode) === null) {
      refuse(`is from ${countryCode}, which has no price in the list: add --price`);
    } else {
      const { phoneNumber } = number;
      const smsCapable = values.sms === true;
      const known = { phoneNumber, countryCode, monthlyMicros, smsCapable };
      stock.push(carrier === undefined ? known : { ...known, carrier });
    }
  });
  if (problems.length > 0) throw new Error(`nothing was imported\n${problems.join("\n")}`);
  if (stock.length > LIMITS.numberImportMax) {
    throw new Error(`more than ${LIMITS.numberImportMax} numbers; nothing was imported`);
  }
  return stock;
}

function readCarrier(values: Invocation["values"]): NewStock["carrier"] {
  const given = text(values, "carrier");
  if (given === undefined) return undefined;
  if (given === "none") return null;
  const carrier = HOSTED_ACCOUNTS.find((account) => account === given);
  if (!carrier) throw new UsageError(`--carrier must be one of ${HOSTED_ACCOUNTS.join(", ")}, none`);
  return carrier;
}

const importNumbers: Command = {
  name: "number import",
  takes: "FILE|- [--country US] [--price 3.99] [--sms] [--carrier telnyx|none]",
  summary: "Import your own numbers, one E.164 number a line; of known ones only --carrier applies",
  words: 1,
  options: {
    country: { type: "string" }, price: { type: "string" }, sms: { type: "boolean" },
    carrier: { type: "string" },
  },
  run: ({ config, values, positionals: [file] }) => {
    if (file === undefined) throw new UsageError("FILE is required; - reads standard input");
    const prices = config.PARLEY_NUMBER_PRICES_FILE ?? readNumberPrices();
    const numbers = readStock(readLines(file), values, prices);
    return withStorage(config, async ({ numberInventory }) => {
      const now = createSystem().now();
      const { imported, moved } = await numberInventory.stock({ numbers, now });
      const known = numbers.length - imported;
      return {
        value: {
          imported, known,
          moved: moved.map(({ phoneNumber, ...carriers }) =>
            ({ phone_number: phoneNumber, ...carriers })),
        },
        text: [
          `${imported} numbers imported${known > 0 ? `, ${known} already known` : ""}`,
          ...moved.map(({ phoneNumber, from, to }) =>
            `${phoneNumber} moved from ${from ?? "none"} to ${to ?? "none"}`),
        ].join("\n"),
      };
    });
  },
};

const listNumbers: Command = {
  name: "number list",
  takes: "",
  summary: "List your own numbers and who bought them",
  options: {},
  run: ({ config }) =>
    withStorage(config, async ({ numberInventory }) => {
      const rows = await numberInventory.list();
      const value = rows.map((row) => ({
        phone_number: row.phoneNumber,
        country_code: row.countryCode,
        sms_capable: row.smsCapable,
        price: row.monthlyMicros === null ? null : dollarsFromMicros(row.monthlyMicros),
        carrier: row.carrier,
        account_id: row.accountId,
      }));
      const lines = rows.map((row) => [
        row.phoneNumber, row.countryCode, row.smsCapable ? "sms" : "-",
        row.monthlyMicros === null ? "by country" : formatMicros(row.monthlyMicros),
        row.carrier ?? "-", row.accountId ?? "free",
      ]);
      const head = ["phone_number", "country", "sms", "price", "carrier", "account"];
      return Promise.resolve({ value, text: table([head, ...lines]) });
    }),
};

const approveNumber: Command = {
  name: "number approve",
  takes: "NUMBER --account ID",
  summary: "Assign a SIP trunk's number that several accounts claim",
  words: 1,
  options: { account: { type: "string" } },
  run: ({ config, values, positionals: [given] }) => {
    const accountId = Number(text(values, "account"));
    if (given === undefined) throw new UsageError("NUMBER is required");
    if (!Number.isInteger(accountId) || accountId < 1) {
      throw new UsageError("--account must be an account id");
    }
    // An extension is what a telephone system calls it, E.164 or not.
    const phoneNumber = parseNumber(given)?.phoneNumber ?? given;
    return withStorage(config, async ({ sipTrunks }) => {
      const now = createSystem().now();
      if (!await sipTrunks.approve({ phoneNumber, accountId, now })) {
        throw new Error(`there is no account ${accountId}`);
      }
      return {
        value: { phone_number: phoneNumber, account_id: accountId },
        text: `${phoneNumber} belongs to account ${accountId}`,
      };
    });
  },
};

export const numberCommands: Command[] = [importNumbers, listNumbers, approveNumber];
