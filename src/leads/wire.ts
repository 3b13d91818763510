// The wire of leads: records as the contract shows them, and what of a body its schema cannot say.
import { Type, type Static } from "@sinclair/typebox";
import { Nullable, prepared } from "../core/schema.ts";
import { isoMicros, plainSeconds } from "../core/system.ts";
import { NO_MAP, readVariables as readAny } from "../core/variables.ts";
import type { BlockedNumber, Lead, Variables, WholeLead } from "./leads.ts";

export const MessageSchema = Type.Object({ message: Type.String() });
export const InvalidSchema = Type.Object({
  message: Type.String(),
  errors: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
});
export const literals = <T extends string>(values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)));
/** Some clients send numbers of telephones as numbers. */
export const PhoneText = Type.String({
  maxLength: 64, ...prepared((value) => (typeof value === "number" ? String(value) : value)),
});

const VariablesSchema = Type.Record(Type.String(), Type.String());
const ContactSchema = Type.Object({
  id: Type.Integer(),
  phone_number: Type.String(),
  variables: VariablesSchema,
  status: Type.String(),
  call_tries: Type.Integer(),
  next_try_at: Nullable(Type.String()),
  last_call_id: Nullable(Type.Integer()),
  created_at: Type.String(),
  updated_at: Type.String(),
});
export const LeadSchema = Type.Object({
  ...ContactSchema.properties,
  campaign_id: Type.Integer(),
  campaign: Type.Object({ id: Type.Integer(), name: Type.String() }),
  secondary_contacts: Type.Array(ContactSchema),
});
export const BlockedSchema = Type.Object({
  phone_number: Type.String(),
  reason: Nullable(Type.String()),
  created_at: Type.String(),
});

const wireContact = (lead: Lead): Static<typeof ContactSchema> => ({
  id: lead.id,
  phone_number: lead.phoneNumber,
  variables: lead.variables,
  status: lead.status,
  call_tries: lead.callTries,
  next_try_at: lead.nextTryAt === null ? null : plainSeconds(lead.nextTryAt),
  last_call_id: lead.callId,
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

/** A text: what is wrong, of what is no map in the contract's words. */
export function readVariables(value: unknown): Variables | string {
  const read = readAny(value);
  if (read.kind === "read") return read.variables;
  return read.message === NO_MAP ? "Variables must be an array" : read.message;
}
