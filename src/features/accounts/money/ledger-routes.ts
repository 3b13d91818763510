// The wire of an account's ledger: its entries in pages, and the proof that they are right.
import { Type, type Static } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import { dollarsFromMicros } from "#core/money.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { isoMicros } from "#core/system.ts";
import { Moment } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import {
  dayQuery, dayRange, pageEnvelope, pageQuery, PageSchema, PER_PAGE_DEFAULT,
} from "#http/pagination.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { LEDGER_KINDS, type LedgerEntry } from "./ledger.ts";
import type { EntryFilter, Statements } from "./statements.ts";

const REFERENCE_CHARS_MAX = 255;

const Kind = OneOf(
  LEDGER_KINDS, about("The kind of entry; `credit` is money paid in."));
const ListQuery = Type.Object({
  ...pageQuery(),
  kind: Type.Optional(Kind),
  reference: Type.Optional(Type.String({
    maxLength: REFERENCE_CHARS_MAX,
    ...about(
      "Only entries with this reference. End it with `*` to match a prefix.",
      "call:*"),
  })),
  ...dayQuery,
});
const EntrySchema = Type.Object({
  number: Type.Integer(about("The entry's number in the ledger: 1, 2, 3 … without gaps.", 17)),
  kind: Kind,
  reference: Type.String(about("A unique reference to what was billed or paid.", "call:12")),
  amount: Type.Number(about("The amount in USD; negative for money spent.", -0.12)),
  balance_after: Type.Number(about("The balance after this entry, in USD.", 4.88)),
  created_at: Moment("When it was booked, in UTC."),
  hash: Type.String(about(
    "SHA-256 over the previous hash and this entry's fields, so that no change goes unnoticed.",
    "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab")),
}, named("LedgerEntry", "An entry of the account's ledger, which is append-only."));
const VerificationSchema = Type.Object({
  ok: Type.Boolean(about("Whether every hash and the balance are right.")),
  entries: Type.Integer(about("The number of entries checked.", 17)),
  balance: Type.Number(about("The account's balance, in USD.", 4.88)),
  sum: Type.Number(about("The sum of all entries, in USD; equals the balance if the ledger is "
    + "valid.",
    4.88)),
  reserved: Type.Number(about("The amount reserved for running replies and calls, in USD.", 0)),
  problem: Nullable(Type.Object({
    number: Nullable(Type.Integer(about(
      "The first wrong entry; null if it concerns the whole account.", 12))),
    what: Type.String(about(
      "What is wrong, with amounts in millionths of a dollar.", "the hash does not fit")),
  }, about("The problem found; null if there is none."))),
  verified_at: Moment("When it was checked, in UTC."),
});

const COMMON = { tag: "Account", errorShape: "message" } as const;

const wireEntry = (entry: LedgerEntry): Static<typeof EntrySchema> => ({
  number: entry.number,
  kind: entry.kind,
  reference: entry.reference,
  amount: dollarsFromMicros(entry.amountMicros),
  balance_after: dollarsFromMicros(entry.balanceAfterMicros),
  created_at: isoMicros(entry.createdAt),
  hash: entry.hash,
});

function filterOf(query: Static<typeof ListQuery>): EntryFilter {
  const { kind, reference: text } = query;
  const isPrefix = text?.endsWith("*") ?? false;
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(text === undefined
      ? {}
      : { reference: { text: isPrefix ? text.slice(0, -1) : text, isPrefix } }),
    ...dayRange(query),
  };
}

export function ledgerRoutes(statements: Statements): Route[] {
  return [listRoute(statements), verificationRoute(statements)];
}

function listRoute(statements: Statements): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/ledger",
    summary: "List ledger entries",
    description: "Lists credits and charges in pages, newest first.",
    query: ListQuery,
    responses: { 200: { description: "A page", schema: PageSchema(EntrySchema) } },
    handle: async ({ caller, query, http, baseUrl }) => {
      const { page = 1, per_page: perPage = PER_PAGE_DEFAULT } = query;
      const { items, total } = await statements.page(
        caller.accountId, filterOf(query), { page, perPage });
      const path = `${baseUrl}/user/ledger`;
      return json(200, pageEnvelope(
        { items: items.map(wireEntry), total }, { path, query: http.query, page, perPage }));
    },
  });
}

function verificationRoute(statements: Statements): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/ledger/verification",
    summary: "Verify the ledger",
    description: "Recomputes every hash and the balance from the entries.",
    responses: { 200: { description: "The result", schema: VerificationSchema } },
    handle: async ({ caller }) => {
      const found = await statements.verify(caller.accountId);
      if (!found) throw new Fault(404, "Account not found.");
      return json(200, {
        ok: found.problem === null,
        entries: found.entries,
        balance: dollarsFromMicros(found.balanceMicros),
        sum: dollarsFromMicros(found.sumMicros),
        reserved: dollarsFromMicros(found.reservedMicros),
        problem: found.problem,
        verified_at: isoMicros(found.verifiedAt),
      });
    },
  });
}
