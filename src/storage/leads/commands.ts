// The commands of leads and of the do-not-call list. A lead is queued while it has `next_try_at`;
// one with a blocked number never is. Secondary contacts are queued when their lead is exhausted.
import { isoOrNull, type Instant } from "#core/system.ts";
import { mergedVariables } from "#core/variables.ts";
import type { CommittedEvent } from "#events/events.ts";
import type {
  AddOutcome, Lead, LeadOutcome, LeadStatus, LeadStore, NewContact, SettableStatus,
  UpdateLeadOutcome, Variables,
} from "#features/leads/leads.ts";
import { createAccountAppender } from "#storage/events.ts";
import { leadFromRow, type LeadRow } from "./leads.ts";
import { orNull, type Exists, type Sql } from "#storage/sql.ts";

type Args<Name extends keyof LeadStore> = Parameters<LeadStore[Name]>[0];

interface LeadState {
  status: LeadStatus;
  nextTryAt: Instant | null;
  callTries?: number;
  callId?: number;
  outcome?: LeadOutcome | null;
}

/** Changes a lead's state and publishes it. */
function createChange(sql: Sql) {
  const append = createAccountAppender(sql);
  const set = sql.prepare(`
    UPDATE leads SET status = @status, next_try_at = @nextTryAt, call_tries = @callTries,
      call_id = @callId, outcome = @outcome, updated_at = @now
    WHERE id = @leadId`);
  return async (lead: Lead, state: LeadState, now: Instant): Promise<CommittedEvent> => {
    const {
      status, nextTryAt, callTries = lead.callTries, callId = lead.callId, outcome = lead.outcome,
    } = state;
    await set.run({
      leadId: lead.id, status, nextTryAt, callTries, callId, outcome: outcome ?? "", now,
    });
    return append(lead.accountId, {
      type: "lead_status_changed",
      lead_id: lead.id,
      main_lead_id: lead.mainId,
      campaign_id: lead.campaignId,
      phone_number: lead.phoneNumber,
      status,
      previous_status: lead.status,
      call_tries: callTries,
      call_id: callId,
      next_try_at: isoOrNull(nextTryAt),
      last_outcome: outcome,
    }, now);
  };
}

/** Steps shared by several commands. */
export function createLeadRows(sql: Sql) {
  const change = createChange(sql);
  const find = sql.prepare<object, LeadRow>(
    "SELECT * FROM leads WHERE id = @leadId AND account_id = @accountId");
  const untried = sql.prepare<object, LeadRow>(`
    SELECT * FROM leads WHERE main_id = @mainId AND status = 'created' AND next_try_at IS NULL
    ORDER BY position LIMIT 1`);
  const underWay = sql.prepare<object, Exists>(`
    SELECT 1 FROM leads WHERE main_id = @mainId
      AND (next_try_at IS NOT NULL OR status IN ('processing', 'completed'))`);
  const read = async (
    { accountId, leadId }: { accountId: number; leadId: number },
  ): Promise<Lead | null> => orNull(await find.get({ accountId, leadId }), leadFromRow);
  /** Queues the next secondary contact once the lead itself was tried in vain. */
  const passOn = async (
    { accountId }: Lead, mainId: number, now: Instant,
  ): Promise<CommittedEvent[]> => {
    const main = await read({ accountId, leadId: mainId });
    if (main?.status !== "reached-max-retries" || await underWay.get({ mainId })) return [];
    const next = await untried.get({ mainId });
    if (!next) return [];
    return [await change(leadFromRow(next), { status: "scheduled", nextTryAt: now }, now)];
  };
  return {
    read,
    change,
    passOn,
    exhaust: async (
      lead: Lead, now: Instant, callTries = lead.callTries,
    ): Promise<CommittedEvent[]> => [
      await change(lead, { status: "reached-max-retries", nextTryAt: null, callTries }, now),
      ...await passOn(lead, lead.mainId ?? lead.id, now),
    ],
    blacklist: async (lead: Lead, now: Instant): Promise<CommittedEvent[]> => [
      await change(lead, { status: "blacklisted", nextTryAt: null }, now),
      ...(lead.mainId === null ? [] : await passOn(lead, lead.mainId, now)),
    ],
    isBlocked: createBlockedCheck(sql),
  };
}

