// The commands of campaigns. `claim` and `settle` are the two halves of every attempt: one takes a
// lead out of the queue and creates its call, the other places the lead according to how that call
// ended. Each is one transaction, so after a crash a lead is in exactly one place.
import { isFinal } from "#features/calls/records/status.ts";
import type { Call } from "#features/calls/records/records.ts";
import type {
  Campaign, CampaignFields, CampaignStatus, CampaignStore, ClaimArgs, ClaimOutcome, RemoveOutcome,
  StartOutcome,
} from "#features/campaigns/campaigns.ts";
import { isOpenAt } from "#features/campaigns/hours.ts";
import {
  breakerAfter, isDue, outcomeNameOf, outcomeOf, parallelNow, pauseAt,
} from "#features/campaigns/rules.ts";
import { LIMITS } from "#core/limits.ts";
import { isoOrNull, type Instant } from "#core/system.ts";
import { MINUTE_MICROS } from "#core/zones.ts";
import type { CampaignReason, CommittedEvent } from "#events/events.ts";
import type { Lead } from "#features/leads/leads.ts";
import { createCallBegin } from "#storage/calls/creation.ts";
import { CALL, callFromRow, IS_LIVE, type CallRow } from "#storage/calls/rows.ts";
import { createFigureAdder, createRetry } from "./figures.ts";
import { campaignFromRow, type CampaignRow } from "./campaigns.ts";
import { createAccountAppender } from "#storage/events.ts";
import { createForgetLeads, createLeadRows, type LeadRows } from "#storage/leads/commands.ts";
import { leadFromRow, type LeadRow } from "#storage/leads/leads.ts";
import type { AsNode } from "#storage/nodes/nodes.ts";
import { orNull, type Exists, type Sql } from "#storage/sql.ts";

type Args<Name extends keyof CampaignStore> = Parameters<CampaignStore[Name]>[0];

export function campaignCommands(sql: Sql) {
  const rows = createCampaignRows(sql);
  const leads = createLeadRows(sql);
  return {
    "campaigns.create": createCreate(sql),
    "campaigns.update": createUpdate(sql, rows),
    "campaigns.start": createStart(sql, rows),
    "campaigns.stop": async (
      args: Args<"stop">,
    ): Promise<CommittedEvent[] | null> => {
      const { reason, by, note, now } = args;
      const campaign = await rows.read(args);
      if (campaign?.status !== "in-progress") return null;
      if (campaign.assistantId !== (args.assistantId ?? campaign.assistantId)) return null;
      return [await rows.change(campaign, "stopped", { reason, by, note }, now)];
    },
    "campaigns.retry": createRetry(sql, leads),
    "campaigns.remove": createRemove(sql, rows),
    "campaigns.claim": createClaim(sql, rows, leads),
    "campaigns.settle": createSettle(sql, rows, leads),
  };
}

/** Why a campaign changes, who changed it, and their comment. */
interface Cause {
  reason: CampaignReason;
  by?: string | null;
  note?: string | null;
}

/** Steps shared by several commands. */
function createCampaignRows(sql: Sql) {
  const append = createAccountAppender(sql);
  const find = sql.prepare<object, CampaignRow>(
    "SELECT * FROM campaigns WHERE id = @campaignId AND account_id = @accountId");
  const setStatus = sql.prepare(`
    UPDATE campaigns SET status = @status, failures = 0, paused_until = NULL,
      status_reason = @reason, status_note = @note, status_by = @by, status_at = @now,
      updated_at = @now
    WHERE id = @campaignId`);
  const publish = async (
    campaign: Campaign, status: CampaignStatus, { reason, by = null, note = null }: Cause,
    now: Instant,
  ): Promise<CommittedEvent> => append(campaign.accountId, {
    type: "campaign_status_changed",
    campaign_id: campaign.id,
    name: campaign.name,
    status,
    previous_status: campaign.status,
    reason,
    paused_until: isoOrNull(campaign.pausedUntil),
    note, by,
  }, now);
  return {
    publish,
    read: async (
      { accountId, campaignId }: { accountId: number; campaignId: number },
    ): Promise<Campaign | null> =>
      orNull(await find.get({ accountId, campaignId }), campaignFromRow),
    /** Also closes the breaker. */
    change: async (
      campaign: Campaign, status: CampaignStatus, cause: Cause, now: Instant,
    ): Promise<CommittedEvent> => {
      const { reason, by = null, note = null } = cause;
      await setStatus.run({ campaignId: campaign.id, status, reason, by, note, now });
      return publish({ ...campaign, pausedUntil: null }, status, cause, now);
    },
  };
}

