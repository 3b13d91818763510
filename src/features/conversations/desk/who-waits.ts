// Reports that somebody waits, or wants to be called, to people who are not looking: finds whose
// conversation it is, who can be reached, and bounds how often. The node that commits the event
// reports it; who must not miss one has webhooks, which outlive a crash. Used by notifications.ts
// (mail) and push.ts (browsers), which say whom they reach and how.
import type { Assistant } from "#features/assistants/assistants.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { createRateLimiter } from "#core/rate-limit.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CallbackBody, CommittedData, CommittedEvent } from "#events/events.ts";
import type { Conversation } from "#features/conversations/records.ts";

export interface ReportOptions {
  bus: EventBus;
  findConversation(uuid: string): Promise<Conversation | null>;
  findAssistant(assistantId: number): Promise<Assistant | null>;
  system: System;
  log: Logger;
}

type Reported =
  | Extract<CommittedData, { type: "desk_changed"; conversation_id: string }>
  | { type: "callback_requested"; conversation_id: string; callback: CallbackBody };

export interface Report {
  data: Reported;
  accountId: number;
  assistant: Assistant;
  conversation: Conversation;
}

interface Way<Recipient> {
  /** In the log, as "mails". */
  name: string;
  /** Strangers can make conversations wait: an assistant's people get no more than that. */
  perHour: number;
  recipients(of: { accountId: number; assistant: Assistant }): Promise<readonly Recipient[]>;
  send(report: Report, recipients: readonly Recipient[]): Promise<void>;
}

const HOUR_MS = 3_600_000;

/** Null: it is nothing anybody is told about. */
function reportedIn({ type, json }: CommittedEvent): Reported | null {
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

/** Until the result is called. */
export function reportWaiting<Recipient>(
  { bus, findConversation, findAssistant, system, log }: ReportOptions,
  { name, perHour, recipients: find, send }: Way<Recipient>,
): () => void {
  const rates = createRateLimiter([{ count: perHour, windowMs: HOUR_MS }], {
    system, keysMax: LIMITS.rateLimiterKeysMax,
  });
  const report = async (accountId: number, data: Reported): Promise<void> => {
    const conversation = await findConversation(data.conversation_id);
    const assistant = conversation && await findAssistant(conversation.assistantId);
    if (!conversation || !assistant) return;
    const recipients = await find({ accountId, assistant });
    if (recipients.length === 0) return;
    if (!rates.take(String(assistant.id)).allowed) {
      log.warn({ assistant_id: assistant.id }, `too many ${name} about who waits: one was not sent`);
      return;
    }
    await send({ data, accountId, assistant, conversation }, recipients);
  };
  return bus.watch((_, own) => {
    for (const event of own) {
      const data = reportedIn(event);
      if (data) {
        report(event.accountId, data).catch((error: unknown) =>
          log.error({ err: error }, `${name} about who waits were not sent`));
      }
    }
  });
}
