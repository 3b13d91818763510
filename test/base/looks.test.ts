// Work that is looked for in the database again and again.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Logger } from "#core/logger.ts";
import { createLooks } from "#core/looks.ts";
import { nextTurn } from "#core/system.ts";

test("[OP336] a look for work that keeps failing is logged when it begins to and when it works again", async () => {
  const logged: string[] = [];
  const log = {
    error: (_: object, text: string) => logged.push(text),
    info: (text: string) => logged.push(text),
  } as unknown as Logger;
  let failure: Error | null = null;
  const looks = createLooks(
    () => (failure ? Promise.reject(failure) : Promise.resolve()), log, "looking for work");
  const look = (next: Error | null): Promise<void> => {
    failure = next;
    looks.ask();
    return looks.settled();
  };
  for (const next of [null, new Error("away"), new Error("away"), new Error("full")]) await look(next);
  assert.deepEqual(logged, ["looking for work failed", "looking for work failed"], "for each reason");
  for (const next of [null, null]) await look(next);
  assert.deepEqual(logged.slice(2), ["looking for work works again"]);
});

test("[EX801] looks have settled only once the one that was asked for during a failed one has ended", async () => {
  const log = { error: () => undefined, info: () => undefined } as unknown as Logger;
  let ended = 0;
  const looks = createLooks(async () => {
    if (ended === 0) looks.ask();
    await nextTurn();
    ended += 1;
    if (ended === 1) throw new Error("away");
  }, log, "looking for work");
  looks.ask();
  await looks.settled();
  assert.equal(ended, 2);
});
