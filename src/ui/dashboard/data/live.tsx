// The account's stream, open as long as somebody is signed in. It notifies pages of what has
// changed, and shows people whether what they see is current.
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Frame } from "#client/client.ts";
import { spoilSeen } from "./seen.ts";
import { useSession } from "./session.tsx";

type Listener = (frame: Frame) => void;

interface Live {
  listen(listener: Listener): () => void;
}

interface Freshness {
  isLive: boolean;
  /** When the stream was lost; null: it is there, or never was. */
  lostAt: Date | null;
}

/** Sent to every listener when events were missed for good: load everything again. */
export const MISSED: Frame = { type: "stream_reset" };

const LiveContext = createContext<Live | null>(null);
const FreshnessContext = createContext<Freshness>({ isLive: false, lostAt: null });

export const useFreshness = (): Freshness => useContext(FreshnessContext);

export function LiveProvider({ children }: { children: ComponentChildren }) {
  const { api, beginning } = useSession();
  const [freshness, setFreshness] = useState<Freshness>({ isLive: false, lostAt: null });
  const listeners = useMemo(() => new Set<Listener>(), [api]);
  const live = useMemo<Live>(() => ({
    listen: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  }), [listeners]);
  const followed = useRef<unknown>(null);
  useEffect(() => {
    const abort = new AbortController();
    if (followed.current === api) {
      // After signing in again: no stream will bring what happened in between.
      spoilSeen(null);
      for (const listener of [...listeners]) listener(MISSED);
    }
    followed.current = api;
    const onState = (isLive: boolean): void => setFreshness((before) => ({
      isLive, lostAt: isLive ? null : before.lostAt ?? new Date(),
    }));
    const follow = async (): Promise<void> => {
      // Starts before the first load, so that events between that and the stream's opening are
      // replayed.
      const after = await beginning();
      const from = after === null ? {} : { after };
      for await (const frame of api.watchAccount({ ...from, signal: abort.signal, onState })) {
        spoilSeen(frame.type === MISSED.type ? null : frame.type);
        for (const listener of [...listeners]) listener(frame);
      }
    };
    follow().catch(() => onState(false));
    return () => abort.abort();
  }, [api, beginning]);
  return (
    <LiveContext.Provider value={live}>
      <FreshnessContext.Provider value={freshness}>{children}</FreshnessContext.Provider>
    </LiveContext.Provider>
  );
}

/** Calls `hear` with every event of the types, and with `stream_reset`. */
export function useEvents(types: readonly string[], hear: Listener): void {
  const live = useContext(LiveContext);
  const wanted = types.join(" ");
  useEffect(() => {
    const names = new Set([...wanted.split(" "), MISSED.type]);
    return live?.listen((frame) => {
      if (names.has(frame.type)) hear(frame);
    });
  }, [live, wanted, hear]);
}

/**
 * Loads what the stream then keeps current: each time the stream comes up, because no event tells
 * what happened before; and once without a stream, when it is known to be down.
 */
export function useSnapshot(load: () => void): void {
  const { isLive, lostAt } = useFreshness();
  const isLost = lostAt !== null;
  const loaded = useRef<(() => void) | null>(null);
  useEffect(() => {
    if (!isLive && (!isLost || loaded.current === load)) return;
    loaded.current = load;
    load();
  }, [load, isLive, isLost]);
}

/** Loads again what failed while the server was away, once it is back. */
export function useRetry(error: unknown, retry: () => void): void {
  const { isLive } = useFreshness();
  useEffect(() => {
    if (isLive && error) retry();
  }, [isLive]);
}