export type LeadRows = ReturnType<typeof createLeadRows>;

function createBlockedCheck(sql: Sql) {
  const blocked = sql.prepare<object, Exists>(`
    SELECT 1 FROM blocked_numbers WHERE account_id = @accountId AND phone_number = @phoneNumber`);
  return async (accountId: number, phoneNumber: string): Promise<boolean> =>
    await blocked.get({ accountId, phoneNumber }) !== undefined;
}

export function leadCommands(sql: Sql) {
  const rows = createLeadRows(sql);
  const checks = createChecks(sql);
  return {
    "leads.add": createAdd(sql, rows, checks),
    "leads.update": createUpdate(sql, rows, checks),
    "leads.remove": createRemove(sql, rows, checks),
    ...blockCommands(sql, rows),
  };
}

function createChecks(sql: Sql) {
  const campaign = sql.prepare<object, Exists>(
    "SELECT 1 FROM campaigns WHERE id = @campaignId AND account_id = @accountId");
  const same = sql.prepare<object, Exists>(`
    SELECT 1 FROM leads WHERE account_id = @accountId AND phone_number = @phoneNumber
      AND campaign_id = @campaignId AND main_id IS NULL`);
  const calling = sql.prepare<object, Exists>(`
    SELECT 1 FROM leads WHERE (id = @leadId OR main_id = @leadId) AND status = 'processing'`);
  return {
    ownsCampaign: async (accountId: number, campaignId: number): Promise<boolean> =>
      await campaign.get({ accountId, campaignId }) !== undefined,
    isLead: async (accountId: number, campaignId: number, phoneNumber: string): Promise<boolean> =>
      await same.get({ accountId, campaignId, phoneNumber }) !== undefined,
    /** Whether the lead or one of its contacts is being called. */
    isCalling: async (leadId: number): Promise<boolean> =>
      await calling.get({ leadId }) !== undefined,
  };
}

type Checks = ReturnType<typeof createChecks>;

function createAdd(sql: Sql, rows: LeadRows, checks: Checks) {
  const insert = sql.prepare(`
    INSERT INTO leads (account_id, campaign_id, main_id, position, phone_number, timezone,
      variables, status, next_try_at, created_at, updated_at)
    VALUES (@accountId, @campaignId, @mainId, @position, @phoneNumber, @timeZone, @variables,
      @status, @nextTryAt, @now, @now)`);
  const merge = createMerge(sql);
  return async (args: Args<"add">): Promise<AddOutcome> => {
    const { accountId, campaignId, now } = args;
    if (!await checks.ownsCampaign(accountId, campaignId)) return { kind: "no_campaign" };
    const put = async (
      contact: NewContact, mainId: number | null, position: number,
    ): Promise<number> => {
      const { phoneNumber, timeZone, variables } = contact;
      const isBlocked = await rows.isBlocked(accountId, phoneNumber);
      return insert.insert({
        accountId, campaignId, mainId, position, phoneNumber, timeZone, now,
        variables: JSON.stringify(variables),
        status: isBlocked ? "blacklisted" : "created",
        nextTryAt: isBlocked || mainId !== null ? null : now,
      });
    };
    const ids: (number | null)[] = [];
    let updated = 0;
    for (const lead of args.leads) {
      const { phoneNumber } = lead;
      const isKnown = args.duplicates !== "add"
        && await checks.isLead(accountId, campaignId, phoneNumber);
      const id = isKnown ? null : await put(lead, null, 0);
      ids.push(id);
      if (isKnown && args.duplicates === "update") {
        updated += 1;
        await merge({ accountId, campaignId, phoneNumber }, lead.variables, now);
      }
      if (id === null) continue;
      for (const [index, contact] of lead.contacts.entries()) await put(contact, id, index + 1);
    }
    return { kind: "added", ids, updated };
  };
}

/** Merges the variables into those of the lead with this number in the campaign. */
function createMerge(sql: Sql) {
  const same = sql.prepare<object, { id: number; variables: string }>(`
    SELECT id, variables FROM leads WHERE account_id = @accountId AND phone_number = @phoneNumber
      AND campaign_id = @campaignId AND main_id IS NULL`);
  const set = sql.prepare(
    "UPDATE leads SET variables = @variables, updated_at = @now WHERE id = @id");
  return async (place: object, variables: Variables, now: Instant): Promise<void> => {
    for (const { id, variables: text } of await same.all(place)) {
      const merged = mergedVariables(JSON.parse(text) as Variables, variables);
      await set.run({ id, variables: JSON.stringify(merged), now });
    }
  };
}