type CampaignRows = ReturnType<typeof createCampaignRows>;

const columnsOf = (fields: CampaignFields) => ({
  assistantId: fields.assistantId,
  name: fields.name,
  timeZone: fields.timeZone,
  parallelMax: fields.parallelMax,
  startMinute: fields.startMinute,
  endMinute: fields.endMinute,
  days: JSON.stringify(fields.days),
  maxRetries: fields.maxRetries,
  retryIntervalMinutes: fields.retryIntervalMinutes,
  retryOnVoicemail: fields.retryOnVoicemail ? 1 : 0,
  retryOnGoalIncomplete: fields.retryOnGoalIncomplete ? 1 : 0,
  goalVariable: fields.goalVariable,
  completesWhenDone: fields.completesWhenDone ? 1 : 0,
  phoneNumberIds: JSON.stringify(fields.phoneNumberIds),
});

function createCreate(sql: Sql) {
  const count = sql.prepare<object, { campaigns: number }>(
    "SELECT count(*) AS campaigns FROM campaigns WHERE account_id = @accountId");
  const insert = sql.prepare<object, CampaignRow>(`
    INSERT INTO campaigns (account_id, assistant_id, name, status, timezone, max_calls_in_parallel,
      start_minute, end_minute, allowed_days, max_retries, retry_interval_minutes,
      retry_on_voicemail, retry_on_goal_incomplete, goal_completion_variable,
      mark_complete_when_no_leads, phone_number_ids, created_at, updated_at)
    VALUES (@accountId, @assistantId, @name, 'draft', @timeZone, @parallelMax, @startMinute,
      @endMinute, @days, @maxRetries, @retryIntervalMinutes, @retryOnVoicemail,
      @retryOnGoalIncomplete, @goalVariable, @completesWhenDone, @phoneNumberIds, @now, @now)
    RETURNING *`);
  return async (
    { accountId, fields, campaignsMax, now }: Args<"create">,
  ): Promise<Campaign | null> => {
    if (((await count.get({ accountId }))?.campaigns ?? 0) >= campaignsMax) return null;
    const row = await insert.one({ ...columnsOf(fields), accountId, now });
    return campaignFromRow(row);
  };
}

function createUpdate(sql: Sql, rows: CampaignRows) {
  const set = sql.prepare<object, CampaignRow>(`
    UPDATE campaigns SET assistant_id = @assistantId, name = @name, timezone = @timeZone,
      max_calls_in_parallel = @parallelMax, start_minute = @startMinute, end_minute = @endMinute,
      allowed_days = @days, max_retries = @maxRetries,
      retry_interval_minutes = @retryIntervalMinutes, retry_on_voicemail = @retryOnVoicemail,
      retry_on_goal_incomplete = @retryOnGoalIncomplete, goal_completion_variable = @goalVariable,
      mark_complete_when_no_leads = @completesWhenDone, phone_number_ids = @phoneNumberIds,
      updated_at = @now
    WHERE id = @campaignId RETURNING *`);
  return async (
    { accountId, campaignId, changes, now }: Args<"update">,
  ): Promise<Campaign | null> => {
    const before = await rows.read({ accountId, campaignId });
    if (!before) return null;
    const columns = columnsOf({ ...before, ...changes });
    return orNull(await set.get({ ...columns, campaignId, now }), campaignFromRow);
  };
}

function createStart(sql: Sql, rows: CampaignRows) {
  const free = sql.prepare<object, { micros: number }>(
    "SELECT balance_micros - reserved_micros AS micros FROM accounts WHERE id = @accountId");
  const hasWork = createWorkCheck(sql);
  return async (
    { accountId, campaignId, reserveMinMicros, by, now }: Args<"start">,
  ): Promise<StartOutcome> => {
    const campaign = await rows.read({ accountId, campaignId });
    if (!campaign || campaign.status === "in-progress") return { kind: "running" };
    if (campaign.completesWhenDone && !await hasWork(campaignId)) return { kind: "no_leads" };
    if (((await free.get({ accountId }))?.micros ?? 0) < reserveMinMicros) {
      return { kind: "balance_too_low" };
    }
    const started = await rows.change(campaign, "in-progress", { reason: "requested", by }, now);
    return { kind: "started", events: [started] };
  };
}

