// The commands of leads and of the do-not-call list. A lead in the queue has `next_try_at`; one of
// a blocked number is never in it. Secondary contacts enter it when their lead is exhausted.
import { isoMicros, type Instant } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import type {
  AddOutcome, Lead, LeadStatus, LeadStore, NewContact, SettableStatus, UpdateLeadOutcome,
} from "#features/leads/leads.ts";
import type { Db } from "./engines/sqlite/database.ts";
import { createAccountSequence, createEventAppender } from "./events.ts";
import { leadFromRow, type LeadRow } from "./leads.ts";

type Args<Name extends keyof LeadStore> = Parameters<LeadStore[Name]>[0];

interface LeadState {
  status: LeadStatus;
  nextTryAt: Instant | null;
  callTries?: number;
  callId?: number;
}

/** Steps more than one command takes. */
export function createLeadRows(db: Db) {
  const append = createEventAppender(db);
  const nextAccountSequence = createAccountSequence(db);
  const find = db.prepare<[object], LeadRow>("SELECT * FROM leads WHERE id = @leadId");
  const set = db.prepare(`
    UPDATE leads SET status = @status, next_try_at = @nextTryAt, call_tries = @callTries,
      call_id = @callId, updated_at = @now
    WHERE id = @leadId`);
  const untried = db.prepare<[object], LeadRow>(`
    SELECT * FROM leads WHERE main_id = @mainId AND status = 'created' AND next_try_at IS NULL
    ORDER BY position LIMIT 1`);
  const underWay = db.prepare(`
    SELECT 1 FROM leads WHERE main_id = @mainId
      AND (next_try_at IS NOT NULL OR status IN ('processing', 'completed'))`);
  const read = (leadId: number): Lead | null => {
    const row = find.get({ leadId });
    return row ? leadFromRow(row) : null;
  };
  const change = (lead: Lead, state: LeadState, now: Instant): CommittedEvent => {
    const { status, nextTryAt, callTries = lead.callTries, callId = lead.callId } = state;
    set.run({ leadId: lead.id, status, nextTryAt, callTries, callId, now });
    return append({
      accountId: lead.accountId,
      accountSequence: nextAccountSequence(lead.accountId, 1),
      conversation: null,
      data: {
        type: "lead_status_changed",
        lead_id: lead.id,
        main_lead_id: lead.mainId,
        campaign_id: lead.campaignId,
        phone_number: lead.phoneNumber,
        status,
        previous_status: lead.status,
        call_tries: callTries,
        call_id: callId,
        next_try_at: nextTryAt === null ? null : isoMicros(nextTryAt),
      },
      now,
    });
  };
  /** The next secondary contact's turn, when the lead itself was tried in vain. */
  const passOn = (mainId: number, now: Instant): CommittedEvent[] => {
    if (read(mainId)?.status !== "reached-max-retries" || underWay.get({ mainId })) return [];
    const next = untried.get({ mainId });
    return next ? [change(leadFromRow(next), { status: "scheduled", nextTryAt: now }, now)] : [];
  };
  return {
    read,
    change,
    passOn,
    exhaust: (lead: Lead, now: Instant, callTries = lead.callTries): CommittedEvent[] => [
      change(lead, { status: "reached-max-retries", nextTryAt: null, callTries }, now),
      ...passOn(lead.mainId ?? lead.id, now),
    ],
    blacklist: (lead: Lead, now: Instant): CommittedEvent[] => [
      change(lead, { status: "blacklisted", nextTryAt: null }, now),
      ...(lead.mainId === null ? [] : passOn(lead.mainId, now)),
    ],
    isBlocked: createBlockedCheck(db),
  };
}

export type LeadRows = ReturnType<typeof createLeadRows>;

function createBlockedCheck(db: Db) {
  const blocked = db.prepare(`
    SELECT 1 FROM blocked_numbers WHERE account_id = @accountId AND phone_number = @phoneNumber`);
  return (accountId: number, phoneNumber: string): boolean =>
    blocked.get({ accountId, phoneNumber }) !== undefined;
}

export function leadCommands(db: Db) {
  const rows = createLeadRows(db);
  const checks = createChecks(db);
  return {
    "leads.add": createAdd(db, rows, checks),
    "leads.update": createUpdate(db, rows, checks),
    "leads.remove": createRemove(db, rows, checks),
    ...blockCommands(db, rows),
  };
}

