// The wire of phone numbers: search, buy, list, name, release. Assignable numbers are among the
// assistants' lookups, SIP trunks in sip-trunk-routes.ts.
import { Type } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import { dollarsFromMicros } from "#core/money.ts";
import { about, named, Nullable, prepared, withMessage } from "#core/schema.ts";
import { isoMicros, isoOrNull } from "#core/system.ts";
import {
  dataOf, IDEMPOTENCY_KEY, IdOf, listOf, MessageSchema, Moment, replayHeaders, savedOf,
} from "#http/answers.ts";
import { json, type Reply } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { readIdempotencyKey } from "#http/validation.ts";
import type { OwnedNumbers, PhoneNumber, PhoneNumberType } from "./phone-numbers.ts";
import { messageRoutes } from "./message-routes.ts";
import { formatNumber } from "./prices.ts";
import type { Bought, OfferWithPrice, Purchases } from "./purchases.ts";
import { sipTrunkRoutes } from "./sip-trunk-routes.ts";
import type { SipTrunks } from "./sip-trunks.ts";
import { NICKNAME_CHARS_MAX } from "./wire.ts";

interface PhoneNumberRouteOptions {
  numbers: OwnedNumbers;
  purchases: Pick<Purchases, "search" | "purchase">;
  sipTrunks: SipTrunks;
}

const COUNTRY_DEFAULT = "US";
const CONTAINS_DIGITS_MAX = 10;

const TYPE_LABELS: Record<PhoneNumberType, string> = {
  normal: "Dedicated Number", sip: "SIP", caller_id: "Caller ID",
};

const NumberSchema = Type.Object({
  id: Type.Integer(about("The number's `id`, the value for an assistant's `phone_number_id`.", 1)),
  phone_number: Type.String(about("In E.164, or an extension.", "+4930123456")),
  nickname: Nullable(Type.String(about("Your name for it; null if none.", "Shop"))),
  country_code: Type.String(about("Its two-letter country code.", "DE")),
  type: Type.String(about("normal: bought here; sip: of your own system; caller_id.", "normal")),
  type_label: Type.String(about("The type in words.", "Dedicated Number")),
  sms_capable: Type.Boolean(about("Whether this server can send SMS from the number.", false)),
  region: Nullable(Type.String(about("The region it belongs to; null if not known.", "us1"))),
  has_active_subscription: Type.Boolean(about("Whether it is billed monthly.")),
  created_at: Moment("When the account got it, in UTC."),
  status: Type.String(about(
    "active; grace: unpaid, but still works; suspended: unpaid, cannot be used.", "active")),
  monthly_price: Type.Number(about("Price in USD per month.", 1)),
  paid_until: Nullable(Moment("When the paid month ends, in UTC; null if it has no subscription.")),
  grace_until: Nullable(Moment(
    "While unpaid: when it will be suspended or, once suspended, released; null if paid.")),
  released_at: Nullable(Moment("When it was released, in UTC; null if it was not.")),
}, named("PhoneNumber", "A phone number of the account."));
const OfferSchema = Type.Object({
  phone_number: Type.String(about("The number in E.164, as purchase takes it.", "+12025550123")),
  phone_number_formatted: Type.String(about("The number, formatted for reading.",
    "(202) 555-0123")),
  country_code: Type.String(about("Its two-letter country code.", "US")),
  price: Type.Number(about("Price in USD per month.", 1)),
  stripe_price_id: Type.Null(about("Always null, for older clients.")),
  address_requirements: Type.String(about(
    "The address the carrier requires: none, local, foreign or any.", "none")),
  sms_capable: Type.Boolean(about("Whether this server could send SMS from it.", false)),
}, named("NumberOffer", "A number for sale."));
const SearchQuery = Type.Object({
  country_code: Type.Optional(Type.String({
    pattern: "^[A-Z]{2}$",
    default: COUNTRY_DEFAULT,
    ...about("The two-letter country code."),
    ...prepared((value) => (typeof value === "string" ? value.toUpperCase() : value)),
    ...withMessage("The country code must be two letters."),
  })),
  contains: Type.Optional(Type.String({
    pattern: `^[0-9]{1,${CONTAINS_DIGITS_MAX}}$`,
    ...about("Only numbers that contain these digits.", "202"),
    ...withMessage(`The contains must be 1 to ${CONTAINS_DIGITS_MAX} digits, without + and spaces.`),
  })),
});
const PurchaseBody = Type.Object({
  phone_number: Type.String({
    maxLength: 64, ...about("The number in E.164, from the search.", "+12025550123"),
  }),
});
export const UpdateBody = Type.Object({
  nickname: Type.Optional(Nullable(Type.String({
    maxLength: NICKNAME_CHARS_MAX,
    ...about("Your name for the number; null or empty for none.", "Shop"),
    ...withMessage(`The nickname must not exceed ${NICKNAME_CHARS_MAX} characters.`),
  }))),
});

