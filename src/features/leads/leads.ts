// Leads: the people a campaign calls, and the numbers that must not be called. Records, store port,
// rules. features/campaigns decides who is called when.
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { pageOf } from "#core/paging.ts";
import type { Instant, System } from "#core/system.ts";
import { TOO_MANY } from "#core/variables.ts";
import type { EventBus } from "#events/bus.ts";
import { accountTopic, type CommittedEvent } from "#events/events.ts";
import type { ReadNumber } from "./phone.ts";

export const LEAD_STATUSES = [
  "created", "scheduled", "processing", "completed", "rescheduled", "reached-max-retries",
  "blacklisted",
] as const;
export type LeadStatus = (typeof LEAD_STATUSES)[number];

/** How the last call of a lead ended. */
export const LEAD_OUTCOMES = [
  "answered", "goal_missed", "voicemail", "busy", "no_answer", "carrier_failed", "failed",
  "interrupted",
] as const;
export type LeadOutcome = (typeof LEAD_OUTCOMES)[number];

/** Outcomes that fall short: nobody was reached, or the campaign's goal was missed. */
export const FAILED_OUTCOMES = [
  "goal_missed", "voicemail", "busy", "no_answer", "carrier_failed", "failed", "interrupted",
] as const satisfies readonly LeadOutcome[];

/** Statuses that a client may set; the server sets the others. */
export const SETTABLE_STATUSES = ["created", "completed", "reached-max-retries"] as const;
export type SettableStatus = (typeof SETTABLE_STATUSES)[number];

export type Variables = Record<string, string>;

export interface Lead {
  id: number;
  accountId: number;
  campaignId: number;
  /** The lead that this is a secondary contact of; null: it is a lead itself. */
  mainId: number | null;
  phoneNumber: string;
  /** Empty: the campaign's time zone applies. */
  timeZone: string;
  variables: Variables;
  status: LeadStatus;
  callTries: number;
  /** In the queue, and not to be called before this; null: not in the queue. */
  nextTryAt: Instant | null;
  /** The current call while `processing`, otherwise the last one. */
  callId: number | null;
  /** Null: no call has ended yet. */
  outcome: LeadOutcome | null;
  createdAt: Instant;
  updatedAt: Instant;
}

export interface WholeLead extends Lead {
  campaignName: string;
  /** In the order they are tried. */
  contacts: Lead[];
}

export interface NewContact extends ReadNumber {
  variables: Variables;
}
export interface NewLead extends NewContact {
  contacts: NewContact[];
}

/**
 * How to treat a number that the campaign already has: skip it, add it again, or merge the
 * variables into those of the existing lead.
 */
export const DUPLICATES = ["skip", "add", "update"] as const;
type Duplicates = (typeof DUPLICATES)[number];

export type AddOutcome =
  /**
   * At each position the new lead's id, or null for a number that the campaign already had;
   * `updated`: how many of those had their variables merged.
   */
  | { kind: "added"; ids: (number | null)[]; updated: number }
  | { kind: "no_campaign" };

export type UpdateLeadOutcome =
  | { kind: "updated"; events: CommittedEvent[] }
  | { kind: "not_found" | "no_campaign" | "duplicate" | "blocked" | "secondary" }
  /** Those it has and those that are given. */
  | { kind: "too_many_variables" }
  /** A call to it is under way. */
  | { kind: "processing" };

type RemoveLeadOutcome =
  | { kind: "removed"; events: CommittedEvent[] }
  | { kind: "not_found" | "processing" };

export interface LeadChanges {
  campaignId?: number;
  number?: ReadNumber;
  status?: SettableStatus;
  /** Merged into the existing ones. */
  variables?: Variables;
}