function createChecks(db: Db) {
  const campaign = db.prepare(
    "SELECT 1 FROM campaigns WHERE id = @campaignId AND account_id = @accountId");
  const same = db.prepare(`
    SELECT 1 FROM leads WHERE account_id = @accountId AND phone_number = @phoneNumber
      AND campaign_id = @campaignId AND main_id IS NULL`);
  const calling = db.prepare(`
    SELECT 1 FROM leads WHERE (id = @leadId OR main_id = @leadId) AND status = 'processing'`);
  return {
    ownsCampaign: (accountId: number, campaignId: number): boolean =>
      campaign.get({ accountId, campaignId }) !== undefined,
    isLead: (accountId: number, campaignId: number, phoneNumber: string): boolean =>
      same.get({ accountId, campaignId, phoneNumber }) !== undefined,
    /** The lead or one of its contacts. */
    isCalling: (leadId: number): boolean => calling.get({ leadId }) !== undefined,
  };
}

type Checks = ReturnType<typeof createChecks>;

function createAdd(db: Db, rows: LeadRows, checks: Checks) {
  const insert = db.prepare(`
    INSERT INTO leads (account_id, campaign_id, main_id, position, phone_number, timezone,
      variables, status, next_try_at, created_at, updated_at)
    VALUES (@accountId, @campaignId, @mainId, @position, @phoneNumber, @timeZone, @variables,
      @status, @nextTryAt, @now, @now)`);
  return (args: Args<"add">): AddOutcome => {
    const { accountId, campaignId, now } = args;
    if (!checks.ownsCampaign(accountId, campaignId)) return { kind: "no_campaign" };
    const put = (contact: NewContact, mainId: number | null, position: number): number => {
      const { phoneNumber, timeZone, variables } = contact;
      const isBlocked = rows.isBlocked(accountId, phoneNumber);
      return Number(insert.run({
        accountId, campaignId, mainId, position, phoneNumber, timeZone, now,
        variables: JSON.stringify(variables),
        status: isBlocked ? "blacklisted" : "created",
        nextTryAt: isBlocked || mainId !== null ? null : now,
      }).lastInsertRowid);
    };
    const ids = args.leads.map((lead) => {
      const isKnown = !args.allowsDuplicates
        && checks.isLead(accountId, campaignId, lead.phoneNumber);
      if (isKnown) return null;
      const id = put(lead, null, 0);
      lead.contacts.forEach((contact, index) => put(contact, id, index + 1));
      return id;
    });
    return { kind: "added", ids };
  };
}

/** What may stand in the way of a change; null when nothing does. */
function refusalOf(
  rows: LeadRows, checks: Checks, lead: Lead, changes: Args<"update">["changes"],
): Exclude<UpdateLeadOutcome, { kind: "updated" }> | null {
  const { accountId } = lead;
  const campaignId = changes.campaignId ?? lead.campaignId;
  const phoneNumber = changes.number?.phoneNumber ?? lead.phoneNumber;
  const moves = campaignId !== lead.campaignId;
  const isElsewhere = moves || phoneNumber !== lead.phoneNumber;
  if (!checks.ownsCampaign(accountId, campaignId)) return { kind: "no_campaign" };
  if (moves && lead.mainId !== null) return { kind: "secondary" };
  if ((isElsewhere || changes.status !== undefined) && checks.isCalling(lead.id)) {
    return { kind: "processing" };
  }
  const isDuplicate = isElsewhere && lead.mainId === null
    && checks.isLead(accountId, campaignId, phoneNumber);
  if (isDuplicate) return { kind: "duplicate" };
  return changes.status === "created" && rows.isBlocked(accountId, phoneNumber)
    ? { kind: "blocked" }
    : null;
}