/** Why the change must be refused; null: nothing prevents it. */
async function refusalOf(
  rows: LeadRows, checks: Checks, lead: Lead, changes: Args<"update">["changes"],
): Promise<Exclude<UpdateLeadOutcome, { kind: "updated" }> | null> {
  const { accountId } = lead;
  const campaignId = changes.campaignId ?? lead.campaignId;
  const phoneNumber = changes.number?.phoneNumber ?? lead.phoneNumber;
  const moves = campaignId !== lead.campaignId;
  const isElsewhere = moves || phoneNumber !== lead.phoneNumber;
  if (!await checks.ownsCampaign(accountId, campaignId)) return { kind: "no_campaign" };
  if (moves && lead.mainId !== null) return { kind: "secondary" };
  if ((isElsewhere || changes.status !== undefined) && await checks.isCalling(lead.id)) {
    return { kind: "processing" };
  }
  const isDuplicate = isElsewhere && lead.mainId === null
    && await checks.isLead(accountId, campaignId, phoneNumber);
  if (isDuplicate) return { kind: "duplicate" };
  const merged = mergedVariables(lead.variables, changes.variables ?? {});
  if (Object.keys(changes.variables ?? {}).some((name) => !Object.hasOwn(merged, name))) {
    return { kind: "too_many_variables" };
  }
  return changes.status === "created" && await rows.isBlocked(accountId, phoneNumber)
    ? { kind: "blocked" }
    : null;
}

function createUpdate(sql: Sql, rows: LeadRows, checks: Checks) {
  const set = sql.prepare(`
    UPDATE leads SET campaign_id = @campaignId, phone_number = @phoneNumber, timezone = @timeZone,
      variables = @variables, updated_at = @now
    WHERE id = @leadId`);
  const moveContacts = sql.prepare(
    "UPDATE leads SET campaign_id = @campaignId WHERE main_id = @leadId");
  const setStatus = createStatusChange(sql, rows);
  return async (
    { accountId, leadId, changes, now }: Args<"update">,
  ): Promise<UpdateLeadOutcome> => {
    const before = await rows.read({ accountId, leadId });
    if (!before) return { kind: "not_found" };
    const refused = await refusalOf(rows, checks, before, changes);
    if (refused) return refused;
    const { campaignId = before.campaignId, number = before, variables = {} } = changes;
    await set.run({
      leadId, campaignId, phoneNumber: number.phoneNumber, timeZone: number.timeZone, now,
      variables: JSON.stringify(mergedVariables(before.variables, variables)),
    });
    if (campaignId !== before.campaignId) await moveContacts.run({ leadId, campaignId });
    const lead = { ...before, campaignId, phoneNumber: number.phoneNumber };
    if (changes.status !== undefined) {
      return { kind: "updated", events: await setStatus(lead, changes.status, now) };
    }
    const isNowBlocked = lead.phoneNumber !== before.phoneNumber
      && await rows.isBlocked(accountId, lead.phoneNumber);
    return { kind: "updated", events: isNowBlocked ? await rows.blacklist(lead, now) : [] };
  };
}

/** Sets a status by hand, with its effect on the lead's place in the queue and on its contacts. */
function createStatusChange(sql: Sql, rows: LeadRows) {
  const anew = sql.prepare(`
    UPDATE leads SET status = 'created', next_try_at = NULL, call_tries = 0, updated_at = @now
    WHERE main_id = @leadId AND status <> 'blacklisted'`);
  const withdraw = sql.prepare(`
    UPDATE leads SET status = 'created', next_try_at = NULL, updated_at = @now
    WHERE main_id = @leadId AND next_try_at IS NOT NULL`);
  return async (lead: Lead, status: SettableStatus, now: Instant): Promise<CommittedEvent[]> => {
    switch (status) {
      case "created":
        await anew.run({ leadId: lead.id, now });
        return [await rows.change(lead, { status, nextTryAt: now, callTries: 0 }, now)];
      case "completed":
        await withdraw.run({ leadId: lead.id, now });
        // No outcome: a lead completed by hand must not be selected for a retry.
        return [await rows.change(lead, { status, nextTryAt: null, outcome: null }, now)];
      case "reached-max-retries":
        return rows.exhaust(lead, now);
    }
  };
}

