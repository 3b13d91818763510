// The built-in functions, as data: the name of each, what it needs, and the field for each of its
// members.
import type { Option } from "#ui/dashboard/kit/controls.tsx";
import { words } from "#ui/dashboard/kit/format.ts";
import { tell } from "#ui/dashboard/pages/assistants/labels.ts";

interface Base {
  name: string;
  label: string;
  hint?: string;
}

export type Member = Base & (
  | { kind: "text" | "area" | "secret" | "flag" | "assistant" | "phone" | "booking" }
  | { kind: "number"; min: number; max: number }
  | { kind: "choice"; options: Option[] }
);

export interface BuiltInSpec {
  type: string;
  label: string;
  what: string;
  /** The values of a new one. */
  start: Record<string, unknown>;
  members: Member[];
}

const options = (...values: string[]): Option[] =>
  values.map((value) => ({ value, label: words(value) }));
const when = (example: string): Member => ({
  name: "description", label: "When to use it", kind: "area", hint: `For the model, e.g. “${example}”.`,
});

export const BUILT_INS: readonly BuiltInSpec[] = [
  {
    type: "end_call", label: "End the call", what: "Hangs up.", start: {},
    members: [when("When the caller has said goodbye")],
  },
  {
    type: "call_transfer", label: "Transfer the call", what: "Transfers the caller to a number.",
    start: { phone_number: "", custom: false, warm_transfer: false },
    members: [
      { name: "phone_number", label: "Phone number", kind: "text", hint: "E.164, e.g. +14155550100, or a SIP URI." },
      { name: "timezone", label: "Time zone", kind: "text", hint: "Of the person called, for date and time in the announcement. Empty: the assistant’s." },
      when("When the caller asks for a person"),
      { name: "warm_transfer_message", label: "Announcement", kind: "area", hint: "Said to the person called, before a summary of the call." },
      { name: "custom", label: "The model may choose another number", kind: "flag" },
      { name: "warm_transfer", label: "Announce the caller first, and ask whether to take the call", kind: "flag" },
    ],
  },
  {
    type: "warm_call_transfer", label: "Transfer with a briefing",
    what: "Holds the caller, briefs a colleague, then connects the two.",
    start: { supervisor_phone: "", outbound_phone_id: null, description: "", caller_id_mode: "outbound_number", hold_music: "hold_music", hold_music_volume: 80 },
    members: [
      { name: "supervisor_phone", label: "Colleague’s number", kind: "text", hint: "E.164 or a SIP URI." },
      { name: "outbound_phone_id", label: "Call from", kind: "phone", hint: "A number of a SIP trunk." },
      when("When a manager is asked for"),
      { name: "caller_id_mode", label: "Number shown", kind: "choice", options: options("outbound_number", "customer_number", "custom") },
      { name: "custom_caller_id", label: "Custom number", kind: "text" },
      { name: "hold_music", label: "While holding", kind: "choice", options: options("hold_music", "none") },
      { name: "hold_music_volume", label: "Music volume", kind: "number", min: 0, max: 100, hint: "0 is silent, 100 is loudest, e.g. 80." },
      { name: "hold_message", label: "Said before holding", kind: "area" },
      { name: "summary_instructions", label: "How to summarise", kind: "area" },
      { name: "briefing_initial_message", label: "Said to the colleague first", kind: "area" },
      { name: "connected_message", label: "Said when connected", kind: "area" },
      { name: "custom_sip", label: "Dial it exactly as written (a SIP URI, an extension)", kind: "flag" },
    ],
  },
  {
    type: "assistant_transfer", label: "Hand over to an assistant",
    what: "Another of your assistants takes over.",
    start: { assistant_id: null, speak_transfer_greeting: true },
    members: [
      { name: "assistant_id", label: "Assistant", kind: "assistant" },
      when("When the question is about an invoice"),
      { name: "message_before_transfer", label: "Said before the transfer", kind: "area" },
      { name: "speak_transfer_greeting", label: "The other one starts with its greeting", kind: "flag" },
    ],
  },
  {
    type: "calendar", label: "Calendar", what: "Finds free times and books appointments in Parley’s own calendar.",
    start: {}, members: [when("When the caller wants an appointment")],
  },
  {
    type: "calendar_integration", label: "Cal.com", what: "Finds free times and books appointments at Cal.com.",
    start: { calcom_api_key: "", calcom_event_slug: "", calcom_endpoint: "us" },
    members: [
      { name: "calcom_api_key", label: "API key", kind: "secret" },
      { name: "calcom_event_slug", label: "Event", kind: "text", hint: "The event’s slug." },
      { name: "calcom_team_slug", label: "Team", kind: "text", hint: "Empty: none." },
      { name: "calcom_endpoint", label: "Server", kind: "choice", options: options("us", "eu", "custom") },
      { name: "calcom_custom_endpoint", label: "Custom server", kind: "text" },
      when("When the caller wants an appointment"),
      { name: "calcom_booking_fields", label: "Event questions", kind: "booking" },
    ],
  },
  {
    type: "dtmf_input", label: "Press keys", what: "Sends tones, as menus of other companies ask for.",
    start: {}, members: [when("When a menu asks for a key")],
  },
  {
    type: "collect_keypad", label: "Collect keypad input", what: "Reads what callers type on their keypad.",
    start: { timeout: 5, stop_key: "#" },
    members: [
      { name: "timeout", label: "Wait for a key (s)", kind: "number", min: 1, max: 30, hint: "1 to 30 seconds after the last key, e.g. 5." },
      { name: "stop_key", label: "Key that ends it", kind: "choice", options: [{ value: "#", label: "#" }, { value: "*", label: "*" }] },
    ],
  },
];

for (const { type, label, what, members } of BUILT_INS) {
  tell(`tools.${type}`, { label, hint: what });
  for (const { name, label: called, hint } of members) {
    tell(`tools.${name}`, { label: called, ...(hint ? { hint } : {}) });
  }
}
