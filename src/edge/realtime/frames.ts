// What goes over the wire of a stream, the same for SSE and WebSocket: frames and positions.
import type { CommittedData, CommittedEvent } from "#events/events.ts";
import type { LiveReplyView } from "#events/live.ts";

/**
 * Where a client stands: the last committed event it has, and how many UTF-16 units of the reply
 * in flight. On the wire `<sequence>` or `<sequence>.<characters>`; opaque to clients.
 */
export interface Position {
  sequence: number;
  chars: number;
}

export interface Frame {
  /** Empty for frames that are no part of the log. */
  id: string;
  type: string;
  /** The whole frame as JSON, `id` and `type` included. */
  json: string;
  /** As SSE writes it, once somebody has read it so: watchers share frames. */
  sse?: string;
}

/** Null for anything that is no position. */
export function parsePosition(text: string): Position | null {
  const match = /^(\d{1,15})(?:\.(\d{1,9}))?$/.exec(text);
  return match ? { sequence: Number(match[1]), chars: Number(match[2] ?? 0) } : null;
}

export function formatPosition({ sequence, chars }: Position): string {
  return chars > 0 ? `${sequence}.${chars}` : String(sequence);
}

export function makeFrame(type: string, position: Position | null, members: object): Frame {
  const id = position === null ? "" : formatPosition(position);
  const head = position === null ? { type } : { id, type };
  return { id, type, json: JSON.stringify({ ...head, ...members }) };
}

/** What a watcher of the log is sent of an event. */
export function committedFrame({ type, json }: CommittedEvent, sequence: number): Frame {
  const id = String(sequence);
  return { id, type, json: `{"id":"${id}",${json.slice(1)}` };
}

/** An event that was just published is encoded once per topic, however many watch. */
const encoded = new WeakMap<CommittedEvent, Map<number, Frame>>();

export function sharedFrame(event: CommittedEvent, sequence: number): Frame {
  let frames = encoded.get(event);
  if (!frames) encoded.set(event, (frames = new Map()));
  let frame = frames.get(sequence);
  if (!frame) frames.set(sequence, (frame = committedFrame(event, sequence)));
  return frame;
}

/** The piece of each reply that was cut last: most of its watchers stand at the same place. */
const deltas = new WeakMap<LiveReplyView, { from: number; to: number; frame: Frame }>();

/** The reply's text from where the watcher stands. */
export function deltaFrame(live: LiveReplyView, from: number, to: number): Frame {
  const last = deltas.get(live);
  if (last?.from === from && last.to === to) return last.frame;
  const frame = makeFrame("reply_delta", { sequence: live.baseSequence, chars: to }, {
    turn_id: live.turnId, text: live.slice(from, to),
  });
  deltas.set(live, { from, to, frame });
  return frame;
}

const decoded = new WeakMap<CommittedEvent, CommittedData>();

export function sharedData(event: CommittedEvent): CommittedData {
  let data = decoded.get(event);
  if (!data) decoded.set(event, (data = eventData(event)));
  return data;
}

export const eventData = ({ json }: CommittedEvent): CommittedData =>
  JSON.parse(json) as CommittedData;

/** Its quotes stand in no text, where they would be escaped. */
const OF_ASSISTANT = '"role":"assistant"';

/** False: certainly not, without its JSON being read. */
export const mayEndReply = ({ type, json }: CommittedEvent): boolean =>
  type === "reply_failed" || (type === "message_added" && json.includes(OF_ASSISTANT));

export function encodeSse(frame: Frame): string {
  const id = frame.id === "" ? "" : `id: ${frame.id}\n`;
  return (frame.sse ??= `${id}event: ${frame.type}\ndata: ${frame.json}\n\n`);
}
