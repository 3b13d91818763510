// A conversation as it is written, from its first message on, over its own stream.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Frame } from "#client/client.ts";
import { MISSED } from "#ui/dashboard/data/live.tsx";
import { isPassing, pause } from "#ui/dashboard/data/passing.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { applyFrames, EMPTY, fromHistory, type History, type Talk } from "./talk.ts";

export interface Watch {
  /** Null until the stream is there. */
  talk: Talk | null;
  /** When the stream was lost; null: what is shown is current. */
  lostAt: Date | null;
  error: unknown;
  /** Until when the visitor was last known to type. */
  typingUntil: number;
  /** The visitor has read whatever was written so far. */
  isReadByVisitor: boolean;
  /** Applies the server's answer before its event arrives. */
  receive(frame: Frame): void;
}

/** The widget repeats the notice of typing while the visitor goes on. */
const TYPING_MS = 6000;
/** Frames come in bursts: they are drawn together. */
const GATHER_MS = 30;

/** Null: the frame says nothing about it. */
function readIn({ type, by }: Frame): boolean | null {
  if (type === "message_added") return false;
  const isVisitors = (by as { role?: string } | undefined)?.role === "visitor";
  return type === "conversation_read" && isVisitors ? true : null;
}

export function useWatch(uuid: string): Watch {
  const api = useApi();
  const [state, setState] = useState<Omit<Watch, "receive">>({
    talk: null, lostAt: null, error: null, typingUntil: 0, isReadByVisitor: false,
  });
  const waiting = useRef<Frame[]>([]);
  const receive = useCallback((frame: Frame) => setState((before) => ({
    ...before, talk: before.talk && applyFrames(before.talk, [frame]),
  })), []);
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const draw = (): void => {
      timer = null;
      const frames = waiting.current.splice(0);
      setState((before) => ({ ...before, talk: applyFrames(before.talk ?? EMPTY, frames) }));
    };
    const onState = (isConnected: boolean): void => {
      if (isConnected) timer ??= setTimeout(draw, GATHER_MS);
      setState((before) => ({
        ...before, lostAt: isConnected ? null : before.lostAt ?? new Date(),
      }));
    };
    const readHistory = async (): Promise<History> => {
      try {
        return await unwrap(api.GET("/conversations/{uuid}", { params: { path: { uuid } }, signal }));
      } catch (error) {
        if (signal.aborted || !isPassing(error)) throw error;
      }
      onState(false);
      return pause(signal).then(readHistory);
    };
    const startOver = async (): Promise<void> => {
      waiting.current = [];
      const history = await readHistory();
      if (signal.aborted) return;
      setState((before) => ({ ...before, talk: fromHistory(before.talk ?? EMPTY, history) }));
      return follow(history.position);
    };
    const fail = (error: unknown): void => {
      if (!signal.aborted) setState((before) => ({ ...before, error }));
    };
    const follow = async (after: string): Promise<void> => {
      for await (const frame of api.watchConversation(uuid, { after, signal, onState })) {
        if (frame.type.startsWith("typing_")) {
          const isTyping = frame.type === "typing_started"
            && (frame.by as { role?: string } | undefined)?.role === "visitor";
          setState((before) => ({ ...before, typingUntil: isTyping ? Date.now() + TYPING_MS : 0 }));
          continue;
        }
        const isRead = readIn(frame);
        // A log is full of these frames: those that change nothing cause no render.
        if (isRead !== null) {
          setState((before) => before.isReadByVisitor === isRead
            ? before : { ...before, isReadByVisitor: isRead });
        }
        if (frame.type === MISSED.type) return startOver();
        waiting.current.push(frame);
        timer ??= setTimeout(draw, GATHER_MS);
      }
    };
    follow("0").catch(fail);
    return () => {
      abort.abort();
      if (timer !== null) clearTimeout(timer);
      waiting.current = [];
    };
  }, [api, uuid]);
  return { ...state, receive };
}