function createUpdate(db: Db, rows: LeadRows, checks: Checks) {
  const set = db.prepare(`
    UPDATE leads SET campaign_id = @campaignId, phone_number = @phoneNumber, timezone = @timeZone,
      variables = @variables, updated_at = @now
    WHERE id = @leadId`);
  const moveContacts = db.prepare(
    "UPDATE leads SET campaign_id = @campaignId WHERE main_id = @leadId");
  const setStatus = createStatusChange(db, rows);
  return ({ accountId, leadId, changes, now }: Args<"update">): UpdateLeadOutcome => {
    const before = rows.read(leadId);
    if (before?.accountId !== accountId) return { kind: "not_found" };
    const refused = refusalOf(rows, checks, before, changes);
    if (refused) return refused;
    const { campaignId = before.campaignId, number = before, variables = {} } = changes;
    set.run({
      leadId, campaignId, phoneNumber: number.phoneNumber, timeZone: number.timeZone, now,
      variables: JSON.stringify({ ...before.variables, ...variables }),
    });
    if (campaignId !== before.campaignId) moveContacts.run({ leadId, campaignId });
    const lead = { ...before, campaignId, phoneNumber: number.phoneNumber };
    if (changes.status !== undefined) {
      return { kind: "updated", events: setStatus(lead, changes.status, now) };
    }
    const isNowBlocked = lead.phoneNumber !== before.phoneNumber
      && rows.isBlocked(accountId, lead.phoneNumber);
    return { kind: "updated", events: isNowBlocked ? rows.blacklist(lead, now) : [] };
  };
}

/** What setting a status by hand means for the lead's place in the queue and for its contacts. */
function createStatusChange(db: Db, rows: LeadRows) {
  const anew = db.prepare(`
    UPDATE leads SET status = 'created', next_try_at = NULL, call_tries = 0, updated_at = @now
    WHERE main_id = @leadId AND status <> 'blacklisted'`);
  const withdraw = db.prepare(`
    UPDATE leads SET status = 'created', next_try_at = NULL, updated_at = @now
    WHERE main_id = @leadId AND next_try_at IS NOT NULL`);
  return (lead: Lead, status: SettableStatus, now: Instant): CommittedEvent[] => {
    switch (status) {
      case "created":
        anew.run({ leadId: lead.id, now });
        return [rows.change(lead, { status, nextTryAt: now, callTries: 0 }, now)];
      case "completed":
        withdraw.run({ leadId: lead.id, now });
        return [rows.change(lead, { status, nextTryAt: null }, now)];
      case "reached-max-retries":
        return rows.exhaust(lead, now);
    }
  };
}

function createRemove(db: Db, rows: LeadRows, checks: Checks) {
  const remove = db.prepare("DELETE FROM leads WHERE id = @leadId");
  return ({ accountId, leadId, now }: Args<"remove">) => {
    const lead = rows.read(leadId);
    if (lead?.accountId !== accountId) return { kind: "not_found" as const };
    if (checks.isCalling(leadId)) return { kind: "processing" as const };
    remove.run({ leadId });
    const wasNext = lead.mainId !== null && lead.nextTryAt !== null;
    const events = wasNext ? rows.passOn(lead.mainId ?? 0, now) : [];
    return { kind: "removed" as const, events };
  };
}

function blockCommands(db: Db, rows: LeadRows) {
  const count = db.prepare<[object], { numbers: number }>(
    "SELECT count(*) AS numbers FROM blocked_numbers WHERE account_id = @accountId");
  const insert = db.prepare<[object], { reason: string | null; created_at: number }>(`
    INSERT INTO blocked_numbers (account_id, phone_number, reason, created_at)
    VALUES (@accountId, @phoneNumber, @reason, @now)
    ON CONFLICT (account_id, phone_number) DO UPDATE
      SET reason = coalesce(excluded.reason, blocked_numbers.reason)
    RETURNING reason, created_at`);
  const remove = db.prepare(`
    DELETE FROM blocked_numbers WHERE account_id = @accountId AND phone_number = @phoneNumber`);
  // Who is being called just now is told apart when the call is over.
  const leads = db.prepare<[object], LeadRow>(`
    SELECT * FROM leads WHERE account_id = @accountId AND phone_number = @phoneNumber
      AND status NOT IN ('blacklisted', 'processing') ORDER BY id`);
  return {
    "leads.block": (args: Args<"block">) => {
      const { accountId, phoneNumber, now } = args;
      const isFull = (count.get({ accountId })?.numbers ?? 0) >= args.blockedMax;
      if (isFull && !rows.isBlocked(accountId, phoneNumber)) return null;
      const row = insert.get(args);
      if (!row) throw new Error("an insert returned no row");
      const events = leads.all({ accountId, phoneNumber })
        .flatMap((lead) => rows.blacklist(leadFromRow(lead), now));
      const blocked = { phoneNumber, reason: row.reason, createdAt: row.created_at };
      return { blocked, events };
    },
    "leads.unblock": (args: Args<"unblock">): boolean => remove.run(args).changes > 0,
  };
}
