// The tools every assistant can be given without configuring an endpoint. On the way in they are
// flat objects told apart by `type`; the wire shows them as `{type, data}`, which is accepted too.
import { Type, type Static, type TProperties } from "@sinclair/typebox";
import { HttpUrl, Nullable, prepared, TimeZone, withMessage } from "../core/schema.ts";
import { MASK } from "../core/secrets.ts";

const DESCRIPTION_CHARS_MAX = 1000;
const TEXT_CHARS_MAX = 1000;
const NAME_CHARS_MAX = 255;
const BOOKING_FIELDS_MAX = 50;
const OPTIONS_MAX = 100;
const ID_MAX = Number.MAX_SAFE_INTEGER;

const Description = Type.Optional(Nullable(Type.String({ maxLength: DESCRIPTION_CHARS_MAX })));
const Text = (text: string) =>
  Type.Optional(Type.String({ maxLength: TEXT_CHARS_MAX, default: text }));
const Flag = (value: boolean) => Type.Optional(Type.Boolean({ default: value }));
/** E.164, or a SIP URI where the carrier is one. */
const DIALLED = "^(\\+[1-9][0-9]{4,14}|sips?:[^\\s@]+@[^\\s@]+)$";
const Dialled = Type.String({
  maxLength: NAME_CHARS_MAX,
  pattern: DIALLED,
  ...withMessage("The phone number must be in E.164 format (e.g. +1234567890) or a SIP URI."),
});

const choice = <T extends string>(values: readonly [T, ...T[]]) =>
  Type.Optional(Type.Union(values.map((value) => Type.Literal(value)), { default: values[0] }));

/** Reads `{type, data: {...}}` as the flat object it stands for. */
function flat(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("data" in value)) return value;
  const { data, type } = value as { data: unknown; type?: unknown };
  return typeof data === "object" && data !== null ? { ...data, type } : value;
}

const tool = <Name extends string, Fields extends TProperties>(type: Name, fields: Fields) =>
  Type.Object({ type: Type.Literal(type), ...fields });

const CallTransfer = tool("call_transfer", {
  phone_number: Dialled,
  description: Description,
  custom: Flag(false),
  timezone: Type.Optional(Nullable(TimeZone("The timezone must be a valid time zone."))),
  warm_transfer: Flag(false),
  warm_transfer_message: Type.Optional(Nullable(Type.String({ maxLength: TEXT_CHARS_MAX }))),
});

const WarmCallTransfer = tool("warm_call_transfer", {
  supervisor_phone: Dialled,
  // Null in what is stored once the number is gone: everything else of the tool is kept.
  outbound_phone_id: Nullable(Type.Integer({
    minimum: 1, maximum: ID_MAX, examples: [7],
    description: "Number the colleague is called from; null in an answer: the number is gone",
  })),
  description: Type.String({ pattern: "\\S", maxLength: DESCRIPTION_CHARS_MAX }),
  custom_sip: Flag(false),
  caller_id_mode: choice(["outbound_number", "customer_number", "custom"]),
  custom_caller_id: Type.Optional(Nullable(Type.String({ maxLength: NAME_CHARS_MAX }))),
  hold_music: choice(["hold_music", "none"]),
  hold_music_volume: Type.Optional(Type.Integer({ minimum: 0, maximum: 100, default: 80 })),
  hold_message: Text("Please hold while I connect you with a colleague."),
  summary_instructions: Text(
    "Summarise in a few sentences who is calling, what they want and what was agreed so far."),
  briefing_initial_message: Text("Hello, I have a caller on the line who asks for a person."),
  connected_message: Text("You are now connected."),
});

const BookingField = Type.Object({
  slug: Type.String({ pattern: "\\S", maxLength: NAME_CHARS_MAX }),
  type: Type.String({ pattern: "\\S", maxLength: NAME_CHARS_MAX }),
  label: Type.String({ pattern: "\\S", maxLength: NAME_CHARS_MAX }),
  required: Flag(false),
  options: Type.Optional(
    Nullable(Type.Array(Type.String({ maxLength: NAME_CHARS_MAX }), { maxItems: OPTIONS_MAX }))),
});

const CalendarIntegration = tool("calendar_integration", {
  calcom_api_key: Type.String({
    pattern: "\\S", maxLength: NAME_CHARS_MAX, examples: ["cal_live_8f2c"],
    description: `Key of Cal.com's API. Stored sealed and read back as ${MASK} by everybody; `
      + `${MASK} keeps the key that is there.`,
  }),
  calcom_event_slug: Type.String({ pattern: "\\S", maxLength: NAME_CHARS_MAX }),
  calcom_team_slug: Type.Optional(Nullable(Type.String({ maxLength: NAME_CHARS_MAX }))),
  calcom_endpoint: choice(["us", "eu", "custom"]),
  calcom_custom_endpoint: Type.Optional(
    Nullable(HttpUrl("The calcom custom endpoint must be a valid URL."))),
  calcom_booking_fields: Type.Optional(
    Type.Array(BookingField, { maxItems: BOOKING_FIELDS_MAX, default: [] })),
  description: Description,
});

const AssistantTransfer = tool("assistant_transfer", {
  assistant_id: Type.Integer({ minimum: 1, maximum: ID_MAX }),
  description: Type.Optional(Nullable(Type.String({ maxLength: 500 }))),
  message_before_transfer: Type.Optional(Nullable(Type.String({ maxLength: 500 }))),
  speak_transfer_greeting: Flag(true),
});

export const BuiltInTool = Type.Union(
  [
    CallTransfer,
    WarmCallTransfer,
    tool("end_call", { description: Description }),
    tool("dtmf_input", { description: Description }),
    tool("collect_keypad", {
      timeout: Type.Optional(Type.Integer({ minimum: 1, maximum: 30, default: 5 })),
      stop_key: choice(["#", "*"]),
    }),
    CalendarIntegration,
    // Parley's own calendar: check_availability and book_appointment.
    tool("calendar", { description: Description }),
    AssistantTransfer,
  ],
  {
    ...prepared(flat),
    ...withMessage(
      "The tool type must be one of call_transfer, warm_call_transfer, end_call, dtmf_input, "
      + "collect_keypad, calendar_integration, calendar, assistant_transfer."),
  },
);
export type BuiltInTool = Static<typeof BuiltInTool>;

/** Rules within one tool that a schema cannot say; messages by member. */
export function toolErrors(item: BuiltInTool): Record<string, string> {
  switch (item.type) {
    case "warm_call_transfer":
      if (item.outbound_phone_id === null) {
        return { outbound_phone_id: "The outbound phone id field is required." };
      }
      return item.caller_id_mode === "custom" && !item.custom_caller_id
        ? { custom_caller_id: "The custom caller id field is required when caller id mode is custom." }
        : {};
    case "calendar_integration":
      return item.calcom_endpoint === "custom" && !item.calcom_custom_endpoint
        ? {
            calcom_custom_endpoint:
              "The calcom custom endpoint field is required when calcom endpoint is custom.",
          }
        : {};
    default:
      return {};
  }
}
