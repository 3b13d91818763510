// Composition root, the part about leads and campaigns: joins them to assistants, numbers and
// calls. Called by features.ts.
import type { Accounts } from "#features/accounts/accounts.ts";
import type { Assistant, Assistants } from "#features/assistants/assistants.ts";
import type { Catalogs } from "#features/assistants/catalogs.ts";
import type { Calling } from "#features/calls/calling.ts";
import type { Calls } from "#features/calls/calls.ts";
import { createCampaigns, type Campaign } from "#features/campaigns/campaigns.ts";
import { createDialler } from "#features/campaigns/dialler.ts";
import { Fault } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import { createLeads } from "#features/leads/leads.ts";
import type { Storage } from "#storage/storage.ts";

export interface CampaigningOptions {
  storage: Storage;
  bus: EventBus;
  system: System;
  log: Logger;
  accounts: Accounts;
  assistants: Assistants;
  catalogs: Catalogs;
  calls: Calls;
  calling: Pick<Calling, "dial">;
  /** Throws Fault 422 when the assistant cannot call from the number. */
  assertCanCall(assistant: Assistant, phoneNumber: string | null): void;
}

export function createCampaigning(options: CampaigningOptions) {
  const { storage, bus, system, log, accounts, assistants, catalogs, calls } = options;
  const { calling, assertCanCall } = options;
  const numberOf = (accountId: number, id: number | null): string[] => {
    const number = id === null ? null : storage.phoneNumbers.find(accountId, id);
    return number ? [number.phoneNumber] : [];
  };
  const numbersOf = (
    { accountId, phoneNumberIds }: Campaign, { phoneNumberId }: Assistant,
  ): string[] => {
    const own = phoneNumberIds.flatMap((id) => numberOf(accountId, id));
    return own.length > 0 ? own : numberOf(accountId, phoneNumberId);
  };
  /** The first of its numbers stands for all of them. */
  const assertCanCallFor = (assistant: Assistant, campaign: Campaign): void =>
    assertCanCall(assistant, numbersOf(campaign, assistant)[0] ?? null);
  const dialler = createDialler({
    store: storage.campaigns,
    bus, system, log,
    readyAssistant: (campaign) => {
      const assistant = assistants.find(campaign.accountId, campaign.assistantId);
      return assistant?.status === "active" && canCall(assistant, campaign) ? assistant : null;
    },
    terms: calls.terms,
    secondsFor: calls.secondsFor,
    numbersOf,
    dial: (call, assistant, secondsMax) => calling.dial(call, assistant, secondsMax),
    giveUp: (callId, reason) => calls.change(callId, "failed", { reason }),
  });
  const canCall = (assistant: Assistant, campaign: Campaign): boolean => {
    try {
      assertCanCallFor(assistant, campaign);
      return true;
    } catch (error) {
      if (error instanceof Fault) return false;
      throw error;
    }
  };
  const findAssistant = (accountId: number, id: number) => assistants.find(accountId, id);
  return {
    dialler,
    leads: createLeads({
      store: storage.leads, bus, system, onQueueChange: () => dialler.wake(),
    }),
    campaigns: createCampaigns({
      store: storage.campaigns,
      bus, system, findAssistant, assertCanCall: assertCanCallFor,
      terms: calls.terms,
      campaignsMax: (accountId) =>
        catalogs.plan(accounts.find(accountId)?.plan ?? "").campaigns,
      onChange: () => dialler.wake(),
    }),
    campaignRules: {
      findAssistant,
      ownsNumber: (accountId: number, id: number) => numberOf(accountId, id).length > 0,
      parallelMax: (accountId: number) =>
        catalogs.plan(accounts.find(accountId)?.plan ?? "").parallel_calls,
    },
  };
}
