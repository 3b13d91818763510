// Watching and steering calls while they last: the stream of one call, the live calls of an
// account, say, mute, end, and listening in.
import { Type, type Static } from "@sinclair/typebox";
import { Fault } from "../core/faults.ts";
import { LIMITS } from "../core/limits.ts";
import type { Logger } from "../core/logger.ts";
import { callTopic } from "../events/events.ts";
import type { EventLog } from "../events/log.ts";
import { API_ROOT } from "../http/api.ts";
import { toFault } from "../http/errors.ts";
import { json, type HttpRequest, type SocketRoute } from "../http/exchange.ts";
import { keyRoute, type Caller, type Route } from "../http/route.ts";
import { compileValidation, parseJsonObject, parseQuery } from "../http/validation.ts";
import { parsePosition } from "../realtime/frames.ts";
import { readPosition, type SocketSession, type StreamRequest, type Streams } from "../realtime/streams.ts";
import type { Calling } from "./calling.ts";
import type { Calls } from "./calls.ts";
import type { CallSnapshot } from "./records.ts";
import { CallSchema, EntrySchema, wireCall, type RecordingUrl } from "./wire.ts";

export interface LiveCallOptions {
  calls: Calls;
  calling: Calling;
  streams: Streams;
  events: EventLog;
  recordingUrl: RecordingUrl;
  /** False once the key is revoked. */
  isInForce(keyId: number): boolean;
  identify(http: HttpRequest): Caller;
  /** The API as who asks sees it. */
  baseUrlOf(http: HttpRequest): string;
  log: Logger;
}

const MessageSchema = Type.Object({ message: Type.String() });
const missing = { description: "No such call", schema: MessageSchema };
const NOT_FOUND = "Call not found";
const COMMON = { tag: "Calls", errorShape: "message", notFound: NOT_FOUND } as const;
const Say = Type.Object({ text: Type.String({ minLength: 1, maxLength: 1000 }) });
const Mute = Type.Object({ on: Type.Boolean() });
const Done = Type.Object({ ok: Type.Boolean() });
const CLOSE_OVER = 1000;
/** Frames that may wait for a slow listener; those after them are left out. */
const LISTENER_CONGESTED = 25;

const Command = Type.Object({
  type: Type.Union(
    (["ping", "resume", "say", "mute", "end"] as const).map((type) => Type.Literal(type))),
  after: Type.Optional(Type.String()),
  text: Type.Optional(Say.properties.text),
  on: Type.Optional(Type.Boolean()),
  request_id: Type.Optional(Type.String({ maxLength: LIMITS.requestIdCharsMax })),
});
const validateCommand = compileValidation(Command);

/** A record whose transcript is what was said, entry by entry, as the stream tells it. */
const LiveCallSchema = Type.Composite([
  Type.Omit(CallSchema, ["transcript", "transcript_entries"]),
  Type.Object({ transcript: Type.Array(Type.Omit(EntrySchema, ["type", "timestamp"])) }),
]);

/** The members of a snapshot, as clients keep it. */
const stateOf = ({ call, entries }: CallSnapshot, recordingUrl: string | null) => {
  const { transcript_entries: list, ...record } = wireCall(call, entries, recordingUrl);
  return {
    ...record,
    transcript: list.map(({ type, timestamp, ...entry }) => entry),
  };
};

function streamOf(
  options: LiveCallOptions, { accountId, keyId }: Caller, callId: number, baseUrl: string,
): Pick<StreamRequest, "source" | "sessionsMax"> {
  const { calls, events, recordingUrl, isInForce } = options;
  calls.get(accountId, callId);
  return {
    sessionsMax: LIMITS.streamsPerAccountMax,
    source: {
      topic: callTopic(callId),
      newest: () => events.newestOfCall(callId),
      after: (sequence, rows) => events.ofCall(callId, sequence, rows),
      sequenceOf: (event) => event.sequence,
      live: () => null,
      allowed: () => isInForce(keyId),
      snapshot: () => {
        const snapshot = calls.snapshot(callId);
        return snapshot && {
          sequence: snapshot.call.eventSequence,
          members: { call: stateOf(snapshot, recordingUrl(snapshot.call, baseUrl)) },
        };
      },
    },
  };
}

export function liveCallRoutes(options: LiveCallOptions): Route[] {
  return [...watchRoutes(options), ...controlRoutes(options)];
}

function watchRoutes(options: LiveCallOptions): Route[] {
  const { calls, streams, recordingUrl } = options;
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/calls/live",
      summary: "Live calls with what was said; go on with /user/stream?after=<id>",
      responses: {
        200: {
          description: "As of one moment",
          schema: Type.Object({ id: Type.String(), calls: Type.Array(LiveCallSchema) }),
        },
      },
      handle: ({ caller, baseUrl }) => {
        const { sequence, calls: live } = calls.liveSnapshot(caller.accountId);
        return json(200, {
          id: String(sequence),
          calls: live.map((one) => stateOf(one, recordingUrl(one.call, baseUrl))),
        });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/calls/{id}/stream",
      acceptsTicket: true,
      summary: "A call as it happens: a snapshot, then numbered changes; resumes",
      query: Type.Object({
        after: Type.Optional(Type.String()), ticket: Type.Optional(Type.String()),
      }),
      responses: {
        200: {
          description: "Server-sent events", schema: Type.String(), contentType: "text/event-stream",
        },
        404: missing,
      },
      handle: ({ caller, id, query, http, baseUrl }) => {
        const position = readPosition(query.after, http.headers["last-event-id"]);
        return streams.openSse({ ...streamOf(options, caller, id, baseUrl), position });
      },
    }),
  ];
}

