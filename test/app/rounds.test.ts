// Work that comes round by the clock, and what the log says of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRounds } from "#app/rounds.ts";
import type { Logger } from "#core/logger.ts";
import { nextTurn } from "#core/system.ts";
import { createManualSystem } from "#support/manual-clock.ts";

test("[OP182] a periodic task that keeps failing is logged once per reason, and when it works again", async () => {
  const system = createManualSystem();
  const said: string[] = [];
  const log = {
    info: (text: string) => said.push(text),
    error: ({ err }: { err: Error }, text: string) => said.push(`${text}: ${err.message}`),
  } as unknown as Logger;
  const outcomes = ["full", "full", "full", "away", "", "", "full"];
  const rounds = createRounds({ system, log, isHalted: () => false });
  rounds.every(1000, "message index", async () => {
    const reason = outcomes.shift() ?? "";
    if (reason !== "") throw new Error(reason);
  });
  while (outcomes.length > 0) {
    system.advance(1000);
    await rounds.settled();
    await nextTurn();
  }
  assert.deepEqual(said, [
    "message index failed: full", "message index failed: away", "message index works again",
    "message index failed: full",
  ]);
});
