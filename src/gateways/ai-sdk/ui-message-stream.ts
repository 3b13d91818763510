// The AI SDK's UI message stream: what `useChat` sends to the message route, and the reply as it
// reads it: the MessageProtocol of conversations/message-protocol.ts.
import { Type } from "@sinclair/typebox";
import { hash } from "node:crypto";
import type { MessageProtocol, ProtocolMessage } from "#features/conversations/message-protocol.ts";
import { assertNever, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { isLonger } from "#core/values.ts";
import type { HttpRequest } from "#http/exchange.ts";
import { compileValidation, parseQuery } from "#http/validation.ts";
import type { Encoder, TurnStreams } from "#gateways/turn-stream.ts";

/** The protocol's version, in requests that ask for it and in every reply. */
const HEADER = "x-vercel-ai-ui-message-stream";

const readChat = compileValidation(Type.Object({
  messages: Type.Array(Type.Object({
    id: Type.Optional(Type.String()),
    role: Type.String(),
    parts: Type.Array(Type.Object({ type: Type.String(), text: Type.Optional(Type.String()) })),
  })),
}));

/**
 * The header, the query or the body asks for it. Nothing else has that body: so the SDK's own
 * transport works with nothing but the address.
 */
function isAsked(http: HttpRequest, body: object): boolean {
  if (http.headers[HEADER] === "v1" || parseQuery(http.query).protocol === "ai-sdk") return true;
  return "trigger" in body && "messages" in body && !("message" in body);
}

/**
 * The message's id and words are its key, because an edited one keeps its id: sent again after a
 * failure it is tried again, after a reply it gives that reply. `regenerate` wants another one:
 * that is one more turn with the same words, because a conversation's log takes nothing back.
 */
function readMessage(body: object): ProtocolMessage {
  if ("message" in body) {
    return { text: String(body.message), key: null, regenerates: false };
  }
  const last = readChat(body).messages.findLast(({ role }) => role === "user");
  const named = "attachments" in body && (body.attachments as unknown[]).length > 0;
  if (named || last?.parts.some(({ type }) => type === "file")) {
    throw fieldFault("messages", "The messages may not have files.");
  }
  const text = (last?.parts ?? []).map((part) => part.type === "text" ? part.text ?? "" : "").join("");
  if (text.trim() === "") throw fieldFault("message", "The message field is required.");
  if (isLonger(text, LIMITS.messageCharsMax)) {
    throw fieldFault(
      "message", `The message may not be greater than ${LIMITS.messageCharsMax} characters.`);
  }
  const id = last?.id ?? "";
  const regenerates = "trigger" in body && body.trigger === "regenerate-message";
  return { text, key: id === "" ? null : hash("sha256", `${id} ${text}`), regenerates };
}

const encode = (...chunks: object[]): string =>
  chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");

/**
 * Steps are the model's: text that follows results of functions is in a step of its own. Without a
 * turn there is no message to name, and clients show none.
 */
export function createUiEncoder(turnId: number | null): Encoder {
  let textNumber = 0;
  let isTextOpen = false;
  let callsTold = 0;
  let isAfterCall = false;
  const closeText = (): object[] => {
    if (!isTextOpen) return [];
    isTextOpen = false;
    return [{ type: "text-end", id: String(textNumber) }];
  };
  const openText = (): object[] => {
    if (isTextOpen) return [];
    const steps = isAfterCall ? [{ type: "finish-step" }, { type: "start-step" }] : [];
    isAfterCall = false;
    isTextOpen = true;
    textNumber += 1;
    return [...steps, { type: "text-start", id: String(textNumber) }];
  };
  const end = (...chunks: object[]): string =>
    `${encode(...closeText(), ...chunks)}data: [DONE]\n\n`;
  /** The server has run it: the client has nothing to answer, and knows no types of its tools. */
  const ranHere = (callId: string): object =>
    ({ toolCallId: `${turnId}_${callId}`, providerExecuted: true, dynamic: true });

  return {
    begin: () => encode(
      { type: "start", ...(turnId === null ? {} : { messageId: `turn-${turnId}` }) },
      { type: "start-step" }),
    take: (step) => {
      switch (step.kind) {
        case "text":
          return encode(
            ...openText(), { type: "text-delta", id: String(textNumber), delta: step.text });
        case "call_start":
          return encode(...closeText(), {
            type: "tool-input-available", toolName: step.name, input: step.arguments,
            ...ranHere(step.callId),
          });
        case "call_end":
          callsTold += 1;
          isAfterCall = true;
          return encode({
            type: "tool-output-available", output: step.result, ...ranHere(step.callId),
          });
        case "completed": {
          // One who read too slowly was brought up from the log, which has no function at work.
          const late = step.functionCalls.slice(callsTold).flatMap((call, at) => [
            {
              type: "tool-input-available", toolName: call.name, input: call.arguments,
              ...ranHere(`late_${at}`),
            },
            { type: "tool-output-available", output: call.result, ...ranHere(`late_${at}`) },
          ]);
          return end(
            ...closeText(), ...late, { type: "finish-step" },
            { type: "finish", finishReason: step.truncated ? "length" : "stop" });
        }
        case "failed":
          return step.reason === "stopped"
            ? end({ type: "abort", reason: step.error })
            : end({ type: "error", errorText: step.error });
        default:
          return assertNever(step);
      }
    },
  };
}

const HEADERS = { [HEADER]: "v1" };

export function createUiMessages(streams: TurnStreams): MessageProtocol {
  const rejoin: MessageProtocol["rejoin"] = (source, turn) =>
    streams.watch(source, turn, createUiEncoder(turn.turnId), HEADERS);
  return {
    rejoin,
    read: (http, body) => isAsked(http, body) ? readMessage(body) : null,
    reply: (source, sent) => {
      switch (sent.kind) {
        case "answering":
          // One who joins it reads its beginning from the log.
          return rejoin(source, sent.replayed ? { ...sent, events: [] } : sent);
        case "repeated":
          return streams.repeat(sent.result, createUiEncoder(sent.turnId), HEADERS);
        case "stored": {
          // A person has it, whose answer comes when it comes.
          return streams.repeat(
            {
              kind: "completed", text: "", functionCalls: [], stopped: false, truncated: false,
              usage: null,
            },
            createUiEncoder(null), HEADERS);
        }
      }
    },
  };
}
