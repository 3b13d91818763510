// The books of a whole store where very much is wrong with them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { auditLedger, PROBLEMS_TOLD_MAX } from "#storage/accounts/ledger-audit.ts";

const auditOf = async (stray: string[]): Promise<string[]> => (await auditLedger({
  audit: () => Promise.resolve(), strayReferences: () => Promise.resolve(stray),
})).problems;

test("[CL113] a ledger with hundreds of thousands of errors is found wrong: 100 listed, the rest counted", async () => {
  const stray = Array.from({ length: 300_000 }, (_, number) => `entry ${number} names nothing`);
  const told = stray.slice(0, PROBLEMS_TOLD_MAX);
  assert.equal(told.length, 100);
  assert.deepEqual(await auditOf(stray), [...told, "299900 more mistakes"]);
  assert.deepEqual(await auditOf(told), told);
});
