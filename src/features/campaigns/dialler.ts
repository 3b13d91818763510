// The dialler: one loop over all running campaigns. Changes (a campaign started, a lead added, a
// call over) and the clock wake it. Whatever a wake-up missed, the next tick finds in the database,
// so a restart needs no special handling.
import type { Assistant } from "#features/assistants/assistants.ts";
import type { CallTerms } from "#features/calls/calls.ts";
import type { Call, CallRef, EndReason } from "#features/calls/records/records.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { Micros } from "#core/money.ts";
import { createRecurring } from "#core/recurring.ts";
import type { Instant, System, Timer } from "#core/system.ts";
import type { EventBus, Notice } from "#events/bus.ts";
import { accountTopic } from "#events/events.ts";
import type { Callers } from "./callers.ts";
import type { Campaign, CampaignStore, ClaimOutcome } from "./campaigns.ts";

interface DiallerOptions extends Pick<Callers, "readyAssistant" | "numbersOf"> {
  store: CampaignStore;
  bus: EventBus;
  system: System;
  log: Logger;
  terms(assistant: Assistant): Promise<CallTerms>;
  /** Reserves capacity for a call until it is dialled; null: the server has none free. */
  hold(assistant: Assistant, number: string | null): Promise<(() => void) | null>;
  secondsFor(reservedMicros: Micros): number;
  /** Another node places the calls of that number. */
  isPlacedElsewhere(accountId: number, phoneNumber: string): Promise<boolean>;
  /** Called at most once for every claim, after it is durable. */
  dial(call: Call, assistant: Assistant, secondsMax: number): Promise<void>;
  /** Ends a call that was claimed and will not be dialled. */
  giveUp(call: CallRef, reason: EndReason): Promise<void>;
}

export interface Dialler {
  /** Settles leads that a dead process left behind and starts calling. */
  start(): void;
  /** Something changed: runs another pass. */
  wake(): void;
  /** Capacity became free on this node: runs another pass if a campaign waits for it. */
  freed(): void;
  /** Resolves once no pass runs or is pending. For tests. */
  idle(): Promise<void>;
  /** Begins no more calls. Idempotent. */
  close(): Promise<void>;
}

const DIALLING = "dialling for campaigns";

export function createDialler(options: DiallerOptions): Dialler {
  const { system, log } = options;
  const watch = createWatch(options, () => wake());
  const turns = new Map<number, number>();
  let state: "waiting" | "open" | "closed" = "waiting";
  let isAsked = false;
  let passing: Promise<void> | null = null;
  let timer: Timer | null = null;
  const places = createPlaces(options.hold);
  const recurring = createRecurring(log);
  const passOptions = { ...options, hold: places.hold };

  const passes = async (): Promise<void> => {
    while (isAsked && state === "open") {
      isAsked = false;
      places.forget();
      const until = await pass(passOptions, watch, turns, () => state === "open").then(
        (due) => {
          recurring.succeeded(DIALLING);
          return due;
        },
        (error: unknown) => {
          recurring.failed(DIALLING, error);
          return null;
        });
      timer?.cancel();
      timer = state === "open" ? system.after(waitMs(system, until), wake) : null;
    }
  };
  const wake = (): void => {
    isAsked = true;
    if (passing || state !== "open") return;
    passing = passes().finally(() => {
      passing = null;
      // A wake-up may arrive between the loop's last check and this line.
      if (isAsked) wake();
    });
  };
  return {
    start: () => {
      if (state === "waiting") state = "open";
      wake();
    },
    wake,
    freed: () => {
      if (places.isAwaited()) wake();
    },
    idle: async () => {
      while (passing) await passing;
    },
    close: async () => {
      state = "closed";
      timer?.cancel();
      await passing;
      watch.end();
    },
  };
}

function waitMs(system: System, until: Instant | null): number {
  const dueMs = until === null ? Infinity : Math.ceil((until - system.now()) / 1000);
  return Math.max(LIMITS.diallerPauseMs, Math.min(dueMs, LIMITS.diallerTickMs));
}

/** Tracks whether a call was not placed for lack of capacity. */
function createPlaces(hold: DiallerOptions["hold"]) {
  let isShort = false;
  let isOwn = false;
  return {
    hold: async (...args: Parameters<typeof hold>): ReturnType<typeof hold> => {
      const leave = await hold(...args);
      if (!leave) {
        isShort = true;
        return null;
      }
      // Capacity that the dialler itself releases must not wake it: it would never stop.
      return () => {
        isOwn = true;
        leave();
        isOwn = false;
      };
    },
    forget: (): void => void (isShort = false),
    isAwaited: (): boolean => isShort && !isOwn,
  };
}

