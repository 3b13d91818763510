// The wire of leads: create, list, read, change, delete. The import is in import-route.ts, the
// do-not-call list in block-routes.ts.
import { Type } from "@sinclair/typebox";
import { Fault, type FieldErrors } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, collectingErrors, errorsOf, OneOf, withMessage } from "#core/schema.ts";
import { IdOf, MessageSchema, savedOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import {
  dayQuery, dayRange, pageEnvelope, pageQuery, PageSchema, PER_PAGE_DEFAULT,
} from "#http/pagination.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { blockRoutes } from "./block-routes.ts";
import type { ImportFiles } from "./import-file.ts";
import { importRoute } from "./import-route.ts";
import { previewRoute } from "./preview-route.ts";
import {
  LEAD_OUTCOMES, LEAD_STATUSES, SETTABLE_STATUSES, type LeadChanges, type LeadFilter, type Leads,
  type NewContact,
} from "./leads.ts";
import { readPhoneNumber } from "./phone.ts";
import { LeadSchema, PhoneText, readVariables, VariablesField, wireLead } from "./wire.ts";

const INVALID_NUMBER = "Invalid phone number";

const Contact = Type.Object({
  phone_number: PhoneText, variables: Type.Optional(VariablesField),
});
const CreateBody = Type.Object({
  ...Contact.properties,
  campaign_id: Type.Integer(about("The `id` of the campaign that should call the lead.", 1)),
  allow_dupplicate: Type.Optional(Type.Boolean({
    default: false, ...about("Whether to add the number even if the campaign already has it."),
  })),
  secondary_contacts: Type.Optional(Type.Array(Contact, {
    maxItems: LIMITS.secondaryContactsMax,
    ...about("Other numbers of the same person, called in turn until the person is reached."),
  })),
});
const UpdateBody = Type.Object({
  campaign_id: Type.Optional(Type.Integer({
    ...about("The campaign to move it to.",
      1), ...withMessage("The selected campaign does not exist"),
  })),
  phone_number: Type.Optional(PhoneText),
  status: Type.Optional(OneOf(SETTABLE_STATUSES, {
    ...about("`created` puts it back in the queue; the other states take it out."),
    ...withMessage("This status is assigned automatically and cannot be set manually"),
  })),
  variables: Type.Optional(VariablesField),
}, collectingErrors);
const ListQuery = Type.Object({
  ...pageQuery(),
  status: Type.Optional(OneOf(LEAD_STATUSES, about("Only leads in this state."))),
  campaign_id: Type.Optional(Type.Integer(about("Only leads of this campaign.", 1))),
  phone_number: Type.Optional(Type.String({
    maxLength: 64, ...about("Only leads whose number contains this.", "15112345"),
  })),
  last_outcome: Type.Optional(OneOf(LEAD_OUTCOMES, about("Only leads whose last call ended this "
    + "way."))),
  due: Type.Optional(Type.Boolean(about("Only leads in the queue that are due.", true))),
  order: Type.Optional(OneOf(["newest", "active"], {
    default: "newest",
    ...about("`active`, for a campaign: leads being called first, then by state."),
  })),
  ...dayQuery,
});
const SavedSchema = savedOf(LeadSchema);

const COMMON = { tag: "Leads", errorShape: "message", notFound: "Lead not found" } as const;
const missing = { 404: { description: "No such lead or campaign" } };
const busy = { 409: { description: "The lead is being called right now" } };

interface LeadRoutesOptions {
  leads: Leads;
  files: ImportFiles;
  /** The folder for uploads in progress. */
  uploadsDir: string;
  /** True: the server is stopping, so an unfinished import is refused. */
  draining(): boolean;
}

export function leadRoutes(options: LeadRoutesOptions): Route[] {
  const { leads } = options;
  return [
    createRoute(leads), listRoute(leads), ...itemRoutes(leads),
    importRoute(options), previewRoute(options), ...blockRoutes(leads),
  ];
}

function contactFrom(
  given: { phone_number: string; variables?: unknown }, place: string, errors: FieldErrors,
): NewContact {
  const number = readPhoneNumber(given.phone_number);
  if (!number) errors[`${place}phone_number`] = [INVALID_NUMBER];
  const variables = readVariables(given.variables);
  if (typeof variables === "string") errors[`${place}variables`] = [variables];
  return {
    phoneNumber: number?.phoneNumber ?? "",
    timeZone: number?.timeZone ?? "",
    variables: typeof variables === "string" ? {} : variables,
  };
}

function createRoute(leads: Leads): Route {
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/lead",
    aliases: ["/user/leads"],
    summary: "Add a lead to a campaign",
    isRepeatable: true,
    body: CreateBody,
    responses: {
      200: { description: "Added", schema: SavedSchema }, ...missing,
    },
    handle: async ({ caller, body }) => {
      await leads.assertCampaign(caller.accountId, body.campaign_id);
      const errors: FieldErrors = {};
      const main = contactFrom(body, "", errors);
      const contacts = (body.secondary_contacts ?? []).map((contact, index) =>
        contactFrom(contact, `secondary_contacts.${index}.`, errors));
      const first = Object.values(errors)[0]?.[0];
      if (first !== undefined) throw new Fault(422, first, { errors });
      const lead = await leads.create(
        caller.accountId, body.campaign_id, { ...main, contacts }, body.allow_dupplicate ?? false);
      return json(200, { message: "Lead created successfully", data: wireLead(lead) });
    },
  });
}

