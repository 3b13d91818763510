// Opens sessions over SSE and WebSocket, keeps them alive with heartbeats, and closes them all when
// the server stops. One per process; made in app/features.ts.
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent, Topic } from "#events/events.ts";
import type { ByteStream, Reply, Socket } from "#http/exchange.ts";
import { encodeSse, formatPosition, makeFrame, parsePosition, type Position } from "./frames.ts";
import {
  Session, startFrom, type CloseReason, type Sink, type Start, type StreamSource,
} from "./session.ts";

export interface StreamRequest {
  source: StreamSource;
  /** Null: from now on. */
  position: Position | null;
  /** End the stream with this turn. */
  untilTurn?: number;
  /** Nothing will be added to the log: the stream ends once the watcher has all of it. */
  endsAtPresent?: boolean;
  /** The turn was tried again and answered: its earlier failures are not sent. */
  skipsFailures?: boolean;
  /** Events right after `position` that the caller has at hand, so that the log is not read. */
  backlog?: CommittedEvent[];
  /** Most sessions of the topic at a time. */
  sessionsMax: number;
  /** The stream is opened within `withPlace`, and is not refused. */
  hasPlace?: boolean;
}

export interface Streams {
  /** An SSE reply. Throws Fault 429 when too many watch the topic. */
  openSse(request: StreamRequest): Promise<Reply>;
  /** Before the upgrade; the result is called with the socket. Throws Fault 429 like `openSse`. */
  openSocket(request: StreamRequest): Promise<(socket: Socket) => SocketSession>;
  assertRoom(request: Pick<StreamRequest, "source" | "sessionsMax">): void;
  /**
   * Holds one of the topic's places during the act, so that what it has stored is not answered with
   * a refusal of its stream. Throws Fault 429 before the act.
   */
  withPlace<T>(
    request: Pick<StreamRequest, "source" | "sessionsMax">, act: () => Promise<T>,
  ): Promise<T>;
  /** Closes sessions that may see nothing more; heartbeats would do it a little later. */
  check(): void;
  /** Asks every client to reconnect. */
  closeAll(): void;
  /** Open sessions by transport, for metrics. */
  counts(): { sse: number; websocket: number };
}

export interface SocketSession {
  /** Resolves once the client has been sent everything from there on. */
  resume(position: Position): Promise<void>;
  /** Sends one frame outside the log: answers and errors of the socket's own commands. */
  answer(type: string, members: object): void;
  drained(): void;
  closed(): void;
}

/** 4000–4499: reconnect; 4500–4999: do not. */
const SOCKET_CLOSE_CODES: Record<CloseReason, number> = {
  finished: 1000,
  restart: 4000,
  slow: 4008,
  denied: 4501,
};

const SSE_RETRY_MS = 1000;

/** The header wins: a reconnecting EventSource repeats its first URL, with the old `after`. */
export function readPosition(
  after: string | undefined,
  lastEventId: string | undefined,
): Position | null {
  const text = lastEventId || after;
  if (text === undefined || text === "") return null;
  const position = parsePosition(text);
  if (!position) throw new Fault(422, "The value of after is not a position of this stream.");
  return position;
}

/** A request whose start position is known. */
type Begun = StreamRequest & { start: Start };

type BeginSession = (
  request: Begun,
  sink: Sink,
  transport: "sse" | "websocket",
  beat: () => void,
) => { session: Session; end: () => void };

function startSse(begin: BeginSession, request: Begun, stream: ByteStream): void {
  const sink: Sink = {
    send: (frames) => stream.write(frames.map(encodeSse).join("")),
    close: (reason, frames) => {
      if (reason === "slow") return stream.abort();
      const last = reason === "restart" ? [...frames, makeFrame("reconnect", null, {})] : frames;
      stream.end(last.map(encodeSse).join(""));
    },
  };
  const beat = (): void => void stream.write(": beat\n\n");
  const { session, end } = begin(request, sink, "sse", beat);
  stream.onDrain(() => session.drained());
  stream.onClose(end);
  const at = formatPosition(session.position);
  // An id without data is not an event, but sets the position a client reconnects from, even before
  // any event has come.
  stream.write(`retry: ${SSE_RETRY_MS}\n: at ${at}\nid: ${at}\n\n`);
  session.start();
}

