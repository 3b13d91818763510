// Campaign figures. Each settled call is added to the figures of its quarter of an hour in the
// transaction that settles it, so that reading them costs the same after a million calls. Also the
// leads that are called once more. Used by campaigns.ts and commands.ts.
import type { Call } from "#features/calls/records/records.ts";
import type { Campaign, CampaignStore } from "#features/campaigns/campaigns.ts";
import {
  figuresOf, slotOf, type CallFigures, type Called, type Slot,
} from "#features/campaigns/figures.ts";
import type { LeadOutcome, StateCount } from "#features/leads/leads.ts";
import type { CommittedEvent } from "#events/events.ts";
import type { LeadRows } from "#storage/leads/commands.ts";
import { COUNT_DUE, STATES } from "#storage/leads/views.ts";
import { leadFromRow, type LeadRow } from "#storage/leads/leads.ts";
import { aside, type Reader, type Sql } from "#storage/sql.ts";

/** More calls than a campaign may have at a time. */
const CALLING_MAX = 50;

const COUNTS = [
  "calls", "answered", "voicemail", "goals", "busy", "no_answer", "failed", "talk_seconds",
  "cost_micros",
] as const;

type FigureRow = Record<(typeof COUNTS)[number], number>;

const figuresFrom = (row: FigureRow): CallFigures => ({
  calls: row.calls,
  answered: row.answered,
  voicemail: row.voicemail,
  goals: row.goals,
  busy: row.busy,
  noAnswer: row.no_answer,
  failed: row.failed,
  talkSeconds: row.talk_seconds,
  costMicros: row.cost_micros,
});

export function createFigureAdder(sql: Sql) {
  const add = sql.prepare(`
    INSERT INTO campaign_figures (campaign_id, slot, ${COUNTS.join(", ")})
    VALUES (@campaignId, @slot, @calls, @answered, @voicemail, @goals, @busy, @noAnswer, @failed,
      @talkSeconds, @costMicros)
    ON CONFLICT (campaign_id, slot) DO UPDATE SET
      ${COUNTS.map((name) => `${name} = campaign_figures.${name} + excluded.${name}`).join(", ")}`);
  return async (campaign: Campaign, call: Call, outcome: LeadOutcome): Promise<void> => {
    const { durationS: seconds, totalCostMicros: costMicros, createdAt } = call;
    await add.run({
      campaignId: campaign.id, slot: slotOf(createdAt),
      ...figuresOf(outcome, campaign.goalVariable, { seconds, costMicros }),
    });
  };
}

interface CalledRow extends Omit<Called, "variables"> {
  variables: string;
}

export function createZoneReads(reader: Reader): CampaignStore["zones"] {
  // Steps from each zone in the queue to the next: zones are few, leads are many.
  const zones = reader.prepare<object, { zone: string }>(`
    WITH RECURSIVE queued (zone) AS (
      SELECT min(timezone) FROM leads
      WHERE campaign_id = @campaignId AND next_try_at IS NOT NULL
      UNION ALL
      SELECT (SELECT min(timezone) FROM leads
        WHERE campaign_id = @campaignId AND next_try_at IS NOT NULL AND timezone > queued.zone)
      FROM queued WHERE zone IS NOT NULL
    )
    SELECT zone FROM queued WHERE zone IS NOT NULL
    UNION
    SELECT timezone FROM leads WHERE campaign_id = @campaignId AND status = 'processing'`);
  return async (campaignId) => (await zones.all({ campaignId })).map(({ zone }) => zone);
}

export function createFigureReads(reader: Reader): CampaignStore["figures"] {
  const readZones = createZoneReads(reader);
  const totals = reader.prepare<object, FigureRow>(`
    SELECT ${COUNTS.map((name) => `coalesce(sum(${name}), 0) AS ${name}`).join(", ")}
    FROM campaign_figures WHERE campaign_id = @campaignId`);
  const slots = reader.prepare<object, FigureRow & { slot: number }>(`
    SELECT * FROM campaign_figures WHERE campaign_id = @campaignId AND slot >= @from
    ORDER BY slot`);
  const states = aside<object, StateCount & { outcome: string }>(reader, STATES);
  const due = aside<object, { leads: number }>(reader, COUNT_DUE);
  const calling = reader.prepare<object, CalledRow>(`
    SELECT l.id AS "leadId", l.main_id AS "mainId", l.phone_number AS "phoneNumber", l.variables,
      c.id AS "callId", c.status, c.created_at AS since, c.answered_at AS "answeredAt"
    FROM leads l JOIN calls c ON c.id = l.call_id
    WHERE l.campaign_id = @campaignId AND l.status = 'processing'
    ORDER BY c.id LIMIT ${CALLING_MAX}`);
  return async ({ id: campaignId, accountId }, from, now) => {
    const [sum, parts, counts, waiting, called, zones] = await Promise.all([
      totals.get({ campaignId }), slots.all({ campaignId, from }),
      states.all({ accountId, campaignId }), due.get({ accountId, campaignId, dueAt: now }),
      calling.all({ campaignId }), readZones(campaignId),
    ]);
    return {
      totals: sum ? figuresFrom(sum) : figuresFrom({} as FigureRow),
      slots: parts.map((row): Slot => ({ slot: row.slot, ...figuresFrom(row) })),
      states: counts.map(({ status, outcome, leads }) =>
        ({ status, outcome: (outcome as string) === "" ? null : outcome, leads })),
      zones,
      due: waiting?.leads ?? 0,
      calling: called.map((row): Called => ({
        ...row, variables: JSON.parse(row.variables) as Record<string, string>,
      })),
    };
  };
}

/** Final states of a lead. */
const OVER = ["reached-max-retries", "completed"] as const;

export function createRetry(sql: Sql, leads: Pick<LeadRows, "change">) {
  const failed = sql.prepare<object, LeadRow>(`
    SELECT l.* FROM leads l
    WHERE l.campaign_id = @campaignId AND l.status = @status AND l.outcome = @outcome
      AND l.main_id IS NULL AND l.account_id = @accountId
      AND NOT EXISTS (SELECT 1 FROM blocked_numbers b
        WHERE b.account_id = l.account_id AND b.phone_number = l.phone_number)
      AND NOT EXISTS (SELECT 1 FROM leads o WHERE o.main_id = l.id
        AND (o.next_try_at IS NOT NULL OR o.status IN ('processing', 'completed')))
    ORDER BY l.updated_at, l.id LIMIT (@rows + 0)`);
  return async (
    { accountId, campaignId, outcomes, rows, now }: Parameters<CampaignStore["retry"]>[0],
  ): Promise<CommittedEvent[]> => {
    const events: CommittedEvent[] = [];
    for (const outcome of new Set(outcomes)) {
      for (const status of OVER) {
        const left = rows - events.length;
        if (left === 0) return events;
        const found = await failed.all({ accountId, campaignId, status, outcome, rows: left });
        for (const row of found) {
          const lead = leadFromRow(row);
          events.push(await leads.change(lead, { status: "rescheduled", nextTryAt: now }, now));
        }
      }
    }
    return events;
  };
}
