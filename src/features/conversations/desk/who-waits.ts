// Notifies people who are not looking at the inbox that a visitor waits or asks to be called back:
// finds the conversation and the recipients, and limits the rate. The node that commits the event
// reports it, which a crash can lose; webhooks cannot be lost that way. Used by notifications.ts
// (mail) and push.ts (browsers), which define the recipients and the delivery.
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
  /** The name in log messages, such as "mails". */
  name: string;
  /** Most notifications per assistant, because strangers can make any number of visitors wait. */
  perHour: number;
  recipients(of: { accountId: number; assistant: Assistant }): Promise<readonly Recipient[]>;
  send(report: Report, recipients: readonly Recipient[]): Promise<void>;
}

const HOUR_MS = 3_600_000;

/** Null: nobody is notified of this event. */
function reportedIn({ type, json }: CommittedEvent): Reported | null {
  if (type !== "desk_changed" && type !== "callback_requested") return null;
  const data = JSON.parse(json) as Reported;
  // A call's desk event has no conversation to look up.
  if (!("conversation_id" in data)) return null;
  // A callback also changes the desk; only the callback itself is reported.
  const isNews = data.type === "callback_requested"
    || (data.desk === "waiting" && data.reason !== "callback");
  return isNews ? data : null;
}

/** The visitor's name, or a placeholder. */
export const visitorOf = ({ variables }: Conversation): string =>
  (variables.customer_name ?? "A visitor").replaceAll(/\s+/g, " ");

/** Reports until the result is called. */
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
      log.warn({ assistant_id: assistant.id }, `too many ${name} about waiting visitors: one was not sent`);
      return;
    }
    await send({ data, accountId, assistant, conversation }, recipients);
  };
  return bus.watch((_, own) => {
    for (const event of own) {
      const data = reportedIn(event);
      if (data) {
        report(event.accountId, data).catch((error: unknown) =>
          log.error({ err: error }, `${name} about waiting visitors were not sent`));
      }
    }
  });
}
