// Sends a visitor the conversation's transcript by e-mail, where the assistant's owner allows it.
// Because strangers choose the recipient, mails are limited per conversation, per network address
// and per assistant. Called by transcript-routes.ts.
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { createRateLimiter } from "#core/rate-limit.ts";
import { wait, type System } from "#core/system.ts";
import { localDateTime } from "#core/zones.ts";
import type { Mailer } from "#providers/mail/port.ts";
import type { Message } from "#features/conversations/records.ts";

const HOUR_MS = 3_600_000;
const OF_CONVERSATION_PER_HOUR = 3;
const OF_ADDRESS_PER_HOUR = 6;
const OF_ASSISTANT_PER_HOUR = 60;
/** A mail server that is away or wants to be asked later keeps no visitor waiting. */
const ANSWERED_WITHIN_MS = 20_000;
const EMAIL = /^[^\s@<>"]+@[^\s@<>".]+\.[^\s@<>"]+$/;

interface TranscriptOptions {
  mailer: Mailer;
  system: System;
  log: Logger;
}

function lineOf(
  { role, author, content, attachments, createdAt }: Message, assistant: Assistant,
): string {
  const { date, time } = localDateTime(createdAt, assistant.settings.timezone);
  const who = role === "user" ? "You" : author?.name ?? assistant.name;
  const files = attachments.map(({ name }) => `[${name}]`);
  return `${who} (${date} ${time}):\n${[content, ...files].filter((text) => text !== "").join("\n")}`;
}

export function createTranscripts({ mailer, system, log }: TranscriptOptions) {
  const limiter = (count: number) => createRateLimiter(
    [{ count, windowMs: HOUR_MS }], { system, keysMax: LIMITS.rateLimiterKeysMax });
  const limits = [
    limiter(OF_CONVERSATION_PER_HOUR), limiter(OF_ADDRESS_PER_HOUR), limiter(OF_ASSISTANT_PER_HOUR),
  ];
  const isOffered = ({ settings }: Pick<Assistant, "settings">): boolean =>
    mailer.isSetUp && settings.widget_settings.transcripts === true;
  return {
    isOffered,
    /**
     * Resolves once the mail server has it, or after ANSWERED_WITHIN_MS if it is still being tried;
     * throws a Fault: 403, 422, 429 or 502.
     */
    send: async ({ assistant, uuid, from, email, messages }: {
      assistant: Assistant; uuid: string; from: string; email: string; messages: Message[];
    }): Promise<void> => {
      if (!isOffered(assistant)) throw new Fault(403, "This assistant does not offer transcripts.");
      if (!EMAIL.test(email)) throw fieldFault("email", "The email is invalid.");
      if (!messages.some(({ role }) => role === "user")) {
        throw fieldFault("email", "Nothing has been said yet.");
      }
      const keys = [uuid, from, String(assistant.id)];
      const refused = limits.map((one, at) => one.look(keys[at] ?? ""))
        .find(({ remaining, retryAfterMs }) => remaining === 0 && retryAfterMs > 0);
      if (refused) {
        throw new Fault(429, "Too many transcripts were sent. Please try again later.", {
          retryAfterS: Math.ceil(refused.retryAfterMs / 1000),
        });
      }
      for (const [at, one] of limits.entries()) one.take(keys[at] ?? "");
      const answered = new AbortController();
      const sent = mailer.send({
        accountId: assistant.accountId, to: email,
        subject: `Your chat with ${assistant.name.replaceAll(/\s+/g, " ")}`,
        text: messages.map((message) => lineOf(message, assistant)).join("\n\n"),
      }).catch((error: unknown) => {
        log.warn({ err: error, assistant_id: assistant.id }, "could not send a transcript");
        if (answered.signal.aborted) return;
        throw new Fault(502, "The transcript could not be sent.", { cause: error });
      });
      const late = wait(system, ANSWERED_WITHIN_MS, answered.signal);
      await Promise.race([sent, late]).finally(() => answered.abort());
    },
  };
}

export type Transcripts = ReturnType<typeof createTranscripts>;
