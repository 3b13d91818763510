// A call as it happens, over its own stream: a snapshot, then numbered events. The client resumes a
// broken stream; the page only shows that its content may be out of date.
import { useEffect, useState } from "preact/hooks";
import type { Frame } from "#client/client.ts";
import { useApi } from "#ui/dashboard/data/session.tsx";
import {
  answeredAtOf, answerOf, applyFrame, type CallRecord, type WatchedCall,
} from "./call-state.ts";
import { sayingAfter, type LiveCall } from "./live-calls.ts";

export interface Watch extends LiveCall {
  /** When the stream was lost; null: what is shown is current. */
  lostAt: Date | null;
  error: unknown;
}

function begin({ transcript: _, transcript_entries: entries, ...record }: CallRecord): WatchedCall {
  return { ...record, transcript: entries };
}

export function useWatch(record: CallRecord): Watch {
  const api = useApi();
  const { id } = record;
  const [watch, setWatch] = useState<Watch>(() => ({
    call: begin(record), answeredAt: answeredAtOf(record), saying: null, lostAt: null, error: null,
  }));
  useEffect(() => {
    const abort = new AbortController();
    // Partial speech from before a gap was finished during it.
    const onState = (isConnected: boolean): void => setWatch((before) => isConnected
      ? { ...before, lostAt: null, saying: null }
      : { ...before, lostAt: before.lostAt ?? new Date() });
    const follow = async (): Promise<void> => {
      for await (const frame of api.watchCall(id, { signal: abort.signal, onState })) {
        setWatch((before) => changed(before, frame));
      }
    };
    follow().catch((error: unknown) => setWatch((before) => ({ ...before, error })));
    return () => abort.abort();
  }, [api, id]);
  return watch;
}

function changed(before: Watch, frame: Frame): Watch {
  return {
    ...before,
    // A call that was deleted has no last state: its page says so.
    call: applyFrame(before.call, frame) ?? before.call,
    answeredAt: before.answeredAt ?? answerOf(frame),
    saying: sayingAfter(before.saying, frame),
  };
}
