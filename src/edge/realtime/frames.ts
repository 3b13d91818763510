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

/**
 * What is made once for all watchers lies on what it is made of, out of sight of JSON and of other
 * threads. In a WeakMap the collector would hold each until it next goes through all memory.
 */
const MADE = Symbol("made for watchers");

interface OfEvent {
  event: CommittedEvent;
  data?: CommittedData;
  /** Encoded for the topic that was published to last: its watchers ask one after the other. */
  frame?: Frame;
  sequence: number;
}

function madeOf(event: CommittedEvent & { [MADE]?: OfEvent }): OfEvent {
  const made = event[MADE];
  // A copy of an event is another one.
  return made?.event === event ? made : (event[MADE] = { event, sequence: -1 });
}

/** An event that was just published is encoded once per topic, however many watch. */
export function sharedFrame(event: CommittedEvent, sequence: number): Frame {
  const made = madeOf(event);
  if (made.frame && made.sequence === sequence) return made.frame;
  made.sequence = sequence;
  return (made.frame = committedFrame(event, sequence));
}

export function sharedData(event: CommittedEvent): CommittedData {
  const made = madeOf(event);
  return (made.data ??= eventData(event));
}

/** The piece of a reply that was cut last: most of its watchers stand at the same place. */
interface LastDelta {
  from: number;
  to: number;
  frame: Frame;
}

/** The reply's text from where the watcher stands. */
export function deltaFrame(
  live: LiveReplyView & { [MADE]?: LastDelta }, from: number, to: number,
): Frame {
  const last = live[MADE];
  if (last?.from === from && last.to === to) return last.frame;
  const frame = makeFrame("reply_delta", { sequence: live.baseSequence, chars: to }, {
    turn_id: live.turnId, text: live.slice(from, to),
  });
  live[MADE] = { from, to, frame };
  return frame;
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
