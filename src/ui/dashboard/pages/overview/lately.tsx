// Recent activity, newest first: the end of the account's log, then the events of its stream.
import { useCallback, useRef, useState } from "preact/hooks";
import type { Frame, Parley } from "#client/client.ts";
import { MISSED, useEvents, useSnapshot } from "#ui/dashboard/data/live.tsx";
import { useMay } from "#ui/dashboard/data/rights.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { count, when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Icon } from "#ui/dashboard/kit/icons.tsx";
import { Card, Failure, Skeleton } from "#ui/dashboard/kit/layout.tsx";
import { happeningOf, NEWS, type Happening } from "./happenings.ts";

/** As many as the server gives at once. */
const LOOKED_THROUGH = 500;
const PAGES_MAX = 8;
const KEPT_MAX = 200;
const ROWS_MAX = 12;

const numberOf = (frame: Frame): number => Number(frame.id ?? 0);

/** The events of both that are shown, without duplicates, newest first. */
function joined(one: Frame[], other: Frame[]): Frame[] {
  const news = [...one, ...other].filter(happeningOf);
  const all = new Map(news.map((frame) => [numberOf(frame), frame]));
  return [...all.values()].sort((a, b) => numberOf(b) - numberOf(a)).slice(0, KEPT_MAX);
}

/** Reads the log after `after` to its end, or at most PAGES_MAX pages. */
async function readOn(api: Parley, after: number): Promise<Frame[]> {
  const found: Frame[] = [];
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { data, next, has_more: hasMore } = await unwrap(api.GET("/user/events", {
      params: { query: { after, limit: LOOKED_THROUGH } },
    }));
    found.push(...(data as Frame[]));
    if (!hasMore) break;
    after = Number(next);
  }
  return found;
}

/** `newest`: number of an event that was the newest a moment ago. */
function useLately(newest: number) {
  const api = useApi();
  const [frames, setFrames] = useState<Frame[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const known = useRef(newest);
  known.current = Math.max(known.current, newest);
  const load = useCallback(() => {
    readOn(api, Math.max(0, known.current - LOOKED_THROUGH)).then((found) => {
      setError(null);
      setFrames((before) => joined(before ?? [], found));
    }, setError);
  }, [api]);
  useSnapshot(load);
  useEvents(NEWS, useCallback((frame) => {
    if (frame.type === MISSED.type) return load();
    known.current = Math.max(known.current, numberOf(frame));
    const now = { ...frame, created_at: new Date().toISOString() };
    setFrames((before) => joined(before ?? [], [now]));
  }, [load]));
  return { frames, error, load };
}

export function Lately({ newest }: { newest: number }) {
  const { frames, error, load } = useLately(newest);
  return (
    <Card class="overview-lately" title="Recent activity">
      {Boolean(error) && <Failure error={error} retry={load} />}
      {!frames && !error && <Skeleton lines={3} />}
      {frames?.length === 0 && <p class="soft">Nothing yet. New events appear here by themselves.</p>}
      {frames && frames.length > 0 && (
        <ol class="overview-list" aria-label="Recent activity">
          {rowsOf(frames).map((row) => <Item key={row.number} {...row} />)}
        </ol>
      )}
    </Card>
  );
}

interface LatelyRow {
  number: number;
  happening: Happening;
  time: string | undefined;
  times: number;
}

/** The same event many times in a row becomes one row. */
function rowsOf(frames: Frame[]): LatelyRow[] {
  const rows: LatelyRow[] = [];
  for (const frame of frames) {
    const happening = happeningOf(frame);
    const last = rows.at(-1);
    if (!happening) continue;
    if (last?.happening.text === happening.text) last.times += 1;
    else {
      rows.push({
        number: numberOf(frame), happening, time: frame.created_at as string | undefined, times: 1,
      });
    }
  }
  return rows.slice(0, ROWS_MAX);
}

function Item({ happening: { isBad, icon, href, needs, text }, time, times }: LatelyRow) {
  const may = useMay()(needs) === null;
  return (
    <li class={isBad ? "bad" : undefined}>
      <Icon name={icon} />
      <a href={may ? href : undefined}>
        {text}{times > 1 && <small>{count(times)}{times === KEPT_MAX && "+"} times</small>}
      </a>
      {time && <time title={whenExactly(time)}>{when(time)}</time>}
    </li>
  );
}
