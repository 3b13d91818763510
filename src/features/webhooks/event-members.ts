// The events of an account with their members besides `type`, for the reference and for endpoints
// that subscribe to some. The compiler ensures that no event or member is missing.
import type { CommittedData } from "#events/events.ts";
import { fieldFault } from "#core/faults.ts";

type Type = CommittedData["type"];
type Named<T, Event = CommittedData> =
  Event extends { type: infer Name } ? (T extends Name ? Event : never) : never;
type Members<Event> = Event extends unknown ? Exclude<keyof Event, "type"> : never;

const CONVERSATION = { conversation_id: "" };
const EVALUATED = { evaluation: "its answers by name", evaluation_error: "why there is none, or null" };
const NUMBER = { phone_number_id: "", phone_number: "" };
const CALLBACK = { ...CONVERSATION, callback: "how to reach somebody" };
const TURN = { ...CONVERSATION, turn_id: "" };

/** Explains a member where its name does not. */
const EVENTS: { [T in Type]: Record<Members<Named<T>>, string> } = {
  conversation_created: { ...CONVERSATION, assistant_id: "its uuid", conversation_type: "" },
  message_added: { ...TURN, message: "`role`, `content`, `created_at` and more, as in the history" },
  reply_failed: { ...TURN, reason: "", error: "" },
  reply_failure_explained: { ...TURN, failure: "the kind", error: "in full" },
  conversation_failed: {
    conversation_id: "null where none was begun", assistant_id: "its uuid", reason: "", error: "",
  },
  conversation_ended: { ...CONVERSATION, reason: "`inactivity`, `assistant` or `operator`" },
  conversation_evaluated: { ...CONVERSATION, ...EVALUATED },
  conversation_read: { ...CONVERSATION, by: "", read_at: "" },
  conversation_rated: { ...CONVERSATION, score: "1 to 5", comment: "" },
  conversation_deleted: CONVERSATION,
  reply_rated: { ...TURN, rating: "`up`, `down` or null" },
  ai_toggled: { ...CONVERSATION, ai_enabled: "" },
  desk_changed: {
    conversation_id: "of a conversation", call_id: "or of a call",
    desk: "`assistant`, `waiting` or `person`", by: "", reason: "", holder: "who has it, or null",
    away: "outside office hours, of conversations", at: "of calls",
  },
  callback_requested: CALLBACK,
  callback_done: CALLBACK,
  note_added: { ...CONVERSATION, note_id: "", author: "", text: "" },
  call_created: { call_id: "", call: "its record" },
  call_status_changed: {
    call_id: "", status: "", previous_status: "", answered_by: "", end_reason: "", at: "",
  },
  transcript_added: { call_id: "", entry: "what was said, by whom and when" },
  call_transfer_changed: { call_id: "", transfer: "how far it is" },
  call_whispered: { call_id: "", by: "", text: "", at: "" },
  call_ended: {
    call_id: "", status: "", end_reason: "", failure_reason: "", duration: "seconds",
    carrier_cost: "", total_cost: "", ...EVALUATED, has_recording: "",
  },
  call_deleted: { call_id: "" },
  lead_status_changed: {
    lead_id: "", main_lead_id: "whose secondary contact it is, or null", campaign_id: "",
    phone_number: "empty once the lead is deleted", status: "", previous_status: "", call_tries: "", call_id: "", next_try_at: "",
    last_outcome: "",
  },
  campaign_status_changed: {
    campaign_id: "", name: "", status: "", previous_status: "", reason: "", paused_until: "",
    note: "", by: "",
  },
  document_status_changed: {
    knowledgebase_id: "", document_id: "", name: "", status: "", reason: "why it failed, or null",
    knowledgebase_status: "",
  },
  phone_number_purchased: { ...NUMBER, monthly_price: "", paid_until: "" },
  phone_number_renewed: { ...NUMBER, monthly_price: "", paid_until: "" },
  phone_number_grace: { ...NUMBER, grace_until: "" },
  phone_number_suspended: { ...NUMBER, release_at: "" },
  phone_number_released: { ...NUMBER, reason: "`requested` or `unpaid`" },
  balance_changed: { balance: "", change: "", kind: "" },
  balance_low: { balance: "", threshold: "the amount it fell to" },
};

const rowOf = ([type, members]: [string, Record<string, string>]): string => {
  const said = Object.entries(members).map(([name, what]) =>
    `\`${name}\`${what === "" ? "" : ` (${what})`}`);
  return `| \`${type}\` | ${said.join(", ")} |`;
};

export const EVENTS_TABLE = ["| Event | Has |", "|---|---|", ...Object.entries(EVENTS).map(rowOf)]
  .join("\n");

/** Throws Fault 422 for an unknown event: the endpoint would wait for it for ever. */
export function assertEvents(asked: readonly string[]): void {
  const unknown = asked.find((type) => type !== "*" && !Object.hasOwn(EVENTS, type));
  if (unknown === undefined) return;
  throw fieldFault("events", `There is no event ${unknown}: GET /user/events has all of them.`);
}