/** False whatever the carrier supports, because this server sends no SMS. */
const CAN_SEND_SMS: boolean = false;

const hasSubscription = ({ paidUntil, status }: PhoneNumber): boolean =>
  paidUntil !== null && status !== "suspended";

const wireNumber = (number: PhoneNumber) => ({
  id: number.id,
  phone_number: number.phoneNumber,
  nickname: number.nickname,
  country_code: number.countryCode,
  type: number.type,
  type_label: TYPE_LABELS[number.type],
  sms_capable: number.smsCapable && CAN_SEND_SMS,
  region: number.region,
  has_active_subscription: hasSubscription(number),
  created_at: isoMicros(number.createdAt),
  status: number.status,
  monthly_price: dollarsFromMicros(number.monthlyMicros),
  paid_until: isoOrNull(number.paidUntil),
  grace_until: isoOrNull(number.graceUntil),
  released_at: isoOrNull(number.releasedAt),
});

const wireOffer = (offer: OfferWithPrice) => ({
  phone_number: offer.phoneNumber,
  phone_number_formatted: formatNumber(offer.phoneNumber),
  country_code: offer.countryCode,
  price: dollarsFromMicros(offer.monthlyMicros),
  // Nothing is sold through Stripe here; clients of the API family expect the member.
  stripe_price_id: null,
  address_requirements: offer.addressRequirements,
  sms_capable: offer.smsCapable && CAN_SEND_SMS,
});

function boughtReply({ purchase, replayed }: Bought): Reply {
  const headers = replayHeaders(replayed);
  const { phoneNumberId: id, phoneNumber, countryCode } = purchase;
  if (purchase.state !== "completed") {
    return json(purchase.status ?? 500, { error: purchase.error }, headers);
  }
  return json(201, {
    message: "Phone number purchased successfully.",
    data: {
      id, phone_number: phoneNumber, country_code: countryCode, type: "normal",
      sms_capable: purchase.smsCapable && CAN_SEND_SMS,
    },
  }, headers);
}

const COMMON = {
  tag: "Phone numbers", errorShape: "error", notFound: "Phone number not found.",
} as const;
const params = { id: IdOf("phone number", "GET /user/phone-numbers/all") };
const failed = (description: string) => ({ description });

export function phoneNumberRoutes(options: PhoneNumberRouteOptions): Route[] {
  return [
    ...listRoutes(options), searchRoute(options), purchaseRoute(options), ...oneRoutes(options),
    ...sipTrunkRoutes(options.sipTrunks), ...messageRoutes(),
  ];
}

