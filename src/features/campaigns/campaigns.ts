// Campaigns: an assistant that calls a list of leads, within hours and limits. Records, store port,
// and the use cases of a client. The calling itself is in dialler.ts.
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Weekday } from "#core/days.ts";
import type { CallTerms } from "#features/calls/calls.ts";
import type { Call } from "#features/calls/records/records.ts";
import { Fault } from "#core/faults.ts";
import type { Micros } from "#core/money.ts";
import { deletedInSteps } from "#core/steps.ts";
import type { Instant, System } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import type { EventBus } from "#events/bus.ts";
import { deedUnderWay } from "#core/deed.ts";
import { LIMITS } from "#core/limits.ts";
import type { CampaignReason, CommittedEvent } from "#events/events.ts";
import { campaignNotFound, type LeadOutcome, type LeadStatus } from "#features/leads/leads.ts";
import type { Callers } from "./callers.ts";
import { pauseOf, type CampaignFigures, type Pause } from "./figures.ts";
import type { CallingHours } from "./hours.ts";
import type { Breaker } from "./rules.ts";

export type CampaignStatus = "draft" | "in-progress" | "stopped" | "completed";

export interface CampaignFields extends CallingHours {
  assistantId: number;
  name: string;
  timeZone: string;
  parallelMax: number;
  days: Weekday[];
  maxRetries: number;
  retryIntervalMinutes: number;
  retryOnVoicemail: boolean;
  retryOnGoalIncomplete: boolean;
  goalVariable: string | null;
  /** False: it keeps running and waits for new leads. */
  completesWhenDone: boolean;
  /** Used in rotation; deleted numbers are skipped. */
  phoneNumberIds: number[];
}

export interface Campaign extends CampaignFields, Breaker {
  id: number;
  accountId: number;
  status: CampaignStatus;
  callsMade: number;
  /** Why and when the status was set, by whom and with which note; null: not known. */
  statusReason: CampaignReason | null;
  statusNote: string | null;
  statusBy: string | null;
  statusAt: Instant | null;
  createdAt: Instant;
  updatedAt: Instant;
}

export type StartOutcome =
  | { kind: "started"; events: CommittedEvent[] }
  | { kind: "running" | "no_leads" | "balance_too_low" };

export interface ClaimArgs {
  accountId: number;
  campaignId: number;
  assistant: { id: number; uuid: string };
  /** Numbers to call from, in rotation; empty: the carrier's own. */
  numbers: string[];
  terms: CallTerms;
  now: Instant;
}

export type ClaimOutcome =
  /** The caller of `claim` must dial it now. */
  | { kind: "claimed"; call: Call; reservedMicros: Micros; events: CommittedEvent[] }
  /** This claim found nobody to call, but another may. */
  | { kind: "again"; events: CommittedEvent[] }
  /** Nobody is due before `until`, or before something changes. */
  | { kind: "idle"; until: Instant | null }
  /** The limit of live calls is reached. */
  | { kind: "full" }
  /** It no longer runs: it was stopped, completed or deleted. */
  | { kind: "over"; events: CommittedEvent[] };

export interface RemoveOutcome {
  /** False: leads remain to be deleted. */
  isGone: boolean;
  events: CommittedEvent[];
}

