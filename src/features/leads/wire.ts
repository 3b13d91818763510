// The wire of leads: records in the contract's JSON, and checks of bodies beyond their schema.
import { Type, type Static } from "@sinclair/typebox";
import { about, named, Nullable, prepared } from "#core/schema.ts";
import { isoMicros, plainSeconds } from "#core/system.ts";
import { NO_MAP, readVariables as readAny } from "#core/variables.ts";
import { Moment, PLAIN_TIMES, PlainMoment } from "#http/answers.ts";
import {
  LEAD_OUTCOMES, type BlockedNumber, type Lead, type Variables, type WholeLead,
} from "./leads.ts";

/** Some clients send telephone numbers as JSON numbers. */
export const PhoneText = Type.String({
  maxLength: 64,
  ...about("The telephone number, including the country code.", "+4915112345678"),
  ...prepared((value) => (typeof value === "number" ? String(value) : value)),
});
export const VariablesField = Type.Unknown(about(
  "Values for `{{name}}` in the assistant's prompt and messages, by name.", { first_name: "Ada" }));

const VariablesSchema = Type.Record(Type.String(), Type.String(), about(
  "Values for `{{name}}` in the assistant's prompt and messages, by name.", { first_name: "Ada" }));
const ContactSchema = Type.Object({
  id: Type.Integer(about("The lead's number.", 7)),
  phone_number: Type.String(about("The number to call, in E.164.", "+4915112345678")),
  variables: VariablesSchema,
  status: Type.String(about(
    "The lead's status: created, in progress, reached, failed, or never to be called.", "created")),
  call_tries: Type.Integer(about("The number of calls made.", 0)),
  next_try_at: Nullable(PlainMoment("When it will be called again, in UTC; null if not "
    + "scheduled.")),
  last_call_id: Nullable(Type.Integer(about("Its latest call; null if none yet.", 12))),
  last_outcome: Nullable(Type.String(about(
    `How its last call ended: ${LEAD_OUTCOMES.join(", ")}; null: none is over.`, "no_answer"))),
  ...PLAIN_TIMES,
}, named("LeadContact", "A number of a lead."));
export const LeadSchema = Type.Object({
  ...ContactSchema.properties,
  campaign_id: Type.Integer(about("The campaign that calls it.", 1)),
  campaign: Type.Object({
    id: Type.Integer(about("The campaign's number.", 1)),
    name: Type.String(about("The campaign's name.", "Spring offer")),
  }, about("The campaign that calls it.")),
  secondary_contacts: Type.Array(ContactSchema, about(
    "Other numbers of the same person, called in turn until the person is reached.")),
}, named("Lead", "A person a campaign calls."));
export const BlockedSchema = Type.Object({
  phone_number: Type.String(about("The blocked number, in E.164.", "+4915112345678")),
  reason: Nullable(Type.String(about("Your reason; null if none.", "Asked us not to"))),
  created_at: Moment("When it was blocked, in UTC."),
}, named("BlockedNumber", "A number that neither campaigns nor calls of the account may ring."));

const wireContact = (lead: Lead): Static<typeof ContactSchema> => ({
  id: lead.id,
  phone_number: lead.phoneNumber,
  variables: lead.variables,
  status: lead.status,
  call_tries: lead.callTries,
  next_try_at: lead.nextTryAt === null ? null : plainSeconds(lead.nextTryAt),
  last_call_id: lead.callId,
  last_outcome: lead.outcome,
  created_at: plainSeconds(lead.createdAt),
  updated_at: plainSeconds(lead.updatedAt),
});

export const wireLead = (lead: WholeLead): Static<typeof LeadSchema> => ({
  ...wireContact(lead),
  campaign_id: lead.campaignId,
  campaign: { id: lead.campaignId, name: lead.campaignName },
  secondary_contacts: lead.contacts.map(wireContact),
});

export const wireBlocked = (blocked: BlockedNumber): Static<typeof BlockedSchema> => ({
  phone_number: blocked.phoneNumber,
  reason: blocked.reason,
  created_at: isoMicros(blocked.createdAt),
});

/** The variables, or as text what is wrong; anything but a map gets the contract's words. */
export function readVariables(value: unknown): Variables | string {
  const read = readAny(value);
  if (read.kind === "read") return read.variables;
  return read.message === NO_MAP ? "Variables must be an array" : read.message;
}