function listRoutes({ numbers }: PhoneNumberRouteOptions): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/phone-numbers/all",
      summary: "List phone numbers",
      responses: {
        200: { description: "All", schema: dataOf(listOf(NumberSchema, "All.")) },
      },
      handle: async ({ caller }) =>
        json(200, { data: (await numbers.list(caller.accountId)).map(wireNumber) }),
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/phone-numbers",
      summary: "List numbers that can send SMS and are paid by the month",
      responses: { 200: { description: "The list", schema: listOf(NumberSchema, "All of them.") } },
      handle: async ({ caller }) => json(200, (await numbers.list(caller.accountId))
        .filter((number) => number.smsCapable && CAN_SEND_SMS && hasSubscription(number))
        .map(wireNumber)),
    }),
  ];
}

function searchRoute({ purchases }: PhoneNumberRouteOptions): Route {
  const offers = listOf(OfferSchema, "Numbers for sale.");
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/phone-numbers/search",
    summary: "Search for numbers to buy",
    query: SearchQuery,
    responses: {
      200: {
        description: `At most ${LIMITS.numberSearchMax} numbers, the same twice`,
        schema: Type.Object({ data: offers, result: offers }),
      },
      500: failed("The provider did not answer"),
    },
    handle: async ({ query: { country_code: country = COUNTRY_DEFAULT, contains = "" } }) => {
      const data = (await purchases.search(country, contains)).map(wireOffer);
      return json(200, { data, result: data });
    },
  });
}

function purchaseRoute({ purchases }: PhoneNumberRouteOptions): Route {
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/phone-numbers/purchase",
    summary: "Buy a number",
    description: "Charges the first month now, then every month until the number is released.",
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: PurchaseBody,
    responses: {
      201: {
        description: "Bought",
        schema: savedOf(Type.Pick(
          NumberSchema, ["id", "phone_number", "country_code", "type", "sms_capable"],
          named("BoughtNumber", "The purchased number."))),
      },
      400: failed("The number is in use or not for sale"),
      402: failed("The account has never paid, or the balance is too low"),
      422: failed("Not a telephone number, or other fields are invalid"),
      500: failed("The provider failed; nothing was charged"),
      503: failed("An earlier request with this Idempotency-Key is not settled yet"),
    },
    handle: async ({ caller, body, http }) => {
      const key = readIdempotencyKey(http.headers["idempotency-key"]);
      return boughtReply(await purchases.purchase(caller.accountId, body.phone_number, key));
    },
  });
}

function oneRoutes({ numbers }: PhoneNumberRouteOptions): Route[] {
  const path = "/user/phone-numbers/{id}";
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path,
      params,
      summary: "Read a phone number",
      responses: {
        200: { description: "The number", schema: dataOf(NumberSchema) },
      },
      handle: async ({ caller, id }) =>
        json(200, { data: wireNumber(await numbers.get(caller.accountId, id)) }),
    }),
    keyRoute({
      ...COMMON,
      method: "PUT",
      path,
      params,
      summary: "Name a number; null or an empty name removes it",
      body: UpdateBody,
      responses: {
        200: {
          description: "Changed",
          schema: savedOf(Type.Pick(
            NumberSchema, ["id", "phone_number", "nickname", "country_code", "type"],
            named("NamedNumber", "The renamed number."))),
        },
      },
      handle: async ({ caller: { accountId }, id, body: { nickname } }) => {
        const number = nickname === undefined
          ? await numbers.get(accountId, id)
          : await numbers.rename(accountId, id, nickname === "" ? null : nickname);
        const { phoneNumber, countryCode, type } = number;
        const data = { id, phone_number: phoneNumber, country_code: countryCode, type };
        return json(200, {
          message: "Phone number updated successfully.",
          data: { ...data, nickname: number.nickname },
        });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "DELETE",
      path,
      params,
      summary: "Release a number; a paid number at the end of its month, others at once",
      responses: {
        200: { description: "Released", schema: MessageSchema },
        400: failed("The number has already been released"),
      },
      handle: async ({ caller, id }) => {
        const type = await numbers.release(caller.accountId, id);
        const message = type === "normal"
          ? "Phone number released successfully. "
            + "It will be removed at the end of the billing period."
          : "Phone number deleted successfully.";
        return json(200, { message });
      },
    }),
  ];
}