export interface LeadFilter {
  status?: LeadStatus;
  campaignId?: number;
  /** Part of the number. */
  phoneNumber?: string;
  /** Instants; `to` is exclusive. */
  from?: Instant;
  to?: Instant;
  outcome?: LeadOutcome;
  /** In the queue and due at this instant. */
  isDueAt?: Instant;
  /** With a campaign: those being called first, then by state, the newest change first. */
  isByActivity?: boolean;
}

/** How many leads of a campaign are in one state. */
export interface StateCount {
  status: LeadStatus;
  outcome: LeadOutcome | null;
  leads: number;
}

export interface BlockedNumber {
  phoneNumber: string;
  reason: string | null;
  createdAt: Instant;
}

/** The result of blocking a number. */
interface Blocking {
  blocked: BlockedNumber;
  /** The number had been blocked before. */
  wasBlocked: boolean;
  /** How many leads became blacklisted by it. */
  leads: number;
}

/** Progress of an import; the names are those of its event. */
export interface ImportProgress {
  /** The sum of those below. */
  rows: number;
  rows_total: number;
  imported: number;
  duplicates: number;
  failed: number;
}

/** Each write is one transaction. A number on the do-not-call list is never in a queue. */
export interface LeadStore {
  /** Leads of blocked numbers are stored as blacklisted. */
  add(args: {
    accountId: number; campaignId: number; leads: NewLead[]; duplicates: Duplicates;
    now: Instant;
  }): Promise<AddOutcome>;
  /** Status `created` resets the lead and its contacts; moving a lead moves its contacts too. */
  update(args: { accountId: number; leadId: number; changes: LeadChanges; now: Instant }):
    Promise<UpdateLeadOutcome>;
  /** Also removes its contacts. */
  remove(args: { accountId: number; leadId: number; now: Instant }): Promise<RemoveLeadOutcome>;
  find(accountId: number, leadId: number): Promise<WholeLead | null>;
  /** Newest first; secondary contacts are inside their leads. */
  list(accountId: number, filter: LeadFilter, offset: number, rows: number): Promise<WholeLead[]>;
  count(accountId: number, filter: LeadFilter): Promise<number>;
  ownsCampaign(accountId: number, campaignId: number): Promise<boolean>;
  /** Also blacklists every lead of the number; null when the list is full. */
  block(args: {
    accountId: number; phoneNumber: string; reason: string | null; blockedMax: number;
    now: Instant;
  }): Promise<Blocking & { events: CommittedEvent[] } | null>;
  /** Leads stay blacklisted until somebody sets their status. */
  unblock(args: { accountId: number; phoneNumber: string }): Promise<boolean>;
  /** Newest first. */
  blocked(accountId: number, offset: number, rows: number): Promise<BlockedNumber[]>;
  countBlocked(accountId: number): Promise<number>;
}

interface LeadsOptions {
  store: LeadStore;
  bus: EventBus;
  system: System;
  /** Called after every change of the queue of leads to call. */
  onQueueChange(): void;
}

export type Leads = ReturnType<typeof createLeads>;

const BLOCKED_MAX = 100_000;
export const campaignNotFound = (): Fault => new Fault(404, "Campaign not found");
const notFound = (): Fault => new Fault(404, "Lead not found");
const DUPLICATE = "This phone number is already a lead of the campaign.";
const invalid = (field: string, message: string): Fault =>
  new Fault(422, "Validation failed", { errors: { [field]: [message] } });

function refusalOf(kind: Exclude<UpdateLeadOutcome["kind"], "updated">): Fault {
  switch (kind) {
    case "not_found":
      return notFound();
    case "no_campaign":
      return invalid("campaign_id", "The selected campaign does not exist");
    case "secondary":
      return invalid("campaign_id", "A secondary contact moves with its lead");
    case "duplicate":
      return invalid("phone_number", DUPLICATE);
    case "blocked":
      return invalid("status", "The phone number is on the do-not-call list");
    case "too_many_variables":
      return invalid("variables", TOO_MANY);
    case "processing":
      return new Fault(409, "The lead is being called right now.");
  }
}