function listRoute(leads: Leads): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/leads",
    summary: "List leads in pages, newest first",
    query: ListQuery,
    responses: { 200: { description: "A page", schema: PageSchema(LeadSchema) } },
    handle: async ({ caller, query, http, baseUrl }) => {
      const { page = 1, per_page: perPage = PER_PAGE_DEFAULT } = query;
      const filter: LeadFilter = {
        ...(query.status === undefined ? {} : { status: query.status }),
        ...(query.campaign_id === undefined ? {} : { campaignId: query.campaign_id }),
        // An unescaped plus sign arrives as a space.
        ...(query.phone_number === undefined
          ? {}
          : { phoneNumber: query.phone_number.replace(/^ /, "+") }),
        ...(query.last_outcome === undefined ? {} : { outcome: query.last_outcome }),
        ...(query.due === true ? { isDueAt: leads.now() } : {}),
        ...(query.order === "active" ? { isByActivity: true } : {}),
        ...dayRange(query),
      };
      const { items, total } = await leads.page(caller.accountId, filter, { page, perPage });
      const path = `${baseUrl}/user/leads`;
      return json(200, pageEnvelope(
        { items: items.map(wireLead), total }, { path, query: http.query, page, perPage }));
    },
  });
}

/** Throws Fault 422 with the contract's wording for each field. */
function changesFrom(body: object & {
  campaign_id?: number; phone_number?: string; status?: LeadChanges["status"]; variables?: unknown;
}): LeadChanges {
  const unknown = Object.keys(body).filter((name) => !Object.hasOwn(UpdateBody.properties, name));
  if (unknown.length > 0) throw new Fault(422, `Invalid fields: ${unknown.join(", ")}`);
  const errors = { ...errorsOf(body) };
  const { campaign_id: campaignId, phone_number: text, status } = body;
  const variables = readVariables(body.variables);
  if (typeof variables === "string") errors.variables = [variables];
  if (Object.keys(errors).length > 0) throw new Fault(422, "Validation failed", { errors });
  const number = text === undefined ? undefined : readPhoneNumber(text);
  if (number === null) throw new Fault(422, INVALID_NUMBER);
  return {
    ...(campaignId === undefined ? {} : { campaignId }),
    ...(number === undefined ? {} : { number }),
    ...(status === undefined ? {} : { status }),
    ...(typeof variables === "string" ? {} : { variables }),
  };
}

function itemRoutes(leads: Leads): Route[] {
  const params = { id: IdOf("lead", "GET /user/leads") };
  const item = { ...COMMON, path: "/user/leads/{id}", params };
  return [
    keyRoute({
      ...item,
      method: "GET",
      summary: "Read a lead",
      responses: { 200: { description: "The lead", schema: LeadSchema }, ...missing },
      handle: async ({ caller, id }) => json(200, wireLead(await leads.get(caller.accountId, id))),
    }),
    ...(["PUT", "PATCH"] as const).map((method) =>
      keyRoute({
        ...item,
        method,
        aliases: ["/leads/{id}"],
        summary: "Update a lead",
        description: "Merges variables with the existing ones. Unknown fields are refused.",
        body: UpdateBody,
        responses: {
          200: { description: "Changed", schema: SavedSchema }, ...missing, ...busy,
        },
        handle: async ({ caller, id, body }) => {
          await leads.get(caller.accountId, id);
          await leads.update(caller.accountId, id, changesFrom(body));
          const data = wireLead(await leads.get(caller.accountId, id));
          return json(200, { message: "Lead updated successfully", data });
        },
      })),
    keyRoute({
      ...item,
      method: "DELETE",
      summary: "Delete a lead with its secondary contacts",
      responses: { 200: { description: "Deleted", schema: MessageSchema }, ...missing, ...busy },
      handle: async ({ caller, id }) => {
        await leads.remove(caller.accountId, id);
        return json(200, { message: "Lead deleted successfully" });
      },
    }),
  ];
}
