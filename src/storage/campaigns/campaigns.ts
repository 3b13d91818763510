// Campaigns in the database: reads on the main thread. The commands are in commands.ts.
import type { Campaign, CampaignStatus, CampaignStore } from "#features/campaigns/campaigns.ts";
import type { CampaignReason } from "#events/events.ts";
import type { LeadStatus } from "#features/leads/leads.ts";
import { IS_FINAL } from "#storage/calls/rows.ts";
import { createFigureReads, createZoneReads } from "./figures.ts";
import { aside, orNull, type Reader } from "#storage/sql.ts";
import type { campaignCommands } from "./commands.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

export interface CampaignRow {
  id: number;
  account_id: number;
  assistant_id: number;
  name: string;
  status: CampaignStatus;
  timezone: string;
  max_calls_in_parallel: number;
  start_minute: number;
  end_minute: number;
  allowed_days: string;
  max_retries: number;
  retry_interval_minutes: number;
  retry_on_voicemail: number;
  retry_on_goal_incomplete: number;
  goal_completion_variable: string | null;
  mark_complete_when_no_leads: number;
  phone_number_ids: string;
  calls_made: number;
  failures: number;
  paused_until: number | null;
  status_reason: CampaignReason | null;
  status_note: string | null;
  status_by: string | null;
  status_at: number | null;
  created_at: number;
  updated_at: number;
}

export function campaignFromRow(row: CampaignRow): Campaign {
  return {
    id: row.id,
    accountId: row.account_id,
    assistantId: row.assistant_id,
    name: row.name,
    status: row.status,
    timeZone: row.timezone,
    parallelMax: row.max_calls_in_parallel,
    startMinute: row.start_minute,
    endMinute: row.end_minute,
    days: JSON.parse(row.allowed_days) as Campaign["days"],
    maxRetries: row.max_retries,
    retryIntervalMinutes: row.retry_interval_minutes,
    retryOnVoicemail: row.retry_on_voicemail === 1,
    retryOnGoalIncomplete: row.retry_on_goal_incomplete === 1,
    goalVariable: row.goal_completion_variable,
    completesWhenDone: row.mark_complete_when_no_leads === 1,
    phoneNumberIds: JSON.parse(row.phone_number_ids) as number[],
    callsMade: row.calls_made,
    failures: row.failures,
    pausedUntil: row.paused_until,
    statusReason: row.status_reason,
    statusNote: row.status_note,
    statusBy: row.status_by,
    statusAt: row.status_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export function createCampaignStore(
  reader: Reader, writer: WriterOf<typeof campaignCommands>,
): CampaignStore {
  const find = reader.prepare<object, CampaignRow>("SELECT * FROM campaigns WHERE id = @campaignId");
  const list = reader.prepare<object, CampaignRow>(
    "SELECT * FROM campaigns WHERE account_id = @accountId ORDER BY id");
  const running = reader.prepare<object, CampaignRow>(
    "SELECT * FROM campaigns WHERE status = 'in-progress' ORDER BY id");
  const counts = aside<object, { status: LeadStatus; leads: number }>(reader, `
    SELECT status, count(*) AS leads FROM leads
    WHERE campaign_id = @campaignId AND main_id IS NULL GROUP BY status`);
  const unsettled = reader.prepare<object, { accountId: number; leadId: number }>(`
    SELECT l.account_id AS "accountId", l.id AS "leadId"
    FROM leads l LEFT JOIN calls c ON c.id = l.call_id
    WHERE l.status = 'processing' AND (c.id IS NULL OR c.${IS_FINAL}) ORDER BY l.campaign_id`);
  const calling = reader.prepare<object, { id: number }>(
    "SELECT DISTINCT +account_id AS id FROM leads WHERE status = 'processing'");
  return {
    zones: createZoneReads(reader),
    figures: createFigureReads(reader),
    ...writes(writer, "campaigns", "retry", "create", "update", "start", "stop", "remove", "claim",
      "settle"),
    findById: async (campaignId) => orNull(await find.get({ campaignId }), campaignFromRow),
    list: async (accountId) => (await list.all({ accountId })).map(campaignFromRow),
    leadCounts: async (accountId, campaignId) => Object.fromEntries(
      (await counts.all({ accountId, campaignId })).map(({ status, leads }) => [status, leads])),
    running: async () => (await running.all({})).map(campaignFromRow),
    unsettled: async () => unsettled.all({}),
    callingAccounts: async () => (await calling.all({})).map(({ id }) => id),
  };
}
