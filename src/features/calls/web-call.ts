// Web calls: a ticket for a conversation, then a WebSocket that carries PCM both ways and JSON.
// The messages are listed in docs/calls.md.
import { Type, type Static } from "@sinclair/typebox";
import type { Assistant, Assistants } from "#features/assistants/assistants.ts";
import type { NewTickets } from "#features/accounts/people/tickets.ts";
import type { Conversations } from "#features/conversations/conversations.ts";
import { conversationNotFound } from "#features/conversations/outcomes.ts";
import { isUuid } from "#core/values.ts";
import { Fault } from "#core/faults.ts";
import { about, OneOf } from "#core/schema.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { Uuid } from "#http/answers.ts";
import { API_ROOT, originFault } from "#http/api.ts";
import { toFault } from "#http/errors.ts";
import {
  CUT_OFF, json, type HttpRequest, type Socket, type SocketHandlers, type SocketRoute,
} from "#http/exchange.ts";
import { publicRoute, type Route } from "#http/route.ts";
import { compileValidation, parseJsonObject, parseQuery } from "#http/validation.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import type { Calling } from "./calling.ts";
import { holding } from "./capacity.ts";
import { SILENT_MS } from "./ending.ts";
import type { Hearing } from "./records/records.ts";
import type { Face } from "./face.ts";
import type { GivenWords, VoiceChoice } from "./voice-choice.ts";
import { createIntake } from "./intake.ts";
import { createWebPath, SDP_CHARS_MAX, type IceServer } from "./web-path.ts";

interface WebCallOptions {
  calling: Calling;
  conversations: Conversations;
  /** Access checks, as in the conversation's own routes. */
  access: {
    originAllowedFor(conversationUuid: string, http: HttpRequest): Promise<boolean>;
    assertMaySend(conversationUuid: string): Promise<void>;
  };
  newTickets: NewTickets;
  getAssistant: Assistants["getById"];
  whyCannotTalk: VoiceChoice["whyCannotTalk"];
  /** STUN and TURN servers for a page; null: sound goes only over the socket. */
  iceServers: (() => IceServer[]) | null;
  /** Seconds from sending the last sound until it is heard. */
  observePlayout(seconds: number): void;
  system: System;
  log: Logger;
}

const RATE = 16_000;
const FORMAT = { encoding: "pcm_s16le", rate: RATE };
const CLOSE = { over: 1000, refused: 4500 } as const;

const LEFT: LegEvent = { kind: "ended", cause: "far_hung_up" };

const Message = Type.Object({
  type: OneOf(["start", "words", "cleared", "mark", "dtmf", "offer", "path", "end", "ping"]),
  /** Offered in place of sound: the page recognises speech, or the caller types. */
  hearing: Type.Optional(OneOf(["browser", "typed"])),
  text: Type.Optional(Type.String({ maxLength: LIMITS.givenWordsCharsMax })),
  final: Type.Optional(Type.Boolean()),
  format: Type.Optional(Type.Object({
    encoding: Type.Literal("pcm_s16le"), rate: Type.Literal(RATE),
  })),
  played_ms: Type.Optional(Type.Number({ minimum: 0 })),
  dropped_ms: Type.Optional(Type.Number({ minimum: 0 })),
  name: Type.Optional(Type.String({ maxLength: 64 })),
  sdp: Type.Optional(Type.String({ maxLength: SDP_CHARS_MAX })),
  path: Type.Optional(OneOf(["socket", "peer"])),
  digit: Type.Optional(Type.String({ pattern: "^[0-9A-D*#]$" })),
});
const validateMessage = compileValidation(Message);

const TicketReply = Type.Object({
  ticket: Type.String(about("The ticket. It opens one call, once.", "q8Zr1x0V5mB2nK7c")),
  expires_in: Type.Integer(about("Seconds until the ticket expires.", 60)),
});
/** Told to callers instead of what is missing on the server, which is its owner's business. */
const CANNOT_CALL = "Calls with this assistant are not possible at the moment.";

