// The wire format of streams, the same for SSE and WebSocket: frames and positions.
import type { CommittedData, CommittedEvent } from "#events/events.ts";
import type { LiveReplyView } from "#events/live.ts";

/**
 * A client's position: the last committed event it has, and how many UTF-16 units of the reply in
 * flight. On the wire `<sequence>` or `<sequence>.<characters>`; opaque to clients.
 */
export interface Position {
  sequence: number;
  chars: number;
}

export interface Frame {
  /** Empty for frames that are not in the log. */
  id: string;
  type: string;
  /** The whole frame as JSON, `id` and `type` included. */
  json: string;
  /** The SSE encoding, once computed: watchers share frames. */
  sse?: string;
}

/** Null for anything that is not a position. */
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

/** The frame that watchers of the log receive for an event. */
export function committedFrame({ type, json }: CommittedEvent, sequence: number): Frame {
  const id = String(sequence);
  return { id, type, json: `{"id":"${id}",${json.slice(1)}` };
}

/**
 * Encodings shared by all watchers are cached on the event itself, under a symbol, which JSON and
 * structured clones ignore. In a WeakMap they would live until the next full garbage collection.
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
  // A copy of an event also copies the cache, which belongs to the original.
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

/** The last piece cut from a reply: most of its watchers are at the same position. */
interface LastDelta {
  from: number;
  to: number;
  frame: Frame;
}

/** The reply's text from the watcher's position on. */
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

/** Never matches inside a text, where the quotes would be escaped. */
const OF_ASSISTANT = '"role":"assistant"';

/** False: certainly not; decided without parsing the JSON. */
export const mayEndReply = ({ type, json }: CommittedEvent): boolean =>
  type === "reply_failed" || (type === "message_added" && json.includes(OF_ASSISTANT));

export function encodeSse(frame: Frame): string {
  const id = frame.id === "" ? "" : `id: ${frame.id}\n`;
  return (frame.sse ??= `${id}event: ${frame.type}\ndata: ${frame.json}\n\n`);
}
