// Mail to the people of an assistant's desk: somebody waits, somebody wants to be called. The node
// that commits the event sends it; who must not miss one has webhooks, which outlive a crash.
import type { Assistant } from "#features/assistants/assistants.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { createRateLimiter } from "#core/rate-limit.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CallbackBody, CommittedData, CommittedEvent } from "#events/events.ts";
import type { Mail, Mailer } from "#providers/mail/port.ts";
import type { Conversation } from "./records.ts";

interface NotificationOptions {
  bus: EventBus;
  mailer: Mailer;
  findConversation(uuid: string): Promise<Conversation | null>;
  findAssistant(assistantId: number): Promise<Assistant | null>;
  /** Null: nobody knows under which address people reach the server. */
  publicUrl: string | null;
  system: System;
  log: Logger;
}

/** Strangers can make conversations wait: an assistant's people get no more mails than that. */
const MAILS_PER_HOUR = 30;
const HOUR_MS = 3_600_000;

export type Reported =
  | Extract<CommittedData, { type: "desk_changed"; conversation_id: string }>
  | { type: "callback_requested"; conversation_id: string; callback: CallbackBody };

/** Null: it is nothing anybody is written to about. */
export function reportedIn({ type, json }: CommittedEvent): Reported | null {
  if (type !== "desk_changed" && type !== "callback_requested") return null;
  const data = JSON.parse(json) as Reported;
  // The desk of a call has no conversation to be looked up.
  if (!("conversation_id" in data)) return null;
  // A callback comes with a change of the desk, and is the better news.
  const isNews = data.type === "callback_requested"
    || (data.desk === "waiting" && data.reason !== "callback");
  return isNews ? data : null;
}

/** The visitor's name, where it is known. */
export const visitorOf = ({ variables }: Conversation): string =>
  (variables.customer_name ?? "A visitor").replaceAll(/\s+/g, " ");

function callbackLines({ name, phone, email, wish, time }: CallbackBody): string[] {
  const lines = [
    ["Name", name], ["Phone", phone], ["E-mail", email], ["Wish", wish], ["Time", time],
  ] as const;
  return lines.flatMap(([label, value]) => (value === null ? [] : [`${label}: ${value}`]));
}

function mailOf(
  data: Reported, { name }: Assistant, conversation: Conversation, publicUrl: string | null,
): Omit<Mail, "to"> {
  const who = visitorOf(conversation);
  const link = publicUrl === null
    ? []
    : ["", `${publicUrl}/#/inbox/${data.conversation_id}`];
  if (data.type === "callback_requested") {
    const { email } = data.callback;
    return {
      subject: `${data.callback.name} wants to be reached (${name})`,
      text: [...callbackLines(data.callback), ...link].join("\n"),
      ...email === null ? {} : { replyTo: email },
    };
  }
  return {
    subject: `${who} waits for a person (${name})`,
    text: [`${who} waits for a person, in a conversation with ${name}.`, ...link].join("\n"),
  };
}

export function createNotifications(options: NotificationOptions): { close(): void } {
  const { bus, mailer, findConversation, findAssistant, publicUrl, system, log } = options;
  if (!mailer.isSetUp) return { close: () => undefined };
  const rates = createRateLimiter([{ count: MAILS_PER_HOUR, windowMs: HOUR_MS }], {
    system, keysMax: LIMITS.rateLimiterKeysMax,
  });
  const write = async (data: Reported): Promise<void> => {
    const conversation = await findConversation(data.conversation_id);
    const assistant = conversation && await findAssistant(conversation.assistantId);
    if (!conversation || !assistant) return;
    const addresses = assistant.settings.desk.notify_emails ?? [];
    if (addresses.length === 0) return;
    if (!rates.take(String(assistant.id)).allowed) {
      log.warn({ assistant_id: assistant.id }, "too many mails about who waits: one was not sent");
      return;
    }
    const mail = mailOf(data, assistant, conversation, publicUrl);
    const sent = await Promise.allSettled(
      addresses.map((to) => mailer.send({ ...mail, to })));
    for (const one of sent) {
      if (one.status === "rejected") log.warn({ err: one.reason as unknown }, "a mail was not sent");
    }
  };
  const end = bus.watch((events) => {
    for (const event of events) {
      const data = reportedIn(event);
      if (data) {
        write(data).catch((error: unknown) =>
          log.error({ err: error }, "nobody was written to about who waits"));
      }
    }
  });
  return { close: end };
}
