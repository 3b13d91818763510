// What reads much of an account's data is asked of the reader beside the main thread.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFirstStepStore } from "#storage/accounts/first-day.ts";
import { createSql } from "#storage/engines/postgres/sql.ts";
import { createFigureReads } from "#storage/campaigns/figures.ts";
import { createLeadStore } from "#storage/leads/leads.ts";
import type { Reader, Sql } from "#storage/sql.ts";

const nobody = (): Promise<never> => Promise.reject(new Error("nothing is asked here"));
const writer = {
  write: nobody, failure: () => null, isRefusing: () => false, close: () => Promise.resolve(),
};

/** A reader that finds nothing, and what was asked of it where. */
function recordingReader() {
  const ran = { here: [] as string[], aside: [] as string[] };
  const recording = (place: keyof typeof ran): Sql => ({
    ...createSql(nobody),
    prepare: (text) => ({
      get: () => {
        ran[place].push(text);
        return Promise.resolve(undefined);
      },
      all: () => {
        ran[place].push(text);
        return Promise.resolve([]);
      },
      one: nobody, insert: nobody, run: nobody,
    }),
  });
  const beside = recording("aside");
  const reader: Reader = { ...recording("here"), snapshot: (read) => read(beside) };
  return { ran, reader };
}

test("[SO121] what an account has never had is looked up off the main thread", async () => {
  const { ran, reader } = recordingReader();
  await createFirstStepStore(reader, writer).read(1);
  assert.equal(ran.aside.filter((text) => /FROM (conversations|calls)/.test(text)).length, 3);
  assert.doesNotMatch(ran.here.join(), /conversations|calls/);
});

test("[FA5] a campaign's leads are counted and listed off the main thread", async () => {
  const { ran, reader } = recordingReader();
  const leads = createLeadStore(reader, writer);
  const asked = { campaignId: 1, isByActivity: true };
  for (const filter of [asked, { ...asked, isDueAt: 1 }, { from: 1 }]) {
    await leads.list(1, filter, 0, 25);
  }
  assert.deepEqual([ran.here, ran.aside.length], [[], 3]);
  await createFigureReads(reader)({ id: 1, accountId: 1 }, 0, 1);
  assert.doesNotMatch(ran.here.join(), /count\(\*\)/);
});
