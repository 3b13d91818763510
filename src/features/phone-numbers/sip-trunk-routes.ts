// The wire of SIP trunks: list, read, create, change. They are deleted as numbers, in routes.ts.
// The contract lacks `sip_trunk_type`, `sip_port` and `sip_transport` in answers, and the last two
// in requests; answers always have all three, so that clients see one shape.
import { Type, type Static } from "@sinclair/typebox";
import type { FieldErrors } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import {
  about, collectingErrors, errorsOf, named, Nullable, OneOf, prepared, withMessage,
} from "#core/schema.ts";
import { isoMicros } from "#core/system.ts";
import { isCountry } from "#core/numbering-plans.ts";
import { dataOf, IdOf, listOf, savedOf, TIMES } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { SIP_CODECS } from "#providers/carriers/sip/trunks/trunk.ts";
import { CALLING_FORMATS } from "./dialled.ts";
import {
  INBOUND_AUTHS, isAllowableNetwork, readSipAddress, TRANSPORTS, TRUNK_TYPES,
} from "./sip-rules.ts";
import type { SipTrunkFields, SipTrunkRecord, SipTrunks } from "./sip-trunks.ts";
import { NICKNAME_CHARS_MAX } from "./wire.ts";

const PASSWORD_CHARS_MAX = 256;
const FORMATS_MESSAGE = "SIP calling format must be one of: +e164, e164, national.";

const Choice = <T extends string>(values: readonly T[], message: string, description: string) =>
  OneOf(values, { ...about(description), ...withMessage(message) });
const trimmed = (value: unknown): unknown => (typeof value === "string" ? value.trim() : value);
/** Some clients send extensions as JSON numbers. */
const asText = prepared((value) => trimmed(typeof value === "number" ? String(value) : value));
/** Anything but an address gets a leading slash, so that it fails the schema's pattern. */
const asAddress = prepared((value) =>
  typeof value === "string" ? readSipAddress(value) ?? `/${value}` : value);
const asCountry = prepared((value) => {
  const code = typeof value === "string" ? value.trim().toUpperCase() : value;
  return typeof code === "string" && !isCountry(code) ? `/${code}` : code;
});
const asNetwork = prepared((value) => {
  const text = trimmed(value);
  return typeof text === "string" && !isAllowableNetwork(text) ? `/${text}` : text;
});

const FIELDS = {
  sip_trunk_type: Choice(
    TRUNK_TYPES, "The sip trunk type must be extension or number.",
    "An extension of a telephone system, or a number of a carrier."),
  phone_number: Type.String({
    maxLength: 32,
    ...asText,
    ...about("The number in E.164; an extension: 1 to 15 characters.", "+4930123456"),
  }),
  sip_username: Type.String({
    minLength: 3,
    maxLength: 128,
    ...about("The user name for registration.", "parley"),
    pattern: "^[^\\s\\x00-\\x1f\\x7f\"<>\\\\]+$",
    ...asText,
    ...withMessage("The sip username must be 3 to 128 characters without spaces or quotes."),
  }),
  sip_password: Type.String({
    minLength: 3,
    maxLength: PASSWORD_CHARS_MAX,
    ...about("The password. Encrypted at rest and never shown again.", "correct-horse-battery"),
    pattern: "^[^\\x00-\\x1f\\x7f]+$",
    ...withMessage(`The sip password must be 3 to ${PASSWORD_CHARS_MAX} characters.`),
  }),
  sip_address: Type.String({
    pattern: "^[^/]",
    ...about(
      "Host name (also one with SRV records) or IP address, without a port.", "sip.example.com"),
    ...asAddress,
    ...withMessage("SIP server address must be a host name or an IP address, without a port."),
  }),
  sip_calling_format: Choice(
    CALLING_FORMATS, FORMATS_MESSAGE, "The format in which it expects dialled numbers."),
  inbound_authorization_type: Choice(
    INBOUND_AUTHS, "The inbound authorization type must be auth or ip.",
    "How its calls authenticate: by user name and password (auth) or by IP address (ip)."),
  country_code: Type.String({
    pattern: "^[A-Z]{2}$",
    ...about("The two-letter code of the country its numbers are dialled in.", "DE"),
    ...asCountry,
    ...withMessage("The country code must be the two letters of a country."),
  }),
};
const OPTIONAL_FIELDS = {
  nickname: Type.Optional(Nullable(Type.String({
    maxLength: NICKNAME_CHARS_MAX,
    ...about("Your name for the number; null or empty for none.", "Office"),
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
      ...about(
        "IP addresses or networks its calls come from; required if the authorization type is ip, "
        + "otherwise null.",
        ["192.0.2.0/24"]),
    }))),
  outbound_proxy: Type.Optional(Type.Boolean(about(
    "Whether the address is a proxy: URIs keep the domain of a username like user@domain."))),
  require_srtp: Type.Optional(Type.Boolean({
    description: "Refuses calls without encrypted audio (488) and places none. Use it with the "
      + "transport tls, which keeps the keys secret",
    examples: [true],
  })),
  sip_codecs: Type.Optional(Type.Array(
    Choice(SIP_CODECS, `Each sip codec must be one of: ${SIP_CODECS.join(", ")}.`, "A codec."),
    {
      minItems: 1, maxItems: SIP_CODECS.length, uniqueItems: true,
      ...about("The codecs for its calls, in order of preference. Default on create: pcmu, pcma.",
        ["opus", "g722", "pcmu", "pcma"]),
      ...withMessage("The sip codecs must be one or more different codecs."),
    })),
  sip_port: Type.Optional(Nullable(Type.Integer({
    minimum: 1, maximum: 65_535,
    ...about("The port; null to use DNS (SRV), or else 5060, or 5061 with tls.", 5060),
  }))),
  sip_transport: Type.Optional(Choice(
    TRANSPORTS, "The sip transport must be udp, tcp or tls.",
    "The SIP transport. Default on create: udp.")),
};
export const CreateBody = Type.Object({ ...FIELDS, ...OPTIONAL_FIELDS }, collectingErrors);
const UpdateBody = Type.Object(
  { ...Type.Partial(Type.Object(FIELDS)).properties, ...OPTIONAL_FIELDS }, collectingErrors);
