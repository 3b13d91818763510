// A campaign's leads as its page shows them, however many there are: by state, or those that are
// due. Each is a range of an index, so only the rows of the page are read. Used by leads.ts.
import type { LeadFilter, LeadStatus, StateCount } from "#features/leads/leads.ts";
import type { LeadRow } from "./leads.ts";
import { aside, type Reader } from "#storage/sql.ts";

export type WholeRow = LeadRow & { campaign_name: string };
export const LEAD = `SELECT l.*, k.name AS campaign_name
  FROM leads l JOIN campaigns k ON k.id = l.campaign_id`;

/** From leads on the phone to leads nobody calls any more. */
const ORDER: readonly LeadStatus[] = [
  "processing", "scheduled", "rescheduled", "completed", "reached-max-retries", "created",
  "blacklisted",
];

interface StateRow {
  status: LeadStatus;
  outcome: StateCount["outcome"] | "";
  leads: number;
}

export const STATES = `
  SELECT status, outcome, count(*) AS leads FROM leads
  WHERE campaign_id = @campaignId AND main_id IS NULL GROUP BY status, outcome`;

export const COUNT_DUE = `
  SELECT count(*) AS leads FROM leads WHERE campaign_id = +@campaignId
    AND next_try_at <= @dueAt AND next_try_at IS NOT NULL AND main_id IS NULL`;

interface Campaign {
  accountId: number;
  campaignId: number;
}

interface View {
  list(offset: number, rows: number): Promise<WholeRow[]>;
  count(): Promise<number>;
}

export function createLeadViews(reader: Reader) {
  // Counting and skipping leads goes through many of the campaign's, so nothing is read here.
  const states = aside<object, StateRow>(reader, STATES);
  const inState = aside<object, WholeRow>(reader, `
    ${LEAD} WHERE l.id IN (
      SELECT id FROM leads WHERE campaign_id = +@campaignId AND status = @status
        AND outcome = @outcome AND main_id IS NULL
      ORDER BY updated_at DESC, id DESC LIMIT (@rows + 0) OFFSET (@offset + 0))
    ORDER BY l.updated_at DESC, l.id DESC`);
  const due = aside<object, WholeRow>(reader, `
    ${LEAD} WHERE l.id IN (
      SELECT id FROM leads WHERE campaign_id = +@campaignId AND next_try_at <= @dueAt
        AND next_try_at IS NOT NULL AND main_id IS NULL
      ORDER BY next_try_at, id LIMIT (@rows + 0) OFFSET (@offset + 0))
    ORDER BY l.next_try_at, l.id`);
  const countDue = aside<object, { leads: number }>(reader, COUNT_DUE);

  const byState = (
    { accountId, campaignId }: Campaign, { status, outcome }: LeadFilter,
  ): View => {
    const groups = async (): Promise<StateRow[]> => (await states.all({ accountId, campaignId }))
      .filter((row) => (status === undefined || row.status === status)
        && (outcome === undefined || row.outcome === outcome))
      .sort((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status)
        || (a.outcome ?? "").localeCompare(b.outcome ?? ""));
    return {
      count: async () => (await groups()).reduce((sum, { leads }) => sum + leads, 0),
      list: async (offset, rows) => {
        const found: WholeRow[] = [];
        let skip = offset;
        for (const group of await groups()) {
          if (found.length >= rows) break;
          if (skip < group.leads) {
            found.push(...await inState.all({
              accountId, campaignId, status: group.status, outcome: group.outcome,
              offset: skip, rows: rows - found.length,
            }));
          }
          skip = Math.max(0, skip - group.leads);
        }
        return found;
      },
    };
  };
  return {
    /** Null: no index answers this filter. */
    of: (accountId: number, filter: LeadFilter): View | null => {
      const { campaignId, isDueAt: dueAt, isByActivity, phoneNumber, from, to } = filter;
      if (campaignId === undefined || phoneNumber !== undefined) return null;
      if (from !== undefined || to !== undefined || !isByActivity) return null;
      if (dueAt === undefined) return byState({ accountId, campaignId }, filter);
      if (filter.status !== undefined || filter.outcome !== undefined) return null;
      return {
        list: async (offset, rows) => due.all({ accountId, campaignId, dueAt, offset, rows }),
        count: async () => (await countDue.get({ accountId, campaignId, dueAt }))?.leads ?? 0,
      };
    },
  };
}