/** Subscribes to the accounts that have running campaigns or campaign calls under way. */
function createWatch({ bus }: DiallerOptions, wake: () => void) {
  const ends = new Map<number, () => void>();
  const hear = (notice: Notice): void => {
    if (notice.kind === "missed") wake();
    if (notice.kind !== "committed") return;
    const { type, json } = notice.event;
    const isOver = type === "call_ended"
      || (type === "call_status_changed"
        && (JSON.parse(json) as { status: string }).status === "ended");
    if (isOver) wake();
  };
  return {
    /** Subscribes to exactly these accounts. */
    keep: (accountIds: Set<number>): void => {
      for (const id of accountIds) {
        if (!ends.has(id)) ends.set(id, bus.subscribe(accountTopic(id), hear));
      }
      for (const [id, end] of ends) {
        if (accountIds.has(id)) continue;
        end();
        ends.delete(id);
      }
    },
    end: (): void => {
      for (const end of ends.values()) end();
      ends.clear();
    },
  };
}

/** Settles, then claims and dials until nobody is due. Resolves to when the next lead will be. */
async function pass(
  options: DiallerOptions,
  watch: ReturnType<typeof createWatch>,
  turns: Map<number, number>,
  isOpen: () => boolean,
): Promise<Instant | null> {
  const { store, bus, system, log } = options;
  const listened = await store.running();
  const calling = await store.callingAccounts();
  watch.keep(new Set([...listened.map(({ accountId }) => accountId), ...calling]));
  // A failure of one, here and below, is left to the next pass and does not keep the others from
  // being called.
  const apart = <T>(work: Promise<T>, about: object): Promise<T | null> => work.catch(
    (error: unknown) => {
      log.error({ err: error, ...about }, "the dialler failed for a campaign");
      return null;
    });
  await Promise.all((await store.unsettled()).map(({ accountId, leadId }) => apart(
    store.settle({ accountId, leadId, now: system.now() }).then(bus.publishCommitted),
    { lead_id: leadId })));

  let until: Instant | null = null;
  let campaigns = (await store.running()).toSorted(
    (a, b) => (turns.get(a.id) ?? 0) - (turns.get(b.id) ?? 0));
  for (const id of turns.keys()) if (!campaigns.some((one) => one.id === id)) turns.delete(id);
  while (campaigns.length > 0 && isOpen()) {
    // One call each in turn: a large campaign does not keep a small one of the account waiting.
    const outcomes = await Promise.all(
      campaigns.map((campaign) => apart(
        claimOne(options, campaign, isOpen), { campaign_id: campaign.id })));
    const due = campaigns.filter((campaign, index) => {
      const outcome = outcomes[index];
      if (outcome?.kind === "idle" && outcome.until !== null) {
        until = Math.min(until ?? Infinity, outcome.until);
      }
      if (outcome?.kind === "claimed") turns.set(campaign.id, system.monotonicMs());
      return outcome?.kind === "claimed" || outcome?.kind === "again";
    });
    // Read again, so that a change takes effect before all leads of its campaign were processed.
    const now = due.length === 0 ? [] : await store.running();
    campaigns = due.flatMap(({ id }) => now.find((one) => one.id === id) ?? []);
  }
  return until;
}

async function claimOne(
  options: DiallerOptions, campaign: Campaign, isOpen: () => boolean,
): Promise<ClaimOutcome> {
  const { store, bus, system } = options;
  const { accountId } = campaign;
  const assistant = await options.readyAssistant(campaign);
  if (!assistant) {
    const events = await store.stop({
      accountId, campaignId: campaign.id, reason: "assistant_unavailable", by: null,
      note: null, assistantId: campaign.assistantId, now: system.now(),
    }) ?? [];
    bus.publishCommitted(events);
    return { kind: "over", events };
  }
  const all = await options.numbersOf(campaign, assistant);
  const elsewhere = await Promise.all(
    all.map((number) => options.isPlacedElsewhere(accountId, number)));
  const numbers = all.filter((_, index) => !elsewhere[index]);
  if (all.length > 0 && numbers.length === 0) return { kind: "idle", until: null };
  const leave = await options.hold(assistant, numbers[0] ?? null);
  if (!leave) return { kind: "idle", until: system.now() + LIMITS.capacityRetryS * 1_000_000 };
  try {
    return await claimAndDial(options, campaign, { assistant, numbers, isOpen });
  } finally {
    leave();
  }
}

interface ClaimWith {
  assistant: Assistant;
  numbers: string[];
  isOpen(): boolean;
}

async function claimAndDial(
  options: DiallerOptions, campaign: Campaign, { assistant, numbers, isOpen }: ClaimWith,
): Promise<ClaimOutcome> {
  const { store, bus, system, log } = options;
  const outcome = await store.claim({
    accountId: campaign.accountId,
    campaignId: campaign.id,
    assistant: { id: assistant.id, uuid: assistant.uuid },
    numbers,
    terms: await options.terms(assistant),
    now: system.now(),
  });
  if ("events" in outcome) bus.publishCommitted(outcome.events);
  if (outcome.kind !== "claimed") return outcome;
  const { call, reservedMicros } = outcome;
  if (!isOpen()) {
    await options.giveUp(call, "server_restarted");
    return outcome;
  }
  try {
    await options.dial(call, assistant, options.secondsFor(reservedMicros));
  } catch (error) {
    log.error({ err: error, call_id: call.id }, "could not place a campaign's call");
    await options.giveUp(call, "speech_failed");
  }
  return outcome;
}
