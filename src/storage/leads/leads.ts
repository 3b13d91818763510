// Leads and the do-not-call list in the database: reads on the main thread. The commands are in
// commands.ts.
import type {
  BlockedNumber, Lead, LeadFilter, LeadOutcome, LeadStatus, LeadStore, Variables, WholeLead,
} from "#features/leads/leads.ts";
import { createLeadViews, LEAD, type WholeRow } from "./views.ts";
import { aside, NEWEST, pagesAside, type Exists, type Reader } from "#storage/sql.ts";
import type { leadCommands } from "./commands.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

export interface LeadRow {
  id: number;
  account_id: number;
  campaign_id: number;
  main_id: number | null;
  phone_number: string;
  timezone: string;
  status: LeadStatus;
  call_tries: number;
  next_try_at: number | null;
  call_id: number | null;
  outcome: LeadOutcome | "";
  created_at: number;
  updated_at: number;
  variables: string;
}

export function leadFromRow(row: LeadRow): Lead {
  return {
    id: row.id,
    accountId: row.account_id,
    campaignId: row.campaign_id,
    mainId: row.main_id,
    phoneNumber: row.phone_number,
    timeZone: row.timezone,
    variables: JSON.parse(row.variables) as Variables,
    status: row.status,
    callTries: row.call_tries,
    nextTryAt: row.next_try_at,
    callId: row.call_id,
    outcome: row.outcome === "" ? null : row.outcome,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

interface BlockedRow {
  phone_number: string;
  reason: string | null;
  created_at: number;
}

const blockedFromRow = (row: BlockedRow): BlockedNumber =>
  ({ phoneNumber: row.phone_number, reason: row.reason, createdAt: row.created_at });

const MATCHES = `l.main_id IS NULL
  AND (CAST(@status AS TEXT) IS NULL OR l.status = @status)
  AND (CAST(@outcome AS TEXT) IS NULL OR l.outcome = @outcome)
  AND (CAST(@dueAt AS BIGINT) IS NULL OR l.next_try_at <= @dueAt)
  AND (CAST(@campaignId AS BIGINT) IS NULL OR l.campaign_id = @campaignId)
  AND (CAST(@phoneNumber AS TEXT) IS NULL OR l.phone_number LIKE @phoneNumber ESCAPE '!')
  AND (CAST(@from AS BIGINT) IS NULL OR l.created_at >= @from)
  AND (CAST(@to AS BIGINT) IS NULL OR l.created_at < @to)`;

/** The LIKE pattern for values that contain the text; `!` is its escape character. */
const containing = (text: string): string => `%${text.replace(/[%_!]/g, "!$&")}%`;

const parametersOf = (accountId: number, filter: LeadFilter) => ({
  accountId,
  ...NEWEST,
  status: filter.status ?? null,
  campaignId: filter.campaignId ?? null,
  phoneNumber: filter.phoneNumber === undefined ? null : containing(filter.phoneNumber),
  from: filter.from ?? null,
  to: filter.to ?? null,
  outcome: filter.outcome ?? null,
  dueAt: filter.isDueAt ?? null,
});

export function createLeadStore(reader: Reader, writer: WriterOf<typeof leadCommands>): LeadStore {
  const find = reader.prepare<object, WholeRow>(`${LEAD} WHERE l.id = @leadId`);
  const contacts = reader.prepare<object, LeadRow>(
    "SELECT * FROM leads WHERE main_id = @leadId ORDER BY position");
  const pages = pagesAside<WholeRow>(
    reader, { select: LEAD, from: "leads l", matches: MATCHES, isOfAccount: true });
  const campaign = reader.prepare<object, Exists>(
    "SELECT 1 FROM campaigns WHERE id = @campaignId AND account_id = @accountId");
  const blocked = aside<object, BlockedRow>(reader, `
    SELECT * FROM blocked_numbers WHERE account_id = +@accountId
    ORDER BY created_at DESC, phone_number LIMIT (@rows + 0) OFFSET (@offset + 0)`);
  const countBlocked = aside<object, { numbers: number }>(reader,
    "SELECT count(*) AS numbers FROM blocked_numbers WHERE account_id = @accountId");
  const views = createLeadViews(reader);
  const whole = async (row: WholeRow): Promise<WholeLead> => ({
    ...leadFromRow(row),
    campaignName: row.campaign_name,
    contacts: (await contacts.all({ leadId: row.id })).map(leadFromRow),
  });
  return {
    ...writes(writer, "leads", "add", "update", "remove", "block", "unblock"),
    find: async (accountId, leadId) => {
      const row = await find.get({ leadId });
      return row?.account_id === accountId ? whole(row) : null;
    },
    list: async (accountId, filter, offset, rows) => {
      const view = views.of(accountId, filter);
      const found = view
        ? await view.list(offset, rows)
        : await pages.list.all({ ...parametersOf(accountId, filter), offset, rows });
      return Promise.all(found.filter((row) => row.account_id === accountId).map(whole));
    },
    count: async (accountId, filter) => {
      const view = views.of(accountId, filter);
      if (!view) return (await pages.count.get(parametersOf(accountId, filter)))?.total ?? 0;
      const { campaignId = 0 } = filter;
      return await campaign.get({ accountId, campaignId }) ? view.count() : 0;
    },
    ownsCampaign: async (accountId, campaignId) =>
      await campaign.get({ accountId, campaignId }) !== undefined,
    blocked: async (accountId, offset, rows) =>
      (await blocked.all({ accountId, offset, rows })).map(blockedFromRow),
    countBlocked: async (accountId) => (await countBlocked.get({ accountId }))?.numbers ?? 0,
  };
}