export function webCall(options: WebCallOptions): { routes: Route[]; socket: SocketRoute } {
  const { conversations, access } = options;
  const tickets = options.newTickets<{ accountId: number; uuid: string }>("web call");
  const assistantOf = async (uuid: string): Promise<Assistant> =>
    options.getAssistant((await conversations.get(uuid)).assistantId);
  const ticketRoute = publicRoute({
    tag: "Calls",
    errorShape: "conversation",
    method: "POST",
    path: "/conversations/{uuid}/call-ticket",
    notFound: "Conversation not found",
    summary: "Get a ticket for a web call",
    description: "A browser uses the ticket once, to open the WebSocket "
      + "`/conversations/{uuid}/call?ticket=`.",
    params: { uuid: Uuid("The conversation's `conversation_id`.") },
    responses: {
      200: { description: "The ticket", schema: TicketReply },
      422: { description: "No speech engine on this server speaks or understands the language" },
      429: { description: "Too many messages and calls" },
      503: { description: "The server is at its limit of concurrent calls" },
    },
    handle: async ({ uuid, http }) => {
      const assistant = await assistantOf(uuid);
      if (!await access.originAllowedFor(uuid, http)) throw originFault();
      await access.assertMaySend(uuid);
      assertCanTalk(options, assistant, "browser");
      // Without a place the request is refused here, before a socket is opened.
      return holding(options.calling, assistant, "browser", () => {
        const { ticket } = tickets.issue({ accountId: assistant.accountId, uuid });
        return json(200, { ticket, expires_in: LIMITS.streamTicketMs / 1000 });
      });
    },
  });
  const socket: SocketRoute = {
    pattern: `${API_ROOT}/conversations/:uuid/call`,
    errorShape: "conversation",
    accept: async (http) => {
      const uuid = (http.params[0] ?? "").toLowerCase();
      if (!isUuid(uuid)) throw conversationNotFound();
      const assistant = await assistantOf(uuid);
      if (!await access.originAllowedFor(uuid, http)) throw originFault();
      const issued = await tickets.redeem(parseQuery(http.query).ticket ?? "");
      if (issued?.uuid !== uuid) {
        throw new Fault(401, "The ticket is not valid.");
      }
      return (open) => createFace(options, open, uuid, assistant);
    },
  };
  return { routes: [ticketRoute], socket };
}

/** Throws Fault 422 in words for strangers; what is missing goes to the log. */
function assertCanTalk(
  { whyCannotTalk, log }: WebCallOptions, assistant: Assistant, words: GivenWords | null,
): void {
  const reason = whyCannotTalk(assistant, words);
  if (reason === null) return;
  log.warn({ assistant_id: assistant.id, reason }, "a web call was refused");
  throw new Fault(422, CANNOT_CALL);
}

/** One open socket, from `start` to the end of its call. */
function createFace(
  options: WebCallOptions, socket: Socket, uuid: string, assistant: Assistant,
): SocketHandlers {
  const { calling, conversations, log, system } = options;
  let leg: ((event: LegEvent) => void) | null = null;
  let hasStarted = false;
  let isGone = false;
  const life = createLife(system);
  const intake = createIntake(options.system, RATE);
  const words = createWordIntake(system);
  const post = (message: object): void => void socket.send(JSON.stringify(message));
  const marks = createMarks(options.system);
  const path = createWebPath(options.iceServers, post);
  const face = faceOf(socket, post, { marks, path, intake, life });
  const start = async (offer: GivenWords | null): Promise<void> => {
    hasStarted = true;
    assertCanTalk(options, assistant, offer);
    const { variables } = await conversations.get(uuid);
    const { callId, hearing, ...call } = await calling.openWeb({
      assistant, conversationUuid: uuid, variables, face, words: offer,
    });
    leg = call.leg;
    words.start(hearing);
    intake.start();
    post({ type: "ready", call_id: callId, format: FORMAT, hearing, ...path.start(call.peer) });
    leg(isGone ? LEFT : { kind: "answered" });
  };
  const refuse = (error: unknown): void => {
    const fault = toFault(error, log, null);
    post({ type: "error", status: fault.status, error: fault.message });
    if (!leg) socket.end(CLOSE.refused, "refused");
  };
  const handle = (message: Static<typeof Message>): void => {
    switch (message.type) {
      case "ping":
        return post({ type: "pong" });
      case "start":
        if (!hasStarted) void start(message.hearing ?? null).catch(refuse);
        return;
      case "offer":
        return path.offer(message.sdp ?? "");
      case "path":
        path.change(message.path ?? "socket");
        // Time in which sound came over the other path is no credit: the limit begins anew.
        return intake.start();
      case "mark":
        return marks.heard(message.name ?? "", options.observePlayout);
      default: {
        const event = message.type === "words" ? words.receive(message) : legEventOf(message);
        // The caller may hang up while the call is being opened.
        isGone ||= event === LEFT;
        if (event) leg?.(event);
      }
    }
  };
  return life.seenBy({
    message: (text) =>
      attempt(() => handle(validateMessage(parseJsonObject(Buffer.from(text)))), refuse),
    bytes: (bytes) => {
      if (!leg || path.isPeer) return;
      const pcm = intake.receive(bytes);
      if (pcm) leg({ kind: "audio", pcm });
    },
    drained: () => undefined,
    closed: (code) => {
      isGone = true;
      leg?.(life.endOf(code));
    },
  });
}