/** Whether any lead is queued or being called. */
function createWorkCheck(sql: Sql) {
  const queued = sql.prepare<object, Exists>(`
    SELECT 1 FROM leads WHERE campaign_id = @campaignId AND next_try_at IS NOT NULL LIMIT 1`);
  const processing = sql.prepare<object, Exists>(`
    SELECT 1 FROM leads WHERE campaign_id = @campaignId AND status = 'processing' LIMIT 1`);
  return async (campaignId: number): Promise<boolean> =>
    await queued.get({ campaignId }) !== undefined
    || await processing.get({ campaignId }) !== undefined;
}

function createRemove(sql: Sql, rows: CampaignRows) {
  const forget = createForgetLeads(sql);
  // Their secondary contacts are deleted with them.
  const some = sql.prepare<object, { id: number }>(`
    SELECT id FROM leads WHERE campaign_id = +@campaignId AND main_id IS NULL
    ORDER BY id LIMIT (@rows + 0)`);
  const removeLeads = sql.prepare(`DELETE FROM leads WHERE ${sql.dialect.among("id", "@leadIds")}`);
  // Calls in progress continue without a campaign. The range makes both engines use its index.
  const letGo = sql.prepare(`
    UPDATE calls SET campaign_id = NULL WHERE id IN (
      SELECT id FROM calls WHERE campaign_id BETWEEN @campaignId AND @campaignId
      ORDER BY campaign_id, id LIMIT (@rows + 0))`);
  const remove = sql.prepare("DELETE FROM campaigns WHERE id = @campaignId");
  return async (
    { accountId, campaignId, rows: most, now }: Args<"remove">,
  ): Promise<RemoveOutcome | null> => {
    const campaign = await rows.read({ accountId, campaignId });
    if (!campaign) return null;
    const events = campaign.status === "in-progress"
      ? [await rows.change(campaign, "stopped", { reason: "deleted" }, now)]
      : [];
    const leadIds = (await some.all({ campaignId, rows: most })).map(({ id }) => id);
    await forget(leadIds);
    await removeLeads.run({ leadIds });
    const left = most - leadIds.length;
    const isGone = left > 0 && (await letGo.run({ campaignId, rows: left })).changes < left;
    if (isGone) await remove.run({ campaignId });
    return { isGone, events };
  };
}

/**
 * The first lead in the queue among the time zones that may be called now, due or not. It goes zone
 * by zone: zones are few, leads are many.
 */
function createNextLead(sql: Sql) {
  const nextZone = sql.prepare<object, { zone: string | null }>(`
    SELECT min(timezone) AS zone FROM leads
    WHERE campaign_id = @campaignId AND next_try_at IS NOT NULL AND timezone > @zone`);
  const first = sql.prepare<object, LeadRow>(`
    SELECT * FROM leads
    WHERE campaign_id = +@campaignId AND timezone = +@zone AND next_try_at IS NOT NULL
    ORDER BY next_try_at, id LIMIT 1`);
  const isBefore = (a: Lead, b: Lead | null): boolean =>
    b === null || (a.nextTryAt ?? 0) < (b.nextTryAt ?? 0)
      || (a.nextTryAt === b.nextTryAt && a.id < b.id);
  return async (campaign: Campaign, now: Instant): Promise<Lead | null> => {
    const campaignId = campaign.id;
    let found: Lead | null = null;
    let zone: string | null = "";
    while (zone !== null) {
      if (isOpenAt(campaign, zone === "" ? campaign.timeZone : zone, now)) {
        const lead = orNull(await first.get({ campaignId, zone }), leadFromRow);
        if (lead && isBefore(lead, found)) found = lead;
      }
      zone = (await nextZone.get({ campaignId, zone }))?.zone ?? null;
    }
    return found;
  };
}

