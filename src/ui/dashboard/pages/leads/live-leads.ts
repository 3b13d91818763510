// Lists of leads that stay current while a campaign calls: an event carries everything that changes
// in a row, so that rows are updated without a request; only a filter's result is loaded again.
import { useCallback, useMemo, useReducer, useRef } from "preact/hooks";
import type { Frame, paths } from "#client/client.ts";
import { MISSED, useEvents } from "#ui/dashboard/data/live.tsx";
import { usePages, type Rows } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { daysQuery } from "#ui/dashboard/kit/days.tsx";
import { instant } from "#ui/dashboard/kit/format.ts";
import { useCalmly } from "#ui/dashboard/data/use-calmly.ts";

type LeadsGet = paths["/user/leads"]["get"];
export type Lead = LeadsGet["responses"][200]["content"]["application/json"]["data"][number];
export type LeadStatus =
  NonNullable<NonNullable<LeadsGet["parameters"]["query"]>["status"]>;

export const LEAD_STATUSES = [
  "created", "scheduled", "processing", "rescheduled", "completed", "reached-max-retries",
  "blacklisted",
] as const satisfies readonly LeadStatus[];

interface LeadFilter {
  campaign: string;
  status: string;
  phone: string;
  from: string;
  to: string;
  /** How the last call ended. */
  outcome: string;
  /** Only leads that are due. */
  isDue: boolean;
  /** Leads that are being called come first; needs a campaign. */
  isByActivity: boolean;
}

export const NO_FILTER: LeadFilter = {
  campaign: "", status: "", phone: "", from: "", to: "",
  outcome: "", isDue: false, isByActivity: false,
};

type Outcome = NonNullable<NonNullable<LeadsGet["parameters"]["query"]>["last_outcome"]>;

const queryOf = ({ campaign, status, phone, from, to, ...more }: LeadFilter) => ({
  ...(more.outcome ? { last_outcome: more.outcome as Outcome } : {}),
  ...(more.isDue ? { due: true } : {}),
  ...(more.isByActivity ? { order: "active" as const } : {}),
  ...(campaign ? { campaign_id: Number(campaign) } : {}),
  ...(status ? { status: status as LeadStatus } : {}),
  ...(phone.trim() ? { phone_number: phone.trim() } : {}),
  ...daysQuery({ from, to }),
});

/** What is past its time waits only for its campaign: to run, its hours, its turn. */
export const dueWords = (at: string, words: (at: string) => string): string =>
  instant(at) <= new Date() ? "Due" : words(at);

type Change = Pick<Lead, "status" | "call_tries" | "next_try_at" | "last_call_id" | "last_outcome">;

const changeOf = (frame: Frame): Change => ({
  status: String(frame.status),
  call_tries: Number(frame.call_tries),
  next_try_at: (frame.next_try_at as string | null) ?? null,
  last_call_id: (frame.call_id as number | null) ?? null,
  last_outcome: (frame.last_outcome as string | null) ?? null,
});

const EVENTS = ["lead_status_changed"];
const RELOAD_MS = 3000;
const REDRAW_MS = 250;

/** The newest change of each lead by event; rows that are loaded later are just as new. */
function useChanges(onSelected: () => void, filter: LeadFilter): [Map<number, Change>, number] {
  const changes = useRef(new Map<number, Change>());
  const [version, redraw] = useReducer((count: number) => count + 1, 0);
  const redrawSoon = useCalmly(() => redraw(undefined), REDRAW_MS);
  const { campaign, status, outcome, isDue, isByActivity } = filter;
  const isOrdered = isByActivity || isDue || outcome !== "";
  const hear = useCallback((frame: Frame) => {
    if (frame.type === MISSED.type) {
      changes.current.clear();
      return onSelected();
    }
    if (campaign !== "" && String(frame.campaign_id) !== campaign) return;
    changes.current.set(Number(frame.lead_id), changeOf(frame));
    redrawSoon();
    if (isOrdered
      || (status !== "" && (frame.status === status || frame.previous_status === status))) {
      onSelected();
    }
  }, [campaign, status, isOrdered, onSelected, redrawSoon]);
  useEvents(EVENTS, hear);
  return [changes.current, version];
}

export function useLeads(filter: LeadFilter): Rows<Lead> {
  const api = useApi();
  const rows = usePages<Lead>(`leads ${JSON.stringify(filter)}`, async (page, perPage) => {
    const { data, total } = await unwrap(api.GET("/user/leads", {
      params: { query: { ...queryOf(filter), page, per_page: perPage } },
    }));
    return { rows: data, total };
    // Deleting a campaign deletes its leads.
  }, ["campaign_status_changed"]);
  const reloadSoon = useCalmly(rows.reload, RELOAD_MS);
  const [changes, version] = useChanges(reloadSoon, filter);
  return useMemo(() => ({
    ...rows,
    at: (index) => {
      const row = rows.at(index);
      const change = row && changes.get(row.id);
      return change ? { ...row, ...change } : row;
    },
  }), [rows, changes, version]);
}
