// Routes to watch and control live calls: the stream of one call, the live calls of an account,
// say, mute, end, and listening in.
import { Type, type Static } from "@sinclair/typebox";
import type { SharedCalls } from "#cluster/cluster.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named, OneOf } from "#core/schema.ts";
import type { Logger } from "#core/logger.ts";
import { callTopic } from "#events/events.ts";
import type { EventLog } from "#events/log.ts";
import { IdOf, listOf } from "#http/answers.ts";
import { API_ROOT } from "#http/api.ts";
import { json, type HttpRequest, type SocketRoute } from "#http/exchange.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import { compileValidation, parseQuery } from "#http/validation.ts";
import { obey, resume, type Answer } from "#realtime/commands.ts";
import { sseRoute } from "#realtime/sse-route.ts";
import {
  readPosition, type SocketSession, type StreamRequest, type Streams,
} from "#realtime/streams.ts";
import type { Calls } from "./calls.ts";
import type { CallSnapshot } from "./records/records.ts";
import type { Recordings } from "./records/recordings.ts";
import { CLOSE_ELSEWHERE, CLOSE_OVER, createSoundSocket } from "./sound-socket.ts";
import { CallSchema, EntrySchema, wireCall } from "./records/wire.ts";

interface LiveCallOptions {
  /** How many streams may be open on one call at a time. */
  streamsMax: number;
  calls: Calls;
  /** Calls of this node and of others. */
  shared: SharedCalls;
  streams: Streams;
  events: EventLog;
  recordingLink: Recordings["linkOf"];
  /** False once the key is revoked. */
  isInForce(caller: Pick<Caller, "keyId" | "member">): Promise<boolean>;
  /** Whether the caller may do more than watch, by their current role. */
  mayAnswer(caller: Caller): Promise<boolean>;
  identify(http: HttpRequest): Promise<Caller>;
  /** The API's address as the client reaches it. */
  baseUrlOf(http: HttpRequest): string;
  log: Logger;
}

const NOT_FOUND = "Call not found";
const COMMON = { tag: "Calls", errorShape: "message", notFound: NOT_FOUND } as const;
const params = { id: IdOf("call", "GET /user/calls") };
const Say = Type.Object({
  text: Type.String({
    minLength: 1, maxLength: 1000, ...about("What it says.", "A colleague will call you back."),
  }),
});
const Mute = Type.Object({
  on: Type.Boolean(about("True mutes the assistant for the customer; false unmutes it.")),
});
const Done = Type.Object({
  ok: Type.Boolean(about("True if the call was live and the command was carried out.")),
});

const Command = Type.Object({
  type: OneOf(["ping", "resume", "say", "mute", "end"]),
  after: Type.Optional(Type.String()),
  text: Type.Optional(Say.properties.text),
  on: Type.Optional(Type.Boolean()),
  request_id: Type.Optional(Type.String({ maxLength: LIMITS.requestIdCharsMax })),
});
const validateCommand = compileValidation(Command);

/** A call whose transcript is a list of entries, as in the stream. */
const LiveCallSchema = Type.Composite([
  Type.Omit(CallSchema, ["transcript", "transcript_entries"]),
  Type.Object({
    transcript: listOf(
      Type.Omit(EntrySchema, ["type", "timestamp"],
        named("LiveEntry", "One transcript entry of a live call.")),
      "The transcript so far, one entry per utterance."),
  }),
], named("LiveCall", "A call in progress with its transcript so far."));

/** The members of a snapshot as clients keep them. */
const stateOf = ({ call, entries }: CallSnapshot, linkOf: (file: string) => string) => {
  const { transcript_entries: list, ...record } = wireCall(call, entries, linkOf);
  return {
    ...record,
    transcript: list.map(({ type, timestamp, ...entry }) => entry),
  };
};

async function streamOf(
  options: LiveCallOptions, caller: Caller, callId: number, baseUrl: string,
): Promise<Pick<StreamRequest, "source" | "sessionsMax">> {
  const { calls, events, recordingLink, isInForce } = options;
  const { accountId } = caller;
  await calls.get(accountId, callId);
  return {
    sessionsMax: options.streamsMax,
    source: {
      topic: callTopic(callId),
      accountId,
      newest: () => events.newestOfCall(callId),
      after: (sequence, rows) => events.ofCall(callId, sequence, rows),
      sequenceOf: (event) => event.sequence,
      live: () => null,
      allowed: () => isInForce(caller),
      snapshot: async () => {
        const snapshot = await calls.snapshot(callId);
        return snapshot && {
          sequence: snapshot.call.eventSequence,
          members: { call: stateOf(snapshot, (file) => recordingLink(file, baseUrl)) },
        };
      },
    },
  };
}

export function liveCallRoutes(options: LiveCallOptions): Route[] {
  return [...watchRoutes(options), ...controlRoutes(options)];
}

function watchRoutes(options: LiveCallOptions): Route[] {
  const { calls, streams, recordingLink } = options;
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/calls/live",
      summary: "List live calls",
      description: "Includes each transcript so far. To follow the calls, open "
        + "`/user/stream?after=<position>` with the returned position.",
      responses: {
        200: {
          description: "A consistent snapshot of the live calls",
          schema: Type.Object({
            id: Type.String(about("Stream position. Continue with `/user/stream?after=<position>`.",
              "42")),
            calls: listOf(LiveCallSchema, "Every call in progress."),
          }),
        },
      },
      handle: async ({ caller, baseUrl }) => {
        const { sequence, calls: live } = await calls.liveSnapshot(caller.accountId);
        return json(200, {
          id: String(sequence),
          calls: live.map((one) => stateOf(one, (file) => recordingLink(file, baseUrl))),
        });
      },
    }),
    sseRoute({
      tag: COMMON.tag,
      path: "/user/calls/{id}/stream",
      summary: "Watch a call",
      description: "Streams a snapshot, then numbered changes as they happen. Reconnect with "
        + "`Last-Event-ID` or `after` to resume.",
      notFound: NOT_FOUND,
      params,
    }, streams, ({ caller, id, baseUrl }) => streamOf(options, caller, id, baseUrl)),
  ];
}

