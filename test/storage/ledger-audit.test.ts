// The books of a whole store where very much is wrong with them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { auditLedger } from "#storage/accounts/ledger-audit.ts";

test("[CL113] a ledger with hundreds of thousands of mistakes is found wrong, and each is told", async () => {
  const stray = Array.from({ length: 300_000 }, (_, number) => `entry ${number} names nothing`);
  const { problems } = await auditLedger({
    audit: () => Promise.resolve(), strayReferences: () => Promise.resolve(stray),
  });
  assert.deepEqual(problems, stray);
});