/** Each write is one transaction. */
export interface CampaignStore {
  /** Null when the account has `campaignsMax` already. */
  create(args: {
    accountId: number; fields: CampaignFields; campaignsMax: number; now: Instant;
  }): Promise<Campaign | null>;
  /** Absent members stay as they are; null when the account has no such campaign. */
  update(args: {
    accountId: number; campaignId: number; changes: Partial<CampaignFields>; now: Instant;
  }): Promise<Campaign | null>;
  start(args: {
    accountId: number; campaignId: number; reserveMinMicros: Micros; by: string | null;
    now: Instant;
  }): Promise<StartOutcome>;
  /**
   * Null when it does not run, or no longer has the assistant `assistantId`. Calls under way go
   * on.
   */
  stop(args: {
    accountId: number; campaignId: number; reason: CampaignReason; by: string | null;
    note: string | null; assistantId?: number; now: Instant;
  }): Promise<CommittedEvent[] | null>;
  /**
   * Puts up to `rows` leads whose last call ended with one of `outcomes` back in the queue for one
   * more call: finished leads that are not blocked and have no other number that was reached or is
   * being tried. Repeat it for the next ones; none are left once it returns no events.
   */
  retry(args: {
    accountId: number; campaignId: number; outcomes: LeadOutcome[]; rows: number; now: Instant;
  }): Promise<CommittedEvent[]>;
  /**
   * Stops it and deletes up to `rows` of its leads; repeated, the next ones. Once none is left, its
   * calls let go of it, as many at a time, and at last it is deleted itself. Null when the account
   * has no such campaign.
   */
  remove(args: { accountId: number; campaignId: number; rows: number; now: Instant }):
    Promise<RemoveOutcome | null>;
  /** Looks in all accounts: the contract distinguishes a stranger's campaign from none. */
  findById(campaignId: number): Promise<Campaign | null>;
  /** Oldest first. */
  list(accountId: number): Promise<Campaign[]>;
  /** Leads by status, without secondary contacts; a status that no lead has is absent. */
  leadCounts(accountId: number, campaignId: number): Promise<Partial<Record<LeadStatus, number>>>;
  /** Time zones of its leads that wait or are being called, "" where a lead's is not known. */
  zones(campaignId: number): Promise<string[]>;
  /** `from`: start of the first quarter of an hour to read. */
  figures(campaign: Pick<Campaign, "id" | "accountId">, from: Instant, now: Instant):
    Promise<CampaignFigures>;
  /** The running campaigns of all accounts. */
  running(): Promise<Campaign[]>;
  /**
   * Claims one lead that is due, within hours and limits, and not blocked: it becomes `processing`
   * with one more try, and its call is recorded with the money reserved. So whatever happens to
   * this process, a lead is either in the queue or has a call on record.
   */
  claim(args: ClaimArgs): Promise<ClaimOutcome>;
  /** Leads `processing` whose calls are over, or gone. */
  unsettled(): Promise<{ accountId: number; leadId: number }[]>;
  /** Accounts that have leads `processing`. */
  callingAccounts(): Promise<number[]>;
  /** Sets such a lead's state by how its call ended; does nothing when it is settled already. */
  settle(args: { accountId: number; leadId: number; now: Instant }): Promise<CommittedEvent[]>;
}

interface CampaignsOptions {
  store: CampaignStore;
  bus: EventBus;
  system: System;
  callers: Pick<Callers, "findAssistant" | "whyCannotCall">;
  terms(assistant: Assistant): Promise<CallTerms>;
  campaignsMax(accountId: number): Promise<number>;
  /** Called after every change that may make leads callable. */
  onChange(): void;
}

export type Campaigns = ReturnType<typeof createCampaigns>;

const failed = (status: number, message: string, data?: object): Fault =>
  new Fault(status, message, { extra: { success: false, ...(data ? { data } : {}) } });

/** Throws Fault 422 when the assistant may not call. */
async function readyAssistant(
  { callers }: CampaignsOptions, campaign: Campaign,
): Promise<Assistant> {
  const assistant = await callers.findAssistant(campaign.accountId, campaign.assistantId);
  if (!assistant) throw failed(422, "The assistant was deleted.");
  if (assistant.status !== "active") throw failed(422, "The assistant is not active.");
  const why = await callers.whyCannotCall(assistant, campaign);
  if (why !== null) throw new Fault(422, why);
  return assistant;
}

/** Name of the person or key that made the request; null: the program itself. */
const byWhom = (): string | null => deedUnderWay()?.note.actor.name ?? null;

