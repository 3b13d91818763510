// How many leads of a campaign are in which state, counted anew when one of them changes.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Frame, Parley } from "#client/client.ts";
import { useEvents } from "#ui/dashboard/data/live.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useCalmly } from "#ui/dashboard/data/use-calmly.ts";
import type { LeadStatus } from "#ui/dashboard/pages/leads/live-leads.ts";

export type Counts = Record<LeadStatus, number>;

export const sumOf = (counts: Counts): number =>
  Object.values(counts).reduce((all, leads) => all + leads, 0);

const EVENTS = ["lead_status_changed"];

async function countLeads(api: Parley, campaignId: number): Promise<Counts> {
  const { data } = await unwrap(api.GET("/user/campaigns/{id}/lead-counts", {
    params: { path: { id: campaignId } },
  }));
  return data as Counts;
}

interface Progress {
  done: number;
  total: number;
}

/**
 * Rows of a list ask one after the other, with pauses: people's requests share the key's rate
 * limit.
 */
const AT_ONCE = 8;
const PAUSE_MS = 600;
let waiting = 0;
let line: Promise<unknown> = Promise.resolve();

function inLine<T>(isWanted: () => boolean, work: () => Promise<T>): Promise<T | null> {
  waiting += 1;
  const place = waiting;
  const worked = line.then(async () => {
    if (!isWanted()) return null;
    if (place > AT_ONCE) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    return work();
  }).finally(() => (waiting -= 1));
  line = worked.catch(() => undefined);
  return worked;
}

const seen = new WeakMap<Parley, Map<number, Progress>>();
const PROGRESS_MS = 10_000;

/** Null until it is known. */
export function useProgress(campaignId: number): Progress | null {
  const api = useApi();
  const known = seen.get(api) ?? new Map<number, Progress>();
  seen.set(api, known);
  const [progress, setProgress] = useState(() => known.get(campaignId) ?? null);
  const isThere = useRef(true);
  const load = useCallback(() => {
    inLine(() => isThere.current, async () => {
      const counts = await countLeads(api, campaignId);
      return { done: counts.completed, total: sumOf(counts) };
    }).then((found) => {
      if (!found) return;
      known.set(campaignId, found);
      setProgress(found);
      // What could not be counted stays as it was seen; the list itself shows the failure.
    }, () => undefined);
  }, [api, campaignId]);
  useEffect(() => {
    isThere.current = true;
    load();
    return () => void (isThere.current = false);
  }, [load]);
  const loadSoon = useCalmly(load, PROGRESS_MS);
  const hear = useCallback((frame: Frame) => {
    if (frame.campaign_id === undefined || frame.campaign_id === campaignId) loadSoon();
  }, [campaignId, loadSoon]);
  useEvents(EVENTS, hear);
  return progress;
}
