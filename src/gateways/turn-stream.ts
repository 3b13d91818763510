// One turn as a stream in another protocol: watches the turn like any watcher (realtime/session.ts)
// and passes its steps to an encoder. Used by the protocols beside it.
import type { Watched } from "#features/conversations/message-protocol.ts";
import type { TurnResult } from "#features/conversations/records.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { FunctionCall, ReplyFailure } from "#events/events.ts";
import type { ByteStream, HeaderMap, Reply } from "#http/exchange.ts";
import type { Frame } from "#realtime/frames.ts";
import { Session, type Sink, type StreamSource } from "#realtime/session.ts";

/** What happens in a turn, in order; `completed` or `failed` comes once, last. */
export type TurnStep =
  | { kind: "text"; text: string }
  | { kind: "call_start"; callId: string; name: string; arguments: Record<string, unknown> }
  | { kind: "call_end"; callId: string; result: Record<string, unknown> }
  | { kind: "completed"; functionCalls: FunctionCall[]; truncated: boolean }
  | { kind: "failed"; reason: ReplyFailure; error: string };

/** Both return text of the event stream. */
export interface Encoder {
  begin(): string;
  take(step: TurnStep): string;
}

export interface TurnStreams {
  watch(source: StreamSource, turn: Watched, encoder: Encoder, headers?: HeaderMap): Reply;
  /** Sends a turn that is over, all at once. */
  repeat(result: TurnResult, encoder: Encoder, headers?: HeaderMap): Reply;
}

type Members = Record<string, unknown>;

/**
 * Null for frames that say nothing new about the turn. There are none of other turns: a
 * conversation has one at a time, and the session ends with this one.
 */
function stepOf({ type, json }: Frame): TurnStep | null {
  const frame = JSON.parse(json) as Members & {
    call_id: string; name: string; text: string; error: string;
    arguments: Members; result: Members; reason: ReplyFailure;
    message: { role: string; function_calls?: FunctionCall[]; truncated?: true };
  };
  switch (type) {
    case "reply_delta":
      return { kind: "text", text: frame.text };
    case "function_call_start":
      return {
        kind: "call_start", callId: frame.call_id, name: frame.name, arguments: frame.arguments,
      };
    case "function_call_end":
      return { kind: "call_end", callId: frame.call_id, result: frame.result };
    case "message_added":
      return frame.message.role === "assistant"
        ? {
            kind: "completed",
            functionCalls: frame.message.function_calls ?? [],
            truncated: frame.message.truncated === true,
          }
        : null;
    case "reply_failed":
      return { kind: "failed", reason: frame.reason, error: frame.error };
    default:
      return null;
  }
}

function stepsOf(result: TurnResult): TurnStep[] {
  if (result.kind === "failed") return [result];
  const { functionCalls, text, truncated } = result;
  return [
    ...functionCalls.flatMap((call, at): TurnStep[] => [
      { kind: "call_start", callId: `call_${at}`, name: call.name, arguments: call.arguments },
      { kind: "call_end", callId: `call_${at}`, result: call.result },
    ]),
    ...(text === "" ? [] : [{ kind: "text", text } as const]),
    { kind: "completed", functionCalls, truncated },
  ];
}

const replyOf = (headers: HeaderMap, stream: (stream: ByteStream) => void): Reply => ({
  status: 200,
  contentType: "text/event-stream; charset=utf-8",
  headers: { "Cache-Control": "no-store", "X-Accel-Buffering": "no", ...headers },
  stream,
});

interface TurnStreamsOptions {
  bus: EventBus;
  system: System;
  log: Logger;
}

export function createTurnStreams({ bus, system, log }: TurnStreamsOptions): TurnStreams {
  const start = (
    source: StreamSource,
    { turnId, fromSequence, events }: Watched,
    encoder: Encoder,
    stream: ByteStream,
  ): void => {
    const encode = (frames: Frame[]): string => frames
      .map(stepOf)
      .map((step) => step ? encoder.take(step) : "")
      .join("");
    const sink: Sink = {
      send: (frames) => stream.write(encode(frames)),
      close: (reason, frames) => {
        if (reason === "finished") stream.end(encode(frames));
        else stream.abort();
      },
    };
    const session = new Session({
      source, sink, bus, system, log,
      start: { position: { sequence: fromSequence, chars: 0 }, begins: "here" },
      untilTurn: turnId,
      backlog: events,
    });
    const heartbeat = system.every(LIMITS.heartbeatMs, () => void stream.write(": beat\n\n"));
    stream.onDrain(() => session.drained());
    // The turn continues without its watcher: it is paid for.
    stream.onClose(() => {
      heartbeat.cancel();
      session.end();
    });
    stream.write(encoder.begin());
    session.start();
  };
  return {
    watch: (source, turn, encoder, headers = {}) =>
      replyOf(headers, (stream) => start(source, turn, encoder, stream)),
    repeat: (result, encoder, headers = {}) => replyOf(headers, (stream) =>
      stream.end(encoder.begin() + stepsOf(result).map((step) => encoder.take(step)).join(""))),
  };
}
