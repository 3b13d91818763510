// The wire of SIP trunks: list, read, create, change. They are deleted as the numbers they are, in
// routes.ts. What the contract does not have is `sip_trunk_type`, `sip_port` and `sip_transport` in
// answers, and the last two in requests; all three are always there, so that clients see one shape.
import { Type, type Static } from "@sinclair/typebox";
import { isSupportedCountry } from "libphonenumber-js/min";
import type { FieldErrors } from "../core/faults.ts";
import { LIMITS } from "../core/limits.ts";
import { collectingErrors, errorsOf, Nullable, prepared, withMessage } from "../core/schema.ts";
import { isoMicros } from "../core/system.ts";
import { json } from "../http/exchange.ts";
import { keyRoute, type Route } from "../http/route.ts";
import { CALLING_FORMATS } from "./dialled.ts";
import {
  INBOUND_AUTHS, isAllowableNetwork, readSipAddress, TRANSPORTS, TRUNK_TYPES,
} from "./sip-rules.ts";
import type { SipTrunkFields, SipTrunkRecord, SipTrunks } from "./sip-trunks.ts";
import { ErrorSchema, InvalidSchema, NICKNAME_CHARS_MAX } from "./wire.ts";

const PASSWORD_CHARS_MAX = 256;
const FORMATS_MESSAGE = "SIP calling format must be one of: +e164, e164, national.";

const oneOf = <T extends string>(values: readonly T[], message: string) =>
  Type.Union(values.map((value) => Type.Literal(value)), withMessage(message));
const trimmed = (value: unknown): unknown => (typeof value === "string" ? value.trim() : value);
/** Some clients send extensions as numbers. */
const asText = prepared((value) => trimmed(typeof value === "number" ? String(value) : value));
/** What is no address stays as it is and fails the pattern of no address. */
const asAddress = prepared((value) =>
  typeof value === "string" ? readSipAddress(value) ?? `/${value}` : value);
const asCountry = prepared((value) => {
  const code = typeof value === "string" ? value.trim().toUpperCase() : value;
  return typeof code === "string" && !isSupportedCountry(code) ? `/${code}` : code;
});
const asNetwork = prepared((value) => {
  const text = trimmed(value);
  return typeof text === "string" && !isAllowableNetwork(text) ? `/${text}` : text;
});

const FIELDS = {
  sip_trunk_type: oneOf(TRUNK_TYPES, "The sip trunk type must be extension or number."),
  phone_number: Type.String({
    maxLength: 32,
    ...asText,
    description: "Of an extension 1 to 15 characters; of a number E.164",
  }),
  sip_username: Type.String({
    minLength: 3,
    maxLength: 128,
    pattern: "^[^\\s\\x00-\\x1f\\x7f\"<>\\\\]+$",
    ...asText,
    ...withMessage("The sip username must be 3 to 128 characters without spaces or quotes."),
  }),
  sip_password: Type.String({
    minLength: 3,
    maxLength: PASSWORD_CHARS_MAX,
    pattern: "^[^\\x00-\\x1f\\x7f]+$",
    ...withMessage(`The sip password must be 3 to ${PASSWORD_CHARS_MAX} characters.`),
  }),
  sip_address: Type.String({
    pattern: "^[^/]",
    description: "Host name (also one with SRV records) or IP address, without a port",
    ...asAddress,
    ...withMessage("SIP server address must be a host name or an IP address, without a port."),
  }),
  sip_calling_format: oneOf(CALLING_FORMATS, FORMATS_MESSAGE),
  inbound_authorization_type: oneOf(
    INBOUND_AUTHS, "The inbound authorization type must be auth or ip."),
  country_code: Type.String({
    pattern: "^[A-Z]{2}$",
    ...asCountry,
    ...withMessage("The country code must be the two letters of a country."),
  }),
};
const OPTIONAL_FIELDS = {
  nickname: Type.Optional(Nullable(Type.String({
    maxLength: NICKNAME_CHARS_MAX,
    ...withMessage(`The nickname must not exceed ${NICKNAME_CHARS_MAX} characters.`),
  }))),
  allowed_inbound_ips: Type.Optional(Nullable(Type.Array(
    Type.String({
      pattern: "^[^/]",
      ...asNetwork,
      ...withMessage("Each allowed inbound ip must be an IP address, or a network such as 192.0.2.0/24."),
    }),
    {
      maxItems: LIMITS.sipNetworksMax,
      description: "Addresses or networks; needed when the authorization type is ip",
    }))),
  outbound_proxy: Type.Optional(Type.Boolean({
    description: "The address is a proxy: URIs keep the domain of a username like user@domain",
  })),
  require_srtp: Type.Optional(Type.Boolean({
    description: "Refuse calls whose sound is not encrypted (488), and place none; use it with the transport tls, which keeps the keys secret",
    examples: [true],
  })),
  sip_port: Type.Optional(Nullable(Type.Integer({
    minimum: 1, maximum: 65_535,
    description: "Null: what DNS says (SRV), else 5060, with tls 5061",
  }))),
  sip_transport: Type.Optional(oneOf(TRANSPORTS, "The sip transport must be udp, tcp or tls.")),
};
export const CreateBody = Type.Object({ ...FIELDS, ...OPTIONAL_FIELDS }, collectingErrors);
const UpdateBody = Type.Object(
  { ...Type.Partial(Type.Object(FIELDS)).properties, ...OPTIONAL_FIELDS }, collectingErrors);