function createClaim(sql: Sql, rows: CampaignRows, leads: LeadRows) {
  const begin = createCallBegin(sql);
  const nextLead = createNextLead(sql);
  const hasWork = createWorkCheck(sql);
  const live = sql.prepare<object, { calls: number }>(`
    SELECT count(*) AS calls FROM calls
    WHERE account_id = @accountId AND ${IS_LIVE} AND campaign_id = @campaignId`);
  const count = sql.prepare(
    "UPDATE campaigns SET calls_made = calls_made + 1 WHERE id = @campaignId");
  const over = (...events: CommittedEvent[]): ClaimOutcome => ({ kind: "over", events });
  return async (
    { accountId, campaignId, assistant, numbers, terms, nodeId, now }: AsNode<ClaimArgs>,
  ): Promise<ClaimOutcome> => {
    const campaign = await rows.read({ accountId, campaignId });
    if (campaign?.status !== "in-progress") return over();
    // The campaign was changed after it was read.
    if (campaign.assistantId !== assistant.id) return { kind: "again", events: [] };
    const { callsMade } = campaign;
    const until = pauseAt(campaign, now);
    if (until !== null) return { kind: "idle", until };
    if (((await live.get({ accountId, campaignId }))?.calls ?? 0) >= parallelNow(campaign)) {
      return { kind: "full" };
    }
    const lead = await nextLead(campaign, now);
    if (!lead && campaign.completesWhenDone && !await hasWork(campaignId)) {
      return over(await rows.change(campaign, "completed", { reason: "no_leads" }, now));
    }
    if (!lead || !isDue(lead.nextTryAt ?? 0, now)) {
      return { kind: "idle", until: lead?.nextTryAt ?? null };
    }
    const begun = await begin({
      accountId, assistant, ...terms, nodeId, now,
      type: "outbound",
      conversationUuid: null,
      assistantPhone: numbers[callsMade % numbers.length] ?? null,
      customerPhone: lead.phoneNumber,
      variables: lead.variables,
      origin: { campaignId, leadId: lead.id },
    });
    switch (begun.kind) {
      case "too_many_calls":
        return { kind: "full" };
      case "blocked":
        return { kind: "again", events: await leads.blacklist(lead, now) };
      case "too_fast":
        return { kind: "idle", until: begun.until };
      case "barred": {
        // The lead waits until the operator lifts the bar; the leads behind it do not wait for it.
        const nextTryAt = now + LIMITS.barredLeadMs * 1000;
        const put = await leads.change(lead, { status: "rescheduled", nextTryAt }, now);
        return { kind: "again", events: [put] };
      }
      case "balance_too_low":
        return over(await rows.change(campaign, "stopped", { reason: "balance_too_low" }, now));
      case "created": {
        const { call, reservedMicros, events } = begun;
        await count.run({ campaignId });
        const claimed = await leads.change(lead, {
          status: "processing", nextTryAt: null, callTries: lead.callTries + 1, callId: call.id,
        }, now);
        return { kind: "claimed", call, reservedMicros, events: [...events, claimed] };
      }
    }
  };
}

function createSettle(sql: Sql, rows: CampaignRows, leads: LeadRows) {
  const findCall = sql.prepare<object, CallRow>(`${CALL} WHERE c.id = @callId`);
  const addFigures = createFigureAdder(sql);
  const setBreaker = sql.prepare(`
    UPDATE campaigns SET failures = @failures, paused_until = @pausedUntil WHERE id = @campaignId`);
  /** Updates the circuit breaker by what the call says about the carrier. */
  const judge = async (
    campaign: Campaign, call: Call | null, now: Instant,
  ): Promise<CommittedEvent[]> => {
    const { failures, pausedUntil } = breakerAfter(campaign, call, now);
    if (failures === campaign.failures && pausedUntil === campaign.pausedUntil) return [];
    await setBreaker.run({ campaignId: campaign.id, failures, pausedUntil });
    const isNew = pausedUntil !== null && campaign.status === "in-progress";
    const cause = { reason: "carrier_failures" } as const;
    return isNew
      ? [await rows.publish({ ...campaign, pausedUntil }, campaign.status, cause, now)]
      : [];
  };
  const place = async (
    lead: Lead, campaign: Campaign, call: Call | null, now: Instant,
  ): Promise<CommittedEvent[]> => {
    if (await leads.isBlocked(lead.accountId, lead.phoneNumber)) return leads.blacklist(lead, now);
    const outcome = outcomeOf(campaign, call);
    if (outcome === "reached") {
      return [await leads.change(lead, { status: "completed", nextTryAt: null }, now)];
    }
    const callTries = outcome === "uncounted" ? lead.callTries - 1 : lead.callTries;
    if (callTries > campaign.maxRetries) return leads.exhaust(lead, now, callTries);
    const nextTryAt = now + campaign.retryIntervalMinutes * MINUTE_MICROS;
    return [await leads.change(lead, { status: "rescheduled", nextTryAt, callTries }, now)];
  };
  return async ({ accountId, leadId, now }: Args<"settle">): Promise<CommittedEvent[]> => {
    const lead = await leads.read({ accountId, leadId });
    const campaign = lead && await rows.read(lead);
    if (!campaign || lead.status !== "processing") return [];
    const row = lead.callId === null ? undefined : await findCall.get({ callId: lead.callId });
    const call = orNull(row, callFromRow);
    if (call && !isFinal(call.status)) return [];
    const outcome = outcomeNameOf(campaign, call);
    if (call && outcome) await addFigures(campaign, call, outcome);
    const known: Lead = { ...lead, outcome };
    return [...await place(known, campaign, call, now), ...await judge(campaign, call, now)];
  };
}
