// The wire of an account's ledger: its entries in pages, and the proof that they are right.
import { Type, type Static } from "@sinclair/typebox";
import { Fault } from "../core/faults.ts";
import { dollarsFromMicros } from "../core/money.ts";
import { Nullable } from "../core/schema.ts";
import { isoMicros } from "../core/system.ts";
import { json } from "../http/exchange.ts";
import { dayQuery, dayRange, pageEnvelope, pageQuery, PageSchema } from "../http/pagination.ts";
import { keyRoute, type Route } from "../http/route.ts";
import { LEDGER_KINDS, type LedgerEntry } from "./ledger.ts";
import type { EntryFilter, Statements } from "./statements.ts";

const PER_PAGE_DEFAULT = 15;
const REFERENCE_CHARS_MAX = 255;

const Kind = Type.Union(LEDGER_KINDS.map((kind) => Type.Literal(kind)));
const ListQuery = Type.Object({
  ...pageQuery(PER_PAGE_DEFAULT),
  kind: Type.Optional(Kind),
  reference: Type.Optional(Type.String({
    maxLength: REFERENCE_CHARS_MAX,
    description: "Exactly this one; with * at its end, all that begin with what is before it",
  })),
  ...dayQuery,
});
const EntrySchema = Type.Object({
  number: Type.Integer({ description: "1, 2, 3 … without holes" }),
  kind: Kind,
  reference: Type.String({ description: "What was billed; unique for ever" }),
  amount: Type.Number({ description: "Negative: money spent" }),
  balance_after: Type.Number(),
  created_at: Type.String(),
  hash: Type.String({ description: "SHA-256 over the hash before it and this entry's fields" }),
});
const VerificationSchema = Type.Object({
  ok: Type.Boolean(),
  entries: Type.Integer(),
  balance: Type.Number(),
  sum: Type.Number({ description: "Of all entries" }),
  reserved: Type.Number(),
  problem: Nullable(Type.Object({
    number: Nullable(Type.Integer({ description: "Null: the account as a whole is at fault" })),
    what: Type.String({ description: "Amounts in micro-dollars" }),
  })),
  verified_at: Type.String(),
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
    summary: "What came in and what was billed, in pages, newest first",
    query: ListQuery,
    responses: { 200: { description: "A page", schema: PageSchema(EntrySchema) } },
    handle: ({ caller, query, http, baseUrl }) => {
      const { page = 1, per_page: perPage = PER_PAGE_DEFAULT } = query;
      const { items, total } = statements.page(
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
    summary: "Recompute every hash and the balance from the ledger",
    responses: { 200: { description: "What was found", schema: VerificationSchema } },
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