type Body = Static<typeof UpdateBody>;

const LISTED = {
  id: Type.Integer(),
  phone_number: Type.String(),
  nickname: Nullable(Type.String()),
  sip_trunk_type: Type.String({ description: TRUNK_TYPES.join(", ") }),
  sip_username: Type.String(),
  sip_address: Type.String(),
  sip_port: Nullable(Type.Integer()),
  sip_transport: Type.String({ description: TRANSPORTS.join(", ") }),
  sip_calling_format: Type.String({ description: CALLING_FORMATS.join(", ") }),
  inbound_authorization_type: Type.String({ description: INBOUND_AUTHS.join(", ") }),
  allowed_inbound_ips: Nullable(Type.Array(Type.String())),
  outbound_proxy: Type.Boolean(),
  require_srtp: Type.Boolean({
    description: "Calls whose sound is not encrypted are refused", examples: [false],
  }),
  country_code: Type.String(),
  created_at: Type.String(),
  updated_at: Type.String(),
};
const ListedSchema = Type.Object(LISTED);
const TrunkSchema = Type.Object({
  ...LISTED, inbound_trunk_id: Type.String(), outbound_trunk_id: Type.String(),
});
const ChangedSchema = Type.Object({ message: Type.String(), data: TrunkSchema });

const listed = (trunk: SipTrunkRecord) => ({
  id: trunk.id,
  phone_number: trunk.phoneNumber,
  nickname: trunk.nickname,
  sip_trunk_type: trunk.trunkType,
  sip_username: trunk.username,
  sip_address: trunk.address,
  sip_port: trunk.port,
  sip_transport: trunk.transport,
  sip_calling_format: trunk.callingFormat,
  inbound_authorization_type: trunk.inboundAuth,
  allowed_inbound_ips: trunk.allowedNetworks,
  outbound_proxy: trunk.outboundProxy,
  require_srtp: trunk.requireSrtp,
  country_code: trunk.countryCode,
  created_at: isoMicros(trunk.createdAt),
  updated_at: isoMicros(trunk.updatedAt),
});
const wired = (trunk: SipTrunkRecord) => ({
  ...listed(trunk),
  inbound_trunk_id: trunk.inboundTrunkId,
  outbound_trunk_id: trunk.outboundTrunkId,
});

