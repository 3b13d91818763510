// Creates a conversation: with the assistant's initial message, and only if its account can pay for
// one. Called by conversations.ts.
import type { Assistant } from "#features/assistants/assistants.ts";
import { personaOf } from "#features/assistants/turn-context.ts";
import type { Micros } from "#core/money.ts";
import { utcDay, type System } from "#core/system.ts";
import { allVariables } from "#engine/prompt.ts";
import { fillTemplate } from "#engine/template.ts";
import type { EventBus } from "#events/bus.ts";
import { capReached, insufficientBalance } from "./outcomes.ts";
import type { createRefusals } from "./refusals.ts";
import {
  messagePrice, type Conversation, type ConversationStore, type ConversationType, type NewVisitor,
} from "./records.ts";

/** The price of a message, and the assistant's default daily spending cap. */
export interface Prices {
  /** Price of an answered message; 0: none is billed. */
  messagePriceMicros: Micros;
  /** For assistants without a cap of their own; null: none. */
  dailyCapMicros: Micros | null;
}

export interface CreateArgs {
  assistant: Assistant;
  type: ConversationType;
  variables: Record<string, string>;
  externalIdentifier?: string;
  visitor?: NewVisitor | null;
  page?: string | null;
}

interface CreateOptions {
  store: Pick<ConversationStore, "create">;
  refusals: ReturnType<typeof createRefusals>;
  system: System;
  bus: EventBus;
  limits: Prices;
}

export function dailyCapOf(assistant: Assistant, otherwise: Micros | null): Micros | null {
  const own = assistant.settings.daily_spend_cap;
  return own === null || own === undefined ? otherwise : Math.round(own * 1_000_000);
}

export async function createConversation(
  { store, refusals, system, bus, limits }: CreateOptions, args: CreateArgs,
): Promise<Conversation> {
  const { assistant, type } = args;
  const now = system.now();
  const variables = allVariables(personaOf(assistant), args.variables, now);
  const outcome = await store.create({
    uuid: system.uuid(),
    accountId: assistant.accountId,
    assistant: { id: assistant.id, uuid: assistant.uuid },
    type,
    variables: args.variables,
    externalIdentifier: args.externalIdentifier ?? null,
    visitor: args.visitor ?? null,
    page: args.page ?? null,
    initialMessage: fillTemplate(assistant.settings.initial_message, variables),
    priceMicros: messagePrice(type, limits.messagePriceMicros),
    inactivityMinutes: assistant.settings.conversation_inactivity_timeout,
    // Other types get their first message later, and are checked then.
    dailyCapMicros: type === "api" ? dailyCapOf(assistant, limits.dailyCapMicros) : null,
    day: utcDay(now),
    now,
  });
  if (outcome.kind === "daily_cap_reached") throw capReached(now);
  if (outcome.kind === "balance_too_low") {
    if (type === "widget") {
      await refusals.publish({
        accountId: assistant.accountId, assistantUuid: assistant.uuid, conversationUuid: null,
        reason: outcome.kind,
      });
    }
    throw insufficientBalance();
  }
  if (outcome.kind === "created") bus.publishCommitted(outcome.events);
  return outcome.conversation;
}