/** When the page was last heard from: one whose network is gone cannot say that it leaves. */
function createLife(system: System) {
  let cameMs = system.monotonicMs();
  const came = (): void => void (cameMs = system.monotonicMs());
  const silentMs = (): number => system.monotonicMs() - cameMs;
  return {
    came,
    silentMs,
    /** Anything its socket brings is a sign of life. */
    seenBy: ({ message, bytes, ...rest }: SocketHandlers): SocketHandlers => ({
      ...rest,
      message: (text) => {
        came();
        message(text);
      },
      bytes: (sound) => {
        came();
        bytes?.(sound);
      },
      pong: came,
    }),
    /** `code`: how its socket was closed. */
    endOf: (code: number): LegEvent => code === CUT_OFF && silentMs() >= SILENT_MS
      ? { kind: "ended", cause: "media_timeout", silentMs: silentMs() }
      : LEFT,
  };
}

function attempt(work: () => void, failed: (error: unknown) => void): void {
  try {
    work();
  } catch (error) {
    failed(error);
  }
}

/** The leg's event in a message; null: there is none. */
function legEventOf({ type, dropped_ms: ms = 0, digit }: Static<typeof Message>): LegEvent | null {
  if (type === "cleared") return { kind: "cleared", droppedMs: ms };
  if (type === "end") return LEFT;
  return type === "dtmf" && digit !== undefined ? { kind: "dtmf", digit } : null;
}

/** Text as a recogniser would give it: without line breaks and control characters. */
const oneLine = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ").trim();

/** Words from a page that was asked for them; beyond so many per second they are ignored. */
function createWordIntake(system: System) {
  let isAsked = false;
  let sinceMs = -Infinity;
  let count = 0;
  return {
    start: (hearing: Hearing): void => {
      isAsked = hearing === "browser" || hearing === "typed";
    },
    receive: ({ text = "", final: isFinal = false }: Static<typeof Message>): LegEvent | null => {
      const nowMs = system.monotonicMs();
      if (nowMs - sinceMs >= 1000) {
        sinceMs = nowMs;
        count = 0;
      }
      count += 1;
      if (!isAsked || count > LIMITS.givenWordsPerSecondMax) return null;
      return { kind: "words", text: oneLine(text), isFinal };
    },
  };
}

/** What the page receives from the call. */
function faceOf(
  socket: Socket, post: (message: object) => void, { marks, path, intake, life }: {
    marks: ReturnType<typeof createMarks>;
    path: ReturnType<typeof createWebPath>;
    intake: ReturnType<typeof createIntake>;
    life: ReturnType<typeof createLife>;
  },
): Face {
  return {
    frame: (pcm) => {
      socket.sendBytes(new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength));
    },
    clear: () => post({ type: "clear" }),
    mark: () => post({ type: "mark", name: marks.sent() }),
    transcript: (speaker, text, isFinal) =>
      post({ type: "transcript", role: speaker, text, final: isFinal }),
    state: (state) => post({ type: "state", state }),
    functionCall: (name, phase) => post({ type: "tool", name, phase }),
    peer: (report) => report.kind === "heard" ? life.came() : path.report(report),
    over: (reason) => {
      post({ type: "end", reason });
      socket.end(CLOSE.over, "over");
    },
    quality: intake.quality,
    silentMs: life.silentMs,
    line: null,
  };
}

const MARKS_MAX = 16;

/** Measures how long sent sound takes until the page has played it, by its answers to marks. */
function createMarks(system: System) {
  const sentMs = new Map<string, number>();
  let newest = 0;
  return {
    sent: (): string => {
      const name = String((newest += 1));
      sentMs.set(name, system.monotonicMs());
      sentMs.delete(String(newest - MARKS_MAX));
      return name;
    },
    /** Ignores a mark that is not awaited. */
    heard: (name: string, observe: (seconds: number) => void): void => {
      const fromMs = sentMs.get(name);
      sentMs.delete(name);
      if (fromMs !== undefined) observe((system.monotonicMs() - fromMs) / 1000);
    },
  };
}
