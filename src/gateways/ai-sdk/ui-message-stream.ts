// The AI SDK's UI message stream: what `useChat` sends to the message route, and the reply in its
// format. Implements MessageProtocol of conversations/message-protocol.ts.
import { Type } from "@sinclair/typebox";
import { hash } from "node:crypto";
import type { MessageProtocol, ProtocolMessage } from "#features/conversations/message-protocol.ts";
import { assertNever, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { isLonger } from "#core/values.ts";
import type { HttpRequest } from "#http/exchange.ts";
import { compileValidation, parseQuery } from "#http/validation.ts";
import type { Encoder, TurnStreams } from "#gateways/turn-stream.ts";

/** Carries the protocol's version, in requests that ask for it and in every reply. */
const HEADER = "x-vercel-ai-ui-message-stream";

const readChat = compileValidation(Type.Object({
  messages: Type.Array(Type.Object({
    id: Type.Optional(Type.String()),
    role: Type.String(),
    parts: Type.Array(Type.Object({ type: Type.String(), text: Type.Optional(Type.String()) })),
  })),
}));

/**
 * Asked for by the header, the query or the body. No other client sends such a body, so the SDK's
 * own transport needs only the URL.
 */
function isAsked(http: HttpRequest, body: object): boolean {
  if (http.headers[HEADER] === "v1" || parseQuery(http.query).protocol === "ai-sdk") return true;
  return "trigger" in body && "messages" in body && !("message" in body);
}

/**
 * The key is made of the message's id and text, because an edited message keeps its id: after a
 * failure a repeated send retries, after a reply it returns that reply. `regenerate` asks for
 * another reply: one more turn with the same text, since a conversation's log takes nothing back.
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
 * Steps are the model's: text after function results starts a new step. Without a turn there is no
 * message id, and clients show no message.
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
  /** The server ran the function: the client must not answer it, and has no types for it. */
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
          // A slow reader was caught up from the log, which has no frames of functions in progress.
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
          // A client that joins a turn in progress reads its beginning from the log.
          return rejoin(source, sent.replayed ? { ...sent, events: [] } : sent);
        case "repeated":
          return streams.repeat(sent.result, createUiEncoder(sent.turnId), HEADERS);
        case "stored": {
          // A person holds the conversation and will answer at some later time.
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