/** Publishes an import's progress: throttled, but always after its last row. */
const createProgressTeller = (bus: EventBus, system: System) =>
  (accountId: number, names: { import_id: string; campaign_id: number }) => {
    let told = -Infinity;
    return (progress: ImportProgress): void => {
      const now = system.monotonicMs();
      const isLast = progress.rows === progress.rows_total;
      if (!isLast && now - told < LIMITS.leadImportTellMs) return;
      told = now;
      bus.publish(accountTopic(accountId), {
        kind: "passing", accountId, type: "lead_import_progress",
        members: { ...names, ...progress },
      });
    };
  };

export function createLeads({ store, bus, system, onQueueChange }: LeadsOptions) {
  const get = async (accountId: number, leadId: number): Promise<WholeLead> => {
    const lead = await store.find(accountId, leadId);
    if (!lead) throw notFound();
    return lead;
  };
  /** Null at the position of a number the campaign already had. Fault 404 without the campaign. */
  const addAll = async (
    args: Omit<Parameters<LeadStore["add"]>[0], "now">,
  ): Promise<Extract<AddOutcome, { kind: "added" }>> => {
    const outcome = await store.add({ ...args, now: system.now() });
    if (outcome.kind === "no_campaign") throw campaignNotFound();
    onQueueChange();
    return outcome;
  };
  return {
    get, addAll, now: () => system.now(), progressTeller: createProgressTeller(bus, system),
    /** Fault 404 without the campaign. */
    assertCampaign: async (accountId: number, campaignId: number): Promise<void> => {
      if (!await store.ownsCampaign(accountId, campaignId)) throw campaignNotFound();
    },
    /** Fault 422 for a number the campaign has already. */
    create: async (
      accountId: number, campaignId: number, lead: NewLead, allowsDuplicates: boolean,
    ): Promise<WholeLead> => {
      const duplicates = allowsDuplicates ? "add" : "skip";
      const { ids: [id] } = await addAll({ accountId, campaignId, leads: [lead], duplicates });
      if (id === null || id === undefined) throw fieldFault("phone_number", DUPLICATE);
      return get(accountId, id);
    },
    update: async (accountId: number, leadId: number, changes: LeadChanges): Promise<void> => {
      const outcome = await store.update({ accountId, leadId, changes, now: system.now() });
      if (outcome.kind !== "updated") throw refusalOf(outcome.kind);
      bus.publishCommitted(outcome.events);
      onQueueChange();
    },
    remove: async (accountId: number, leadId: number): Promise<void> => {
      const outcome = await store.remove({ accountId, leadId, now: system.now() });
      if (outcome.kind !== "removed") throw refusalOf(outcome.kind);
      bus.publishCommitted(outcome.events);
      onQueueChange();
    },
    page: (
      accountId: number, filter: LeadFilter, place: { page: number; perPage: number },
    ) => pageOf(place, (offset, rows) => store.list(accountId, filter, offset, rows),
      () => store.count(accountId, filter)),
    block: async (
      accountId: number, phoneNumber: string, reason: string | null,
    ): Promise<Blocking> => {
      const outcome = await store.block({
        accountId, phoneNumber, reason, blockedMax: BLOCKED_MAX, now: system.now(),
      });
      if (!outcome) throw new Fault(422, `The list may not have more than ${BLOCKED_MAX} numbers.`);
      bus.publishCommitted(outcome.events);
      onQueueChange();
      return outcome;
    },
    unblock: async (accountId: number, phoneNumber: string): Promise<void> => {
      if (!await store.unblock({ accountId, phoneNumber })) {
        throw new Fault(404, "Phone number not found");
      }
    },
    blockedPage: async (
      accountId: number, { page, perPage }: { page: number; perPage: number },
    ) => ({
      items: await store.blocked(accountId, (page - 1) * perPage, perPage),
      total: await store.countBlocked(accountId),
    }),
  };
}