/** Why a campaign pauses, its figures, and retries of its leads. */
function createFollowing(
  { store, bus, system, onChange }: CampaignsOptions,
  get: (accountId: number, campaignId: number) => Promise<Campaign>,
) {
  return {
    /** Adds why the campaign places no calls right now. */
    withPause: async (campaign: Campaign): Promise<Campaign & { pause: Pause | null }> => {
      const zones = campaign.status === "in-progress" ? await store.zones(campaign.id) : [];
      return { ...campaign, pause: pauseOf(campaign, zones, system.now()) };
    },
    /** The figures of the last `days`. */
    figures: async (accountId: number, campaignId: number, days: number) => {
      const campaign = await get(accountId, campaignId);
      const now = system.now();
      const figures = await store.figures(campaign, now - days * DAY_MICROS, now);
      return { campaign, figures, now };
    },
    /** Resolves to how many leads were put back in the queue. */
    retry: async (
      accountId: number, campaignId: number, outcomes: LeadOutcome[],
    ): Promise<number> => {
      await get(accountId, campaignId);
      let retried = 0;
      const rows = LIMITS.leadImportBatchRows;
      for (let isDone = false; !isDone;) {
        const args = { accountId, campaignId, outcomes, rows, now: system.now() };
        const events = await store.retry(args);
        bus.publishCommitted(events);
        retried += events.length;
        isDone = events.length < rows;
      }
      if (retried > 0) onChange();
      return retried;
    },
  };
}

function createRunning(options: CampaignsOptions) {
  const { store, bus, system, onChange } = options;
  /** Answers 403 for another account's campaign and 404 for none, as the contract says. */
  const own = async (accountId: number, campaignId: number): Promise<Campaign> => {
    const campaign = await store.findById(campaignId);
    if (!campaign) throw failed(404, "Campaign not found.");
    if (campaign.accountId === accountId) return campaign;
    throw failed(403, "Access denied - Campaign does not belong to authenticated user.");
  };
  return {
    start: async (accountId: number, campaignId: number): Promise<void> => {
      const campaign = await own(accountId, campaignId);
      const assistant = await readyAssistant(options, campaign);
      const { reserveMinMicros } = await options.terms(assistant);
      const data = { campaign_id: campaignId, status: campaign.status };
      const now = system.now();
      const outcome = await store.start({
        accountId, campaignId, reserveMinMicros, by: byWhom(), now,
      });
      switch (outcome.kind) {
        case "started":
          bus.publishCommitted(outcome.events);
          return onChange();
        case "running":
          throw failed(400, "Campaign is already in progress.", data);
        case "no_leads":
          throw failed(400, "No leads to call.", data);
        case "balance_too_low":
          throw failed(
            400, "Insufficient balance to start the campaign. Please top up your account.", data);
      }
    },
    /** `note`: the reason, in the words of the person who stops it. */
    stop: async (
      accountId: number, campaignId: number, note: string | null = null,
    ): Promise<void> => {
      const { status } = await own(accountId, campaignId);
      const now = system.now();
      const events = await store.stop({
        accountId, campaignId, reason: "requested", by: byWhom(), note, now,
      });
      if (!events) {
        throw failed(400, "Campaign is not running.", { campaign_id: campaignId, status });
      }
      bus.publishCommitted(events);
    },
  };
}

export function createCampaigns(options: CampaignsOptions) {
  const { store, bus, system, onChange } = options;
  const get = async (accountId: number, campaignId: number): Promise<Campaign> => {
    const campaign = await store.findById(campaignId);
    if (campaign?.accountId !== accountId) throw campaignNotFound();
    return campaign;
  };
  return {
    get,
    list: (accountId: number): Promise<Campaign[]> => store.list(accountId),
    leadCounts: async (accountId: number, campaignId: number) =>
      store.leadCounts(accountId, (await get(accountId, campaignId)).id),
    ...createFollowing(options, get),
    create: async (accountId: number, fields: CampaignFields): Promise<Campaign> => {
      const campaignsMax = await options.campaignsMax(accountId);
      const created = await store.create({ accountId, fields, campaignsMax, now: system.now() });
      if (created) return created;
      throw new Fault(
        403, "You have reached the maximum number of campaigns allowed by your plan.");
    },
    update: async (
      accountId: number, campaignId: number, changes: Partial<CampaignFields>,
    ): Promise<Campaign> => {
      const changed = await store.update({ accountId, campaignId, changes, now: system.now() });
      if (!changed) throw campaignNotFound();
      onChange();
      return changed;
    },
    ...createRunning(options),
    remove: async (accountId: number, campaignId: number): Promise<void> => {
      const rows = LIMITS.campaignLeadsPerWrite;
      const some = () => store.remove({ accountId, campaignId, rows, now: system.now() });
      const publish = ({ events }: RemoveOutcome): void => bus.publishCommitted(events);
      if (!await deletedInSteps(some, publish)) throw campaignNotFound();
    },
  };
}
