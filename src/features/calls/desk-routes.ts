// What people of the account do in a call besides watching it: whisper to the assistant, take it
// over with a microphone, hand it back. The rules are in persons.ts and conversations/desk/desk.ts.
import { Type } from "@sinclair/typebox";
import type { CallDeskOutcome, SharedPersons } from "#cluster/cluster.ts";
import { Fault } from "#core/faults.ts";
import { about } from "#core/schema.ts";
import type { System } from "#core/system.ts";
import type { Author } from "#events/events.ts";
import { IdOf } from "#http/answers.ts";
import { API_ROOT } from "#http/api.ts";
import { json, type HttpRequest, type Socket, type SocketHandlers, type SocketRoute } from "#http/exchange.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import type { Calls } from "./calls.ts";
import { callDeskItem, CallDeskSchema } from "./records/desk-wire.ts";
import { createIntake } from "./intake.ts";
import { CLOSE_ELSEWHERE, CLOSE_OVER, createSoundSocket } from "./sound-socket.ts";
import { PERSON_RATE } from "./voice/protocol.ts";

interface CallDeskOptions {
  calls: Pick<Calls, "get">;
  persons: SharedPersons;
  authorOf(caller: Caller): Promise<Author>;
  identify(http: HttpRequest): Promise<Caller>;
  /** Whether the caller may do more than watch, by their current role. */
  mayAnswer(caller: Caller): Promise<boolean>;
  /** False once the key is revoked, or the member's session has ended. */
  isInForce(caller: Pick<Caller, "keyId" | "member">): Promise<boolean>;
  system: System;
}

const NOT_FOUND = "Call not found";
const COMMON = {
  tag: "Calls", errorShape: "message", notFound: NOT_FOUND,
  params: { id: IdOf("call", "GET /user/calls") },
} as const;
const HELD = { description: "Somebody else has the call, or it is not in progress" };

const WHISPER = Type.Object({
  text: Type.String({
    minLength: 1, maxLength: 1000,
    ...about("What the assistant should know or say.", "Offer ten percent if they hesitate."),
  }),
});
const TAKE_OVER = Type.Object({
  with_assistant: Type.Optional(Type.Boolean(about(
    "True: you and the assistant both talk. False (the default): the assistant stays silent and "
    + "listens.",
    false))),
});
const Whispered = Type.Object({
  ok: Type.Boolean(about("True if the call was live and the assistant got the message.")),
});

const CLOSE_NOT_THEIRS = 4509;

function deskOf(outcome: CallDeskOutcome) {
  if (outcome.kind === "moved") return callDeskItem(outcome.desk);
  throw new Fault(409, outcome.kind === "held"
    ? `${outcome.holder.name} has this call.`
    : "The call is not in progress.");
}

export function callDeskRoutes({ calls, persons, authorOf }: CallDeskOptions): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/calls/{id}/whisper",
      isRepeatable: true,
      summary: "Whisper to the assistant",
      description: "The customer does not hear it. The assistant acts on it in its own words with "
        + "its next reply, or right away if nobody is speaking.",
      body: WHISPER,
      responses: { 200: { description: "`ok` is true if the call is live", schema: Whispered } },
      handle: async ({ caller, id, body }) => {
        await calls.get(caller.accountId, id);
        return json(200, { ok: await persons.whisper(id, await authorOf(caller), body.text) });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/calls/{id}/take-over",
      summary: "Take over a call with your microphone",
      description: "Next, open `WS /user/calls/{id}/speak`. The assistant stops mid-word and "
        + "listens until you hand the call back. If you are disconnected for eight seconds, the "
        + "assistant takes the call back.",
      body: TAKE_OVER,
      responses: { 200: { description: "Who has the call", schema: CallDeskSchema }, 409: HELD },
      handle: async ({ caller, id, body }) => {
        await calls.get(caller.accountId, id);
        const by = await authorOf(caller);
        return json(200, deskOf(await persons.takeOver(id, by, body.with_assistant !== true)));
      },
    }),
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/calls/{id}/hand-back",
      summary: "Hand a call back to the assistant",
      description: "The assistant knows what was said in the meantime and continues the "
        + "conversation.",
      responses: { 200: { description: "Who has the call", schema: CallDeskSchema }, 409: HELD },
      handle: async ({ caller, id }) => {
        await calls.get(caller.accountId, id);
        return json(200, deskOf(await persons.handBack(id, await authorOf(caller))));
      },
    }),
  ];
}

/**
 * WS /user/calls/{id}/speak: what the person says comes as binary PCM, and what they hear is sent
 * the same way, after one JSON frame that names the format of both.
 */
export function speakSocket(options: CallDeskOptions): SocketRoute {
  const { calls, authorOf } = options;
  return {
    pattern: `${API_ROOT}/user/calls/:id/speak`,
    errorShape: "message",
    accept: async (http) => {
      const caller = await options.identify(http);
      if (!await options.mayAnswer(caller)) {
        throw new Fault(403, "You do not have permission for this resource");
      }
      const id = http.params[0] ?? "";
      if (!/^\d{1,15}$/.test(id)) throw new Fault(404, NOT_FOUND);
      const { desk } = await calls.get(caller.accountId, Number(id));
      const author = await authorOf(caller);
      if (desk.holder && desk.holder.id !== author.id) {
        throw new Fault(409, `${desk.holder.name} has this call.`);
      }
      if (!desk.holder) throw new Fault(409, "Take the call over before you speak.");
      return (socket) => speak(options, socket, Number(id), { caller, authorId: author.id });
    },
  };
}

function speak(
  { persons, system, isInForce, mayAnswer }: CallDeskOptions, socket: Socket, callId: number,
  { caller, authorId }: { caller: Caller; authorId: string },
): SocketHandlers {
  const sound = createSoundSocket(
    socket, async () => await isInForce(caller) && await mayAnswer(caller));
  const speaking = persons.speak(
    callId, authorId, sound.write, () => socket.end(CLOSE_OVER, "you no longer have the call"));
  let write: ((pcm: Int16Array) => void) | null = null;
  const intake = createIntake(system, PERSON_RATE);
  speaking.then((open) => {
    if (open === null) return socket.end(CLOSE_OVER, "the call is not live");
    if (open === "not_theirs") return socket.end(CLOSE_NOT_THEIRS, "you do not have the call");
    if (socket.closed) return open.close();
    intake.start();
    write = open.write;
    sound.sendFormat(PERSON_RATE);
  }, () => socket.end(CLOSE_ELSEWHERE, "come back"));
  return {
    message: () => undefined,
    bytes: (bytes) => {
      const pcm = write && intake.receive(bytes);
      if (pcm) write?.(pcm);
    },
    drained: sound.drained,
    closed: () => void speaking.then((open) => {
      if (open !== null && open !== "not_theirs") open.close();
    }, () => undefined),
  };
}
