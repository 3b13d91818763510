// The results of a campaign so far, reloaded while it calls.
import { useCallback } from "preact/hooks";
import type { Frame, paths } from "#client/client.ts";
import { useEvents } from "#ui/dashboard/data/live.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData, type Data } from "#ui/dashboard/data/use-data.ts";
import { decimal } from "#ui/dashboard/kit/format.ts";
import { useCalmly } from "#ui/dashboard/data/use-calmly.ts";
import { LEAD_STATUSES } from "#ui/dashboard/pages/leads/live-leads.ts";
import type { Counts } from "./counts.ts";

type FiguresGet = paths["/user/campaigns/{id}/figures"]["get"];
export type Figures = FiguresGet["responses"][200]["content"]["application/json"]["data"];
export type Width = "hour" | "day";

const EVENTS = ["lead_status_changed", "call_status_changed"];
const RELOAD_MS = 2000;

export function useFigures(id: number, by: Width): Data<Figures> {
  const api = useApi();
  const data = useData(`campaign figures ${id} ${by}`, async () => (await unwrap(
    api.GET("/user/campaigns/{id}/figures", { params: { path: { id }, query: { by } } }))).data,
  ["campaign_status_changed"]);
  const reloadSoon = useCalmly(data.reload, RELOAD_MS);
  const calling = data.value?.calling;
  useEvents(EVENTS, useCallback((frame: Frame) => {
    const isMine = frame.campaign_id === undefined
      ? frame.call_id === undefined || calling?.some((one) => one.call_id === frame.call_id)
      : frame.campaign_id === id;
    if (isMine) reloadSoon();
  }, [id, calling, reloadSoon]));
  return data;
}

/** Leads by state, whatever their last call came to. */
export const countsOf = ({ leads }: Figures): Counts => Object.fromEntries(
  LEAD_STATUSES.map((status) => [status, leads
    .filter((row) => row.status === status)
    .reduce((sum, row) => sum + row.leads, 0)])) as Counts;

/** Leads that are finished, by how their last call ended; answered ones are left out. */
export function failedOf({ leads }: Figures): [outcome: string, leads: number][] {
  const found = new Map<string, number>();
  for (const { status, last_outcome: outcome, leads: many } of leads) {
    const isOver = status === "reached-max-retries" || status === "completed";
    if (!isOver || outcome === null || outcome === "answered") continue;
    found.set(outcome, (found.get(outcome) ?? 0) + many);
  }
  return [...found].sort(([, one], [, other]) => other - one);
}

const FINE = 0.1;
const LEAST = 0.001;

/** Never 0 % for something, nor 100 % for less than all. */
export function percent(share: number): string {
  if (share > 0 && share < LEAST) return `<${decimal(LEAST * 100, 1)} %`;
  const isWhole = share === 0 || share >= FINE;
  const shown = share < 1 ? Math.min(share * 100, isWhole ? 99 : 99.9) : 100;
  return `${decimal(shown, isWhole ? 0 : 1)} %`;
}
