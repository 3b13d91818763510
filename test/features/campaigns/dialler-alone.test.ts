// The dialler, the choice of its numbers and retries by themselves: what they ask of others, and
// what becomes of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#core/logger.ts";
import { LIMITS } from "#core/limits.ts";
import { nextTurn } from "#core/system.ts";
import { createMemoryBus } from "#events/bus.ts";
import { accountTopic, type CommittedEvent } from "#events/events.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Call } from "#features/calls/records/records.ts";
import { createCallers } from "#features/campaigns/callers.ts";
import {
  createCampaigns, type Campaign, type CampaignStore, type ClaimArgs, type ClaimOutcome,
} from "#features/campaigns/campaigns.ts";
import { createDialler } from "#features/campaigns/dialler.ts";
import { createManualSystem } from "#support/manual-clock.ts";

type DiallerOptions = Parameters<typeof createDialler>[0];

const campaign = {
  id: 1, accountId: 1, assistantId: 7, status: "in-progress", phoneNumberIds: [] as number[],
} as Campaign;
const assistant = { id: 7, status: "active", phoneNumberId: 3 } as Assistant;
const claimed: ClaimOutcome = {
  kind: "claimed", call: { id: 5, accountId: 1 } as Call, reservedMicros: 0, events: [],
};

/** Claims one call; `held` is how much capacity is taken. */
function diallerWith(
  claim: () => Promise<ClaimOutcome>, changes: Partial<DiallerOptions> = {},
) {
  const seen = {
    claims: [] as ClaimArgs[], stops: [] as object[], given: [] as string[], held: 0, dialled: 0,
  };
  const store: Partial<CampaignStore> = {
    running: async () => [campaign],
    callingAccounts: async () => [],
    unsettled: async () => [],
    claim: async (args) => {
      seen.claims.push(args);
      return seen.claims.length === 1 ? claim() : { kind: "idle", until: null };
    },
    stop: async (args) => {
      seen.stops.push(args);
      return [];
    },
  };
  const dialler = createDialler({
    store: store as CampaignStore, bus: createMemoryBus(), system: createManualSystem(),
    log: createLogger("silent"),
    readyAssistant: async () => assistant,
    numbersOf: async () => ["+15550200001", "+15550200002"],
    terms: async () => ({}) as never,
    hold: async () => {
      seen.held += 1;
      return () => {
        seen.held -= 1;
      };
    },
    secondsFor: () => 60,
    isPlacedElsewhere: async () => false,
    dial: async () => {
      seen.dialled += 1;
    },
    giveUp: async (_, reason) => void seen.given.push(reason),
    ...changes,
  });
  return { dialler, seen };
}

test("[MU20] a call claimed while the server stops, or that cannot be placed, is given up; its place is free again", async () => {
  const claiming = Promise.withResolvers<ClaimOutcome>();
  const stopping = diallerWith(() => claiming.promise);
  stopping.dialler.start();
  while (stopping.seen.claims.length === 0) await nextTurn();
  assert.equal(stopping.seen.held, 1);
  const closed = stopping.dialler.close();
  claiming.resolve(claimed);
  await closed;
  const { given, held, dialled } = stopping.seen;
  assert.deepEqual([given, held, dialled], [["server_restarted"], 0, 0]);

  const failing = diallerWith(async () => claimed, { dial: async () => assert.fail("no line") });
  failing.dialler.start();
  await failing.dialler.idle();
  assert.deepEqual([failing.seen.given, failing.seen.held], [["speech_failed"], 0]);
  await failing.dialler.close();
});

test("[MU21] a node calls from the numbers that it places itself, and leaves a campaign of others' to them", async () => {
  const some = diallerWith(async () => claimed, {
    isPlacedElsewhere: async (_, number) => number === "+15550200001",
  });
  some.dialler.start();
  await some.dialler.idle();
  assert.deepEqual(some.seen.claims[0]?.numbers, ["+15550200002"]);
  await some.dialler.close();
  const none = diallerWith(async () => claimed, { isPlacedElsewhere: async () => true });
  none.dialler.start();
  await none.dialler.idle();
  assert.deepEqual(none.seen.claims, []);
  await none.dialler.close();
});

test("[RD5] the dialler looks again when it missed what happened in an account that it calls for", async () => {
  const bus = createMemoryBus();
  const { dialler, seen } = diallerWith(async () => ({ kind: "full" }), { bus });
  dialler.start();
  await dialler.idle();
  assert.equal(seen.claims.length, 1);
  bus.publish(accountTopic(2), { kind: "missed" });
  await dialler.idle();
  assert.equal(seen.claims.length, 1, "another account");
  bus.publish(accountTopic(1), { kind: "missed" });
  await dialler.idle();
  assert.equal(seen.claims.length, 2);
  await dialler.close();
});

test("[MU22] a campaign is stopped for the assistant that was found unable to call", async () => {
  const { dialler, seen } = diallerWith(async () => claimed, { readyAssistant: async () => null });
  dialler.start();
  await dialler.idle();
  const [{ assistantId, reason } = {}] = seen.stops as { assistantId?: number; reason?: string }[];
  assert.deepEqual([assistantId, reason], [7, "assistant_unavailable"]);
  await dialler.close();
});

test("[MU23] a campaign calls from its numbers, else from its assistant's, who must be able to call", async () => {
  const owned = new Map([[1, "+15550200001"], [3, "+15550200003"]]);
  let [status, why] = ["active", null as string | null];
  const callers = createCallers({
    findAssistant: async () => ({ ...assistant, status }) as Assistant,
    findNumber: async (_, id) => {
      const phoneNumber = owned.get(id);
      return phoneNumber === undefined ? null : { phoneNumber };
    },
    whyCannotCall: async () => why,
  });
  const from = (phoneNumberIds: number[]) =>
    callers.numbersOf({ ...campaign, phoneNumberIds }, assistant);
  assert.deepEqual(
    [await from([1, 2]), await from([2]), await from([])],
    [["+15550200001"], ["+15550200003"], ["+15550200003"]]);
  assert.equal((await callers.readyAssistant(campaign))?.id, 7);
  status = "inactive";
  assert.equal(await callers.readyAssistant(campaign), null);
  [status, why] = ["active", "It has no line."];
  assert.equal(await callers.readyAssistant(campaign), null);
});

test("[MU41] a retry takes all leads it is asked for, however many, and wakes the dialler", async () => {
  const steps = [LIMITS.leadImportBatchRows, LIMITS.leadImportBatchRows, 3, 0];
  let woken = 0;
  const campaigns = createCampaigns({
    store: {
      findById: async () => campaign,
      retry: async () => Array<CommittedEvent>(steps.shift() ?? 0).fill({} as CommittedEvent),
    } as unknown as CampaignStore,
    bus: { ...createMemoryBus(), publishCommitted: () => undefined },
    system: createManualSystem(),
    callers: { findAssistant: async () => null, whyCannotCall: async () => null },
    terms: async () => ({}) as never, campaignsMax: async () => 1,
    onChange: () => void (woken += 1),
  });
  assert.equal(await campaigns.retry(1, 1, ["busy"]), 2 * LIMITS.leadImportBatchRows + 3);
  assert.equal(woken, 1);
  assert.equal(await campaigns.retry(1, 1, ["busy"]), 0);
  assert.equal(woken, 1, "nobody is to be called");
});
