// The account's live calls: a snapshot, then what the account's stream brings of them.
import { useCallback, useEffect, useMemo, useReducer } from "preact/hooks";
import type { Frame, Parley } from "#client/client.ts";
import { MISSED, useEvents, useSnapshot } from "#ui/dashboard/data/live.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import {
  answeredAtOf, answerOf, applyFrame, isLive, type WatchedCall,
} from "./call-state.ts";

export interface LiveCall {
  call: WatchedCall;
  /** Milliseconds; null until it is answered. */
  answeredAt: number | null;
  /** What is being said just now. */
  saying: { sender: string; text: string } | null;
}

const TOLD = [
  "call_created", "call_status_changed", "transcript_added", "transcript_delta", "desk_changed",
  "call_transfer_changed", "call_ended", "call_deleted",
];
/** More than any plan has live at a time. */
const PAGE_ROWS = 100;

class LiveCalls {
  /** Null until the first snapshot is there. */
  calls: ReadonlyMap<number, LiveCall> | null = null;
  error: unknown = null;
  readonly #api: Parley;
  readonly #changed: () => void;
  /** Events received while a snapshot is loading; null: none is. */
  #heard: Frame[] | null = null;
  #run = 0;

  constructor(api: Parley, changed: () => void) {
    this.#api = api;
    this.#changed = changed;
  }

  async load(): Promise<void> {
    const run = (this.#run += 1);
    this.#heard = [];
    try {
      const { id, calls } = await unwrap(this.#api.GET("/user/calls/live"));
      const listed = calls as unknown as WatchedCall[];
      const answers = await this.#answers(listed);
      if (run !== this.#run) return;
      this.calls = new Map(listed.map((call) => [call.id, {
        call, answeredAt: answers.get(call.id) ?? null, saying: null,
      }]));
      this.error = null;
      const isNewer = (frame: Frame): boolean => Number(frame.id ?? 0) > Number(id);
      for (const frame of this.#heard?.filter(isNewer) ?? []) this.#apply(frame);
    } catch (error) {
      if (run !== this.#run) return;
      this.error = error;
    }
    this.#heard = null;
    this.#changed();
  }

  hear(frame: Frame): void {
    if (frame.type === MISSED.type) return void this.load();
    this.#heard?.push(frame);
    this.#apply(frame);
    this.#changed();
  }

  close(): void {
    this.#run += 1;
  }

  async #answers(listed: WatchedCall[]): Promise<Map<number, number | null>> {
    const isTalking = ({ status }: WatchedCall): boolean => status === "in-progress";
    if (!listed.some(isTalking)) return new Map();
    const { data } = await unwrap(this.#api.GET("/user/calls", {
      params: { query: { status: "in-progress", per_page: PAGE_ROWS } },
    }));
    return new Map(data.map((record) => [record.id, answeredAtOf(record)]));
  }

  #apply(frame: Frame): void {
    const id = frame.call_id as number;
    const before = this.calls?.get(id) ?? null;
    if (!this.calls || (!before && frame.type !== "call_created")) return;
    const call = applyFrame(before?.call ?? null, frame);
    const calls = new Map(this.calls);
    if (call && isLive(call.status)) {
      calls.set(id, {
        call,
        answeredAt: answerOf(frame) ?? before?.answeredAt ?? null,
        saying: sayingAfter(before?.saying ?? null, frame),
      });
    } else calls.delete(id);
    this.calls = calls;
  }
}

/** Partial speech is dropped once it is in the transcript. */
export function sayingAfter(before: LiveCall["saying"], frame: Frame): LiveCall["saying"] {
  if (frame.type === "transcript_delta") {
    return { sender: frame.sender as string, text: frame.text as string };
  }
  return frame.type === "transcript_added" ? null : before;
}

export function useLiveCalls(): {
  /** Newest first; null until they are loaded. */
  calls: LiveCall[] | null;
  error: unknown;
  reload(): void;
} {
  const api = useApi();
  const [version, changed] = useReducer((count: number) => count + 1, 0);
  const live = useMemo(() => new LiveCalls(api, () => changed(undefined)), [api]);
  useEffect(() => () => live.close(), [live]);
  useEvents(TOLD, useCallback((frame) => live.hear(frame), [live]));
  const reload = useCallback(() => void live.load(), [live]);
  useSnapshot(reload);
  return useMemo(() => ({
    calls: live.calls && [...live.calls.values()].sort((one, other) => other.call.id - one.call.id),
    error: live.error,
    reload,
  }), [live, version, reload]);
}
