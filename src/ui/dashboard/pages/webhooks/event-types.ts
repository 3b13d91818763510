// The types of events that an endpoint can receive, in words. The compiler reports a missing one.
import type { CommittedData } from "#events/events.ts";
import { plural } from "#ui/dashboard/kit/texts.ts";

type EventType = CommittedData["type"];
type Group = "Conversations" | "Calls" | "Campaigns" | "Knowledge" | "Numbers" | "Account";

const EVENTS: Record<EventType, [group: Group, text: string]> = {
  conversation_created: ["Conversations", "A conversation started"],
  message_added: ["Conversations", "A message was written"],
  reply_failed: ["Conversations", "A reply failed"],
  conversation_failed: ["Conversations", "A visitor was refused: no balance, or the daily limit was reached"],
  reply_failure_explained: ["Conversations", "Why a reply failed, in full"],
  ai_toggled: ["Conversations", "The assistant was switched on or off"],
  desk_changed: ["Conversations", "A person was requested, took over or handed back"],
  conversation_read: ["Conversations", "Somebody read the messages"],
  callback_requested: ["Conversations", "A visitor asked to be contacted"],
  callback_done: ["Conversations", "A visitor was contacted"],
  reply_rated: ["Conversations", "A visitor rated a reply"],
  conversation_rated: ["Conversations", "A visitor rated the conversation"],
  note_added: ["Conversations", "A note about a conversation was written"],
  conversation_ended: ["Conversations", "A conversation ended"],
  conversation_evaluated: ["Conversations", "An ended conversation was evaluated"],
  call_created: ["Calls", "A call started"],
  call_status_changed: ["Calls", "A call’s status changed"],
  transcript_added: ["Calls", "Something was said"],
  call_transfer_changed: ["Calls", "A warm transfer progressed"],
  call_whispered: ["Calls", "A colleague whispered to the assistant"],
  call_ended: ["Calls", "A call ended"],
  call_deleted: ["Calls", "A call was deleted"],
  conversation_deleted: ["Conversations", "A conversation was deleted"],
  lead_status_changed: ["Campaigns", "A lead’s status changed"],
  campaign_status_changed: ["Campaigns", "A campaign’s status changed"],
  document_status_changed: ["Knowledge", "A document’s status changed"],
  phone_number_purchased: ["Numbers", "A number was bought"],
  phone_number_renewed: ["Numbers", "A number was renewed"],
  phone_number_grace: ["Numbers", "A number could not be paid for"],
  phone_number_suspended: ["Numbers", "A number was suspended"],
  phone_number_released: ["Numbers", "A number was released"],
  balance_changed: ["Account", "The balance changed"],
  balance_low: ["Account", "The balance fell to an amount you chose"],
};

interface EventChoice {
  type: string;
  text: string;
}

export const EVENT_TYPES: string[] = Object.keys(EVENTS);

export const EVENT_GROUPS: [group: string, choices: EventChoice[]][] = [
  ...Map.groupBy(Object.entries(EVENTS), ([, [group]]) => group),
].map(([group, entries]) => [group, entries.map(([type, [, text]]) => ({ type, text }))]);

/** Endpoints receive these beside the account's events. */
export const DELIVERY_TYPES: string[] = [...EVENT_TYPES, "post_call", "test"];

export const PURPOSES: Record<string, string> = {
  account: "Account events",
  post_call: "After a call",
  conversation_ended: "After a conversation",
  inbound_call: "Before an inbound call",
};

export const eventsInShort = (events: string[]): string => {
  if (events.includes("*")) return "All events";
  return events.length === 1
    ? events[0] ?? "" : plural(events.length, "{count} type", "{count} types");
};