/** Of a missing field the contract's own words, where it has any. */
const MISSING: Record<string, string> = {
  sip_address: "SIP server address is required.",
  sip_calling_format: FORMATS_MESSAGE,
};

function schemaErrors(body: object): FieldErrors {
  return Object.fromEntries(Object.entries(errorsOf(body)).map(([field, messages]) => {
    const isMissing = messages[0]?.endsWith(" field is required.");
    const words = isMissing ? MISSING[field] : undefined;
    return [field, words === undefined ? messages : [words]];
  }));
}

/** What was sent; absent members are absent. */
function fieldsFrom(body: Body): Partial<SipTrunkFields> {
  const fields: { [Name in keyof SipTrunkFields]: SipTrunkFields[Name] | undefined } = {
    trunkType: body.sip_trunk_type,
    phoneNumber: body.phone_number,
    nickname: body.nickname === "" ? null : body.nickname,
    countryCode: body.country_code,
    username: body.sip_username,
    password: body.sip_password,
    address: body.sip_address,
    port: body.sip_port,
    transport: body.sip_transport,
    callingFormat: body.sip_calling_format,
    inboundAuth: body.inbound_authorization_type,
    allowedNetworks: body.allowed_inbound_ips,
    outboundProxy: body.outbound_proxy,
    requireSrtp: body.require_srtp,
  };
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<SipTrunkFields>;
}

const DEFAULTS = {
  nickname: null, port: null, transport: "udp", allowedNetworks: null, outboundProxy: false,
  requireSrtp: false,
} as const satisfies Partial<SipTrunkFields>;

const COMMON = {
  tag: "Phone numbers", errorShape: "error", notFound: "SIP trunk not found.",
} as const;
const missing = { 404: { description: "No such trunk", schema: ErrorSchema } };
const refusals = {
  409: { description: "The account has it already", schema: ErrorSchema },
  422: { description: "Fields at fault", schema: InvalidSchema },
};

export function sipTrunkRoutes(trunks: SipTrunks): Route[] {
  return [...readRoutes(trunks), ...writeRoutes(trunks)];
}

function readRoutes(trunks: SipTrunks): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/phone-numbers/sip-trunks",
      summary: "List the SIP trunks",
      responses: {
        200: { description: "All", schema: Type.Object({ data: Type.Array(ListedSchema) }) },
      },
      handle: ({ caller }) => json(200, { data: trunks.list(caller.accountId).map(listed) }),
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/phone-numbers/sip-trunks/{id}",
      summary: "One SIP trunk",
      responses: {
        200: { description: "The trunk", schema: Type.Object({ data: TrunkSchema }) }, ...missing,
      },
      handle: ({ caller, id }) => json(200, { data: wired(trunks.get(caller.accountId, id)) }),
    }),
  ];
}

function writeRoutes(trunks: SipTrunks): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/phone-numbers/sip-trunks",
      summary: "Connect a number of your own telephone system; its password is never shown again",
      body: CreateBody,
      responses: { 201: { description: "Created", schema: ChangedSchema }, ...refusals },
      handle: async ({ caller, body }) => {
        const fields = { ...DEFAULTS, ...fieldsFrom(body) };
        const trunk = await trunks.create(caller.accountId, fields, schemaErrors(body));
        return json(201, { message: "SIP trunk created successfully.", data: wired(trunk) });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "PUT",
      path: "/user/phone-numbers/sip-trunks/{id}",
      summary: "Change a SIP trunk; what is absent stays",
      body: UpdateBody,
      responses: {
        200: { description: "Changed", schema: ChangedSchema }, ...missing, ...refusals,
      },
      handle: async ({ caller, id, body }) => {
        const changes = fieldsFrom(body);
        const trunk = await trunks.update(caller.accountId, id, changes, schemaErrors(body));
        return json(200, { message: "SIP trunk updated successfully.", data: wired(trunk) });
      },
    }),
  ];
}