type Body = Static<typeof UpdateBody>;

const LISTED = {
  id: Type.Integer(about("The trunk's id, which is also the id of its phone number.", 1)),
  phone_number: Type.String(about("The number in E.164, or the extension.", "+4930123456")),
  nickname: Nullable(Type.String(about("Your name for it; null if none.", "Office"))),
  sip_trunk_type: Type.String(about(`One of ${TRUNK_TYPES.join(", ")}.`, "number")),
  sip_username: Type.String(about("The user name for registration.", "parley")),
  sip_address: Type.String(about("Host name or IP address, without a port.", "sip.example.com")),
  sip_port: Nullable(Type.Integer(about("The port; null to use DNS.", 5060))),
  sip_transport: Type.String(about(`One of ${TRANSPORTS.join(", ")}.`, "udp")),
  sip_calling_format: Type.String(about(`One of ${CALLING_FORMATS.join(", ")}.`, "+e164")),
  inbound_authorization_type: Type.String(about(`One of ${INBOUND_AUTHS.join(", ")}.`, "auth")),
  allowed_inbound_ips: Nullable(Type.Array(Type.String(), about(
    "IP addresses or networks its calls come from; null if none are set.", ["192.0.2.0/24"]))),
  outbound_proxy: Type.Boolean(about("Whether the address is a proxy.", false)),
  require_srtp: Type.Boolean({
    description: "Whether calls without encrypted audio are refused", examples: [false],
  }),
  sip_codecs: Type.Array(Type.String(), about(
    `The codecs of its calls, best first: of ${SIP_CODECS.join(", ")}.`, ["pcmu", "pcma"])),
  country_code: Type.String(about("The country its numbers are dialled in.", "DE")),
  ...TIMES,
};
const ListedSchema = Type.Object(LISTED, named("ListedTrunk", "A SIP trunk as lists show it."));
const TrunkSchema = Type.Object({
  ...LISTED,
  inbound_trunk_id: Type.String(about("Its name for incoming calls.", "ST_in_4f2a")),
  outbound_trunk_id: Type.String(about("Its name for outgoing calls.", "ST_out_4f2a")),
}, named("SipTrunk", "A number of your own telephone system."));
const ChangedSchema = savedOf(TrunkSchema);

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
  sip_codecs: [...trunk.codecs],
  country_code: trunk.countryCode,
  created_at: isoMicros(trunk.createdAt),
  updated_at: isoMicros(trunk.updatedAt),
});
const wired = (trunk: SipTrunkRecord) => ({
  ...listed(trunk),
  inbound_trunk_id: trunk.inboundTrunkId,
  outbound_trunk_id: trunk.outboundTrunkId,
});

/** The contract's own words for a missing field, where it has any. */
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

/** The fields that were sent; absent members stay absent. */
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
    codecs: body.sip_codecs,
  };
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<SipTrunkFields>;
}

const DEFAULTS = {
  nickname: null, port: null, transport: "udp", allowedNetworks: null, outboundProxy: false,
  requireSrtp: false, codecs: ["pcmu", "pcma"],
} as const satisfies Partial<SipTrunkFields>;

const COMMON = {
  tag: "Phone numbers", errorShape: "error", notFound: "SIP trunk not found.",
} as const;
const params = { id: IdOf("trunk", "GET /user/phone-numbers/sip-trunks") };
const refusals = {
  409: { description: "The account already has this number" },
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
      summary: "List SIP trunks",
      responses: {
        200: { description: "All", schema: dataOf(listOf(ListedSchema, "All.")) },
      },
      handle: async ({ caller }) =>
        json(200, { data: (await trunks.list(caller.accountId)).map(listed) }),
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/phone-numbers/sip-trunks/{id}",
      params,
      summary: "Read a SIP trunk",
      responses: {
        200: { description: "The trunk", schema: dataOf(TrunkSchema) },
      },
      handle: async ({ caller, id }) =>
        json(200, { data: wired(await trunks.get(caller.accountId, id)) }),
    }),
  ];
}

function writeRoutes(trunks: SipTrunks): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/phone-numbers/sip-trunks",
      summary: "Create a SIP trunk",
      description: "Connects a number of your own telephone system over SIP. The password is never "
        + "shown again.",
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
      params,
      summary: "Update a SIP trunk",
      body: UpdateBody,
      responses: {
        200: { description: "Changed", schema: ChangedSchema }, ...refusals,
      },
      handle: async ({ caller, id, body }) => {
        const changes = fieldsFrom(body);
        const trunk = await trunks.update(caller.accountId, id, changes, schemaErrors(body));
        return json(200, { message: "SIP trunk updated successfully.", data: wired(trunk) });
      },
    }),
  ];
}