/** Removes the numbers of leads and their contacts from stored events and pending deliveries. */
export function createForgetLeads(sql: Sql) {
  const { among } = sql.dialect;
  const theirs = sql.prepare<object, { id: number }>(`
    SELECT id FROM leads WHERE ${among("id", "@leadIds")}
    UNION SELECT id FROM leads WHERE ${among("main_id", "@leadIds")}`);
  // The account's event numbers must have no gaps: the events stay.
  const said = sql.prepare<object, { id: number; data: string }>(
    `SELECT id, data FROM events WHERE ${among("lead_id", "@ids")}`);
  const blank = sql.prepare("UPDATE events SET data = @data WHERE id = @id");
  const removeDeliveries = sql.prepare(
    `DELETE FROM webhook_deliveries WHERE ${among("lead_id", "@ids")}`);
  return async (leadIds: number[]): Promise<void> => {
    const ids = (await theirs.all({ leadIds })).map(({ id }) => id);
    for (const { id, data } of await said.all({ ids })) {
      const event = JSON.parse(data) as object;
      await blank.run({ id, data: JSON.stringify({ ...event, phone_number: "" }) });
    }
    await removeDeliveries.run({ ids });
  };
}

function createRemove(sql: Sql, rows: LeadRows, checks: Checks) {
  const forget = createForgetLeads(sql);
  const remove = sql.prepare("DELETE FROM leads WHERE id = @leadId");
  return async ({ accountId, leadId, now }: Args<"remove">) => {
    const lead = await rows.read({ accountId, leadId });
    if (!lead) return { kind: "not_found" as const };
    if (await checks.isCalling(leadId)) return { kind: "processing" as const };
    await forget([leadId]);
    await remove.run({ leadId });
    const wasNext = lead.mainId !== null && lead.nextTryAt !== null;
    const events = wasNext ? await rows.passOn(lead, lead.mainId ?? 0, now) : [];
    return { kind: "removed" as const, events };
  };
}

function blockCommands(sql: Sql, rows: LeadRows) {
  const count = sql.prepare<object, { numbers: number }>(
    "SELECT count(*) AS numbers FROM blocked_numbers WHERE account_id = @accountId");
  const insert = sql.prepare<object, { reason: string | null; created_at: number }>(`
    INSERT INTO blocked_numbers (account_id, phone_number, reason, created_at)
    VALUES (@accountId, @phoneNumber, @reason, @now)
    ON CONFLICT (account_id, phone_number) DO UPDATE
      SET reason = coalesce(excluded.reason, blocked_numbers.reason)
    RETURNING reason, created_at`);
  const remove = sql.prepare(`
    DELETE FROM blocked_numbers WHERE account_id = @accountId AND phone_number = @phoneNumber`);
  // A lead that is being called now is handled when its call is settled.
  const leads = sql.prepare<object, LeadRow>(`
    SELECT * FROM leads WHERE account_id = @accountId AND phone_number = @phoneNumber
      AND status NOT IN ('blacklisted', 'processing') ORDER BY id`);
  return {
    "leads.block": async (args: Args<"block">) => {
      const { accountId, phoneNumber, now } = args;
      const wasBlocked = await rows.isBlocked(accountId, phoneNumber);
      const isFull = ((await count.get({ accountId }))?.numbers ?? 0) >= args.blockedMax;
      if (isFull && !wasBlocked) return null;
      const row = await insert.one(args);
      const events: CommittedEvent[] = [];
      const found = await leads.all({ accountId, phoneNumber });
      for (const lead of found) events.push(...await rows.blacklist(leadFromRow(lead), now));
      const blocked = { phoneNumber, reason: row.reason, createdAt: row.created_at };
      return { blocked, wasBlocked, leads: found.length, events };
    },
    "leads.unblock": async (args: Args<"unblock">): Promise<boolean> =>
      (await remove.run(args)).changes > 0,
  };
}