function controlRoutes({ calls, shared }: LiveCallOptions): Route[] {
  const command = <Body extends typeof Say | typeof Mute>(
    name: "say" | "mute", body: Body, run: (id: number, body: Static<Body>) => Promise<boolean>,
  ): Route =>
    keyRoute({
      ...COMMON,
      method: "POST",
      path: `/user/calls/{id}/${name}`,
      isRepeatable: name === "say",
      params,
      summary: name === "say" ? "Make the assistant say something" : "Mute or unmute the assistant",
      description: name === "say"
        ? "The assistant says the text in its own voice as soon as nobody is speaking."
        : "While muted, the customer cannot hear the assistant.",
      body,
      responses: {
        200: { description: "`ok` is true if the call is live", schema: Done },
      },
      handle: async ({ caller, id, body: given }) => {
        await calls.get(caller.accountId, id);
        return json(200, { ok: await run(id, given as Static<Body>) });
      },
    });
  return [
    command("say", Say, (id, { text }: Static<typeof Say>) => shared.say(id, text)),
    command("mute", Mute, (id, { on }: Static<typeof Mute>) => shared.mute(id, on)),
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/calls/{id}/end",
      summary: "End a call",
      params,
      responses: { 200: { description: "`ok` is true if the call was live", schema: Done } },
      handle: async ({ caller, id }) => {
        await calls.get(caller.accountId, id);
        return json(200, { ok: await shared.end(id) });
      },
    }),
  ];
}

/** The caller who opened a socket, and the call it is for. */
interface Opened {
  caller: Caller;
  callId: number;
}

async function callOf(options: LiveCallOptions, http: HttpRequest): Promise<Opened> {
  const caller = await options.identify(http);
  const id = http.params[0] ?? "";
  if (!/^\d{1,15}$/.test(id)) throw new Fault(404, NOT_FOUND);
  await options.calls.get(caller.accountId, Number(id));
  return { caller, callId: Number(id) };
}

/** WS /user/calls/{id}/socket: the call's stream and the commands of its operator. */
export function callSocket(options: LiveCallOptions): SocketRoute {
  const { streams } = options;
  return {
    pattern: `${API_ROOT}/user/calls/:id/socket`,
    errorShape: "message",
    accept: async (http) => {
      const { caller, callId } = await callOf(options, http);
      const position = readPosition(parseQuery(http.query).after, http.headers["last-event-id"]);
      const stream = await streamOf(options, caller, callId, options.baseUrlOf(http));
      const open = await streams.openSocket({ ...stream, position });
      return (socket) => {
        const session = open(socket);
        // One command after another, since each waits for its key to be looked up.
        let last = Promise.resolve();
        return {
          message: (text) => {
            last = last.then(() => obey(session, text, options.log, (given) =>
              run(options, { caller, callId }, session, validateCommand(given))));
          },
          drained: () => session.drained(),
          closed: () => session.closed(),
        };
      };
    },
  };
}

async function run(
  { shared, isInForce, mayAnswer }: LiveCallOptions,
  { caller, callId }: Opened,
  session: SocketSession,
  command: Static<typeof Command>,
): Promise<Answer> {
  if (!await isInForce(caller)) throw new Fault(401, "Unauthenticated.");
  const isSteering = command.type !== "ping" && command.type !== "resume";
  if (isSteering && !await mayAnswer(caller)) {
    throw new Fault(403, "You do not have permission for this resource");
  }
  switch (command.type) {
    case "ping":
      return ["pong", {}];
    case "resume":
      return resume(session, command.after);
    case "say":
      if (command.text === undefined) throw new Fault(422, "The text field is required.");
      return ["say_result", { ok: await shared.say(callId, command.text) }];
    case "mute":
      return ["mute_result", { ok: await shared.mute(callId, command.on ?? true) }];
    case "end":
      return ["end_result", { ok: await shared.end(callId) }];
  }
}

/** WS /user/calls/{id}/listen: both sides mixed as binary PCM, after one JSON frame naming it. */
export function listenSocket(options: LiveCallOptions): SocketRoute {
  return {
    pattern: `${API_ROOT}/user/calls/:id/listen`,
    errorShape: "message",
    accept: async (http) => {
      const { callId, caller } = await callOf(options, http);
      return (socket) => {
        const sound = createSoundSocket(socket, () => options.isInForce(caller));
        let isTold = false;
        const listening = options.shared.listen(callId, (pcm, rate) => {
          if (!isTold) sound.sendFormat(rate);
          isTold = true;
          sound.write(pcm);
        }, () => socket.end(CLOSE_OVER, "the call is over"));
        listening.then(
          (stop) => stop ?? socket.end(CLOSE_OVER, "the call is not live"),
          () => socket.end(CLOSE_ELSEWHERE, "come back"));
        return {
          message: () => undefined,
          drained: sound.drained,
          closed: () => void listening.then((stop) => stop?.(), () => undefined),
        };
      };
    },
  };
}