function startSocket(
  begin: BeginSession,
  request: Begun,
  socket: Socket,
): SocketSession {
  const sink: Sink = {
    send: (frames) => {
      let flowing = true;
      for (const frame of frames) flowing = socket.send(frame.json) && flowing;
      return flowing;
    },
    close: (reason, frames) => {
      for (const frame of frames) socket.send(frame.json);
      socket.end(SOCKET_CLOSE_CODES[reason], reason);
    },
  };
  const { session, end } = begin(request, sink, "websocket", () => undefined);
  socket.send(makeFrame("connected", session.position, {}).json);
  session.start();
  return {
    resume: (position) => session.resume(position),
    answer: (type, members) => void socket.send(makeFrame(type, null, members).json),
    drained: () => session.drained(),
    closed: end,
  };
}

interface StreamsOptions {
  bus: EventBus;
  /** Counts watchers on other nodes once their number matters; null: there are no other nodes. */
  countElsewhere: ((topic: Topic, most: number) => Promise<number>) | null;
  system: System;
  log: Logger;
}

/** The places of each topic. */
function createRoom({ bus, countElsewhere }: Pick<StreamsOptions, "bus" | "countElsewhere">) {
  type Asked = Pick<StreamRequest, "source" | "sessionsMax">;
  /** How many are held for streams that are not open yet. */
  const held = new Map<Topic, number>();
  const has = ({ source: { topic }, sessionsMax }: Asked, elsewhere = 0): boolean =>
    bus.listeners(topic) + (held.get(topic) ?? 0) + elsewhere < sessionsMax;
  const assertHere = (asked: Asked, elsewhere?: number): void => {
    if (!has(asked, elsewhere)) {
      throw new Fault(429, "Too many streams are open.", { retryAfterS: 5 });
    }
  };
  const hold = (topic: Topic): (() => void) => {
    held.set(topic, (held.get(topic) ?? 0) + 1);
    return () => {
      const left = (held.get(topic) ?? 0) - 1;
      if (left > 0) held.set(topic, left);
      else held.delete(topic);
    };
  };
  return {
    has,
    assertHere,
    /** Holds a place until `act` has ended. */
    during: async <T>(asked: Asked, act: () => Promise<T>): Promise<T> => {
      assertHere(asked);
      const { source: { topic }, sessionsMax } = asked;
      const release = hold(topic);
      try {
        // The one that is held here is this request's own.
        if (countElsewhere) assertHere(asked, await countElsewhere(topic, sessionsMax) - 1);
        return await act();
      } finally {
        release();
      }
    },
  };
}

export function createStreams(
  { bus, countElsewhere, system, log }: StreamsOptions,
): Streams {
  const open = new Map<Session, "sse" | "websocket">();
  const room = createRoom({ bus, countElsewhere });
  /** Nothing is read for a request that brings its first events along. */
  const begin = async (request: StreamRequest): Promise<Begun> => {
    const { source, position, backlog = [], hasPlace = false } = request;
    const look = async (): Promise<Start> => position && backlog.length > 0
      ? { position, begins: "here" }
      : await startFrom(source, position);
    return { ...request, start: hasPlace ? await look() : await room.during(request, look) };
  };
  const beginSession: BeginSession = (request, sink, transport, beat) => {
    // Others may have taken the last places since the request was answered.
    const isTooMany = request.hasPlace !== true && !room.has(request);
    const session = new Session({ ...request, sink, bus, system, log });
    open.set(session, transport);
    const heartbeat: Timer = system.every(LIMITS.heartbeatMs, () => {
      void session.check();
      beat();
    });
    const end = (): void => {
      heartbeat.cancel();
      open.delete(session);
      session.end();
    };
    if (isTooMany) session.close("slow");
    return { session, end };
  };

  return {
    assertRoom: (request) => room.assertHere(request),
    withPlace: room.during,
    openSse: async (request) => {
      const begun = await begin(request);
      return {
        status: 200,
        contentType: "text/event-stream; charset=utf-8",
        headers: { "Cache-Control": "no-store", "X-Accel-Buffering": "no" },
        stream: (stream) => startSse(beginSession, begun, stream),
      };
    },
    openSocket: async (request) => {
      const begun = await begin(request);
      return (socket) => startSocket(beginSession, begun, socket);
    },
    check: () => {
      for (const session of [...open.keys()]) void session.check();
    },
    closeAll: () => {
      for (const session of [...open.keys()]) session.close("restart");
    },
    counts: () => {
      const transports = [...open.values()];
      const sse = transports.filter((transport) => transport === "sse").length;
      return { sse, websocket: transports.length - sse };
    },
  };
}