function controlRoutes({ calls, calling }: LiveCallOptions): Route[] {
  const command = <Body extends typeof Say | typeof Mute>(
    name: "say" | "mute", body: Body, run: (id: number, body: Static<Body>) => boolean,
  ): Route =>
    keyRoute({
      ...COMMON,
      method: "POST",
      path: `/user/calls/{id}/${name}`,
      summary: name === "say"
        ? "Has the assistant say this as soon as nobody speaks"
        : "Lets the customer hear the assistant no more, or again",
      body,
      responses: {
        200: { description: "`ok`: the call is live", schema: Done }, 404: missing,
      },
      handle: ({ caller, id, body: given }) => {
        calls.get(caller.accountId, id);
        return json(200, { ok: run(id, given as Static<Body>) });
      },
    });
  return [
    command("say", Say, (id, { text }: Static<typeof Say>) => calling.control.say(id, text)),
    command("mute", Mute, (id, { on }: Static<typeof Mute>) => calling.control.mute(id, on)),
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/calls/{id}/end",
      summary: "Ends a call",
      responses: { 200: { description: "`ok`: it was live", schema: Done }, 404: missing },
      handle: async ({ caller, id }) => {
        calls.get(caller.accountId, id);
        return json(200, { ok: await calling.control.end(id) });
      },
    }),
  ];
}

function callOf(options: LiveCallOptions, http: HttpRequest): { caller: Caller; callId: number } {
  const caller = options.identify(http);
  const id = http.params[0] ?? "";
  if (!/^\d{1,15}$/.test(id)) throw new Fault(404, NOT_FOUND);
  options.calls.get(caller.accountId, Number(id));
  return { caller, callId: Number(id) };
}

/** WS /user/calls/{id}/socket: the call's stream and the commands of its operator. */
export function callSocket(options: LiveCallOptions): SocketRoute {
  const { streams, log } = options;
  return {
    pattern: `${API_ROOT}/user/calls/:id/socket`,
    errorShape: "message",
    accept: (http) => {
      const { caller, callId } = callOf(options, http);
      const position = readPosition(parseQuery(http.query).after, http.headers["last-event-id"]);
      const stream = streamOf(options, caller, callId, options.baseUrlOf(http));
      streams.assertRoom(stream);
      return (socket) => {
        const session = streams.openSocket({ ...stream, position }, socket);
        return {
          message: (text) => void obey(options, caller, callId, session, text, log),
          drained: () => session.drained(),
          closed: () => session.closed(),
        };
      };
    },
  };
}

/** Never rejects: what a command threw is answered as an `error` frame. */
async function obey(
  { calling, isInForce }: LiveCallOptions,
  caller: Caller,
  callId: number,
  session: SocketSession,
  text: string,
  log: Logger,
): Promise<void> {
  let echo: { request_id?: string } = {};
  try {
    const command = validateCommand(parseJsonObject(Buffer.from(text)));
    if (command.request_id !== undefined) echo = { request_id: command.request_id };
    if (!isInForce(caller.keyId)) throw new Fault(401, "Unauthenticated.");
    if (command.type !== "ping" && command.type !== "resume" && !caller.scopes.includes("write")) {
      throw new Fault(403, "Your API key does not have permission for this resource");
    }
    const ok = (type: string, done: boolean): void => session.answer(type, { ok: done, ...echo });
    switch (command.type) {
      case "ping":
        return session.answer("pong", echo);
      case "resume": {
        const position = parsePosition(command.after ?? "");
        if (!position) throw new Fault(422, "The after is not a position of this stream.");
        session.resume(position);
        return session.answer("resumed", echo);
      }
      case "say":
        if (command.text === undefined) throw new Fault(422, "The text field is required.");
        return ok("say_result", calling.control.say(callId, command.text));
      case "mute":
        return ok("mute_result", calling.control.mute(callId, command.on ?? true));
      case "end":
        return ok("end_result", await calling.control.end(callId));
    }
  } catch (error) {
    const fault = toFault(error, log, null);
    session.answer("error", { status: fault.status, error: fault.message, ...echo });
  }
}

/** WS /user/calls/{id}/listen: both sides mixed as binary PCM, after one JSON frame naming it. */
export function listenSocket(options: LiveCallOptions): SocketRoute {
  return {
    pattern: `${API_ROOT}/user/calls/:id/listen`,
    errorShape: "message",
    accept: (http) => {
      const { callId } = callOf(options, http);
      return (socket) => {
        let congested = 0;
        let isTold = false;
        const stop = options.calling.listen(callId, (pcm, rate) => {
          if (!isTold) {
            isTold = true;
            socket.send(JSON.stringify({ type: "format", encoding: "pcm_s16le", rate }));
          }
          if (congested > LISTENER_CONGESTED) return;
          const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
          if (!socket.sendBytes(bytes)) congested += 1;
        }, () => socket.end(CLOSE_OVER, "the call is over"));
        if (!stop) socket.end(CLOSE_OVER, "the call is not live");
        return {
          message: () => undefined,
          drained: () => (congested = 0),
          closed: () => stop?.(),
        };
      };
    },
  };
}
