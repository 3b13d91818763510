// Composition root, the part about leads and campaigns: connects them to assistants, numbers and
// calls. Called by features.ts.
import type { Wire } from "#cluster/wire.ts";
import type { Assistants } from "#features/assistants/assistants.ts";
import type { Calling } from "#features/calls/calling.ts";
import type { Calls } from "#features/calls/calls.ts";
import type { Lines } from "#features/calls/lines.ts";
import { createCallers } from "#features/campaigns/callers.ts";
import { createCampaigns } from "#features/campaigns/campaigns.ts";
import { createDialler } from "#features/campaigns/dialler.ts";
import type { Logger } from "#core/logger.ts";
import type { Plan } from "#core/price-lists.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { SipTrunks } from "#features/phone-numbers/sip-trunks.ts";
import { createLeads } from "#features/leads/leads.ts";
import type { Storage } from "#storage/storage.ts";

/** The topic that announces new leads to call. */
const QUEUES = "queues";

interface CampaigningOptions {
  storage: Storage;
  /** Null: there are no other nodes. */
  wire: Wire | null;
  phoneNumbers: { sipTrunks: Pick<SipTrunks, "placedBy"> };
  bus: EventBus;
  system: System;
  log: Logger;
  planOf(accountId: number): Promise<Plan>;
  assistants: Assistants;
  calls: Calls;
  voice: { calling: Pick<Calling, "dial" | "hold" | "onFreed"> } & Pick<Lines, "isScript" | "whyCannotCall">;
}

export function createCampaigning(options: CampaigningOptions) {
  const { storage, wire, bus, system, log, planOf, assistants, calls, voice } = options;
  const store = storage.campaigns;
  const callers = createCallers({
    findAssistant: assistants.find,
    findNumber: (accountId, id) => storage.phoneNumbers.find(accountId, id),
    whyCannotCall: voice.whyCannotCall,
  });
  const dialler = createDialler({
    ...callers, store, bus, system, log,
    isPlacedElsewhere: async (accountId, number) =>
      await options.phoneNumbers.sipTrunks.placedBy(accountId, number) !== null,
    terms: calls.terms,
    secondsFor: calls.secondsFor,
    hold: async (assistant, number) => voice.calling.hold(
      assistant, await voice.isScript(assistant.accountId, number) ? "script" : null),
    dial: (call, assistant, secondsMax) => voice.calling.dial(call, assistant, secondsMax),
    giveUp: (call, reason) => calls.change(call, "failed", { reason }),
  });
  /** All nodes dial, so all of them are woken. */
  const wakeAll = (): void => {
    dialler.wake();
    wire?.publish(QUEUES, new Uint8Array());
  };
  voice.calling.onFreed(dialler.freed);
  wire?.subscribe(QUEUES, () => dialler.wake());
  return {
    dialler,
    callers,
    leads: createLeads({
      store: storage.leads, bus, system, onQueueChange: wakeAll,
    }),
    campaigns: createCampaigns({
      store, bus, system, callers,
      terms: calls.terms,
      campaignsMax: async (accountId) => (await planOf(accountId)).campaigns,
      onChange: wakeAll,
    }),
  };
}
