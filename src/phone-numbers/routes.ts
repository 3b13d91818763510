// The wire of phone numbers: search, buy, list, name, give up. Assignable numbers are among the
// assistants' lookups, SIP trunks in sip-trunk-routes.ts.
import { Type } from "@sinclair/typebox";
import { LIMITS } from "../core/limits.ts";
import { dollarsFromMicros } from "../core/money.ts";
import { Nullable, prepared, withMessage } from "../core/schema.ts";
import { isoMicros, type Instant } from "../core/system.ts";
import { json, type Reply } from "../http/exchange.ts";
import { keyRoute, type Route } from "../http/route.ts";
import { readIdempotencyKey } from "../http/validation.ts";
import type { OwnedNumbers, PhoneNumber, PhoneNumberType } from "./phone-numbers.ts";
import { formatNumber } from "./prices.ts";
import type { Bought, OfferWithPrice, Purchases } from "./purchases.ts";
import { sipTrunkRoutes } from "./sip-trunk-routes.ts";
import type { SipTrunks } from "./sip-trunks.ts";
import { ErrorSchema, InvalidSchema, NICKNAME_CHARS_MAX } from "./wire.ts";

export interface PhoneNumberRouteOptions {
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
  id: Type.Integer(),
  phone_number: Type.String(),
  nickname: Nullable(Type.String()),
  country_code: Type.String(),
  type: Type.String(),
  type_label: Type.String(),
  sms_capable: Type.Boolean(),
  region: Nullable(Type.String()),
  has_active_subscription: Type.Boolean(),
  created_at: Type.String(),
  status: Type.String({
    description: "active; grace: unpaid, still works; suspended: unpaid, cannot be used",
  }),
  monthly_price: Type.Number({ description: "USD" }),
  paid_until: Nullable(Type.String({ description: "Null without a subscription" })),
  grace_until: Nullable(Type.String({
    description: "While unpaid: when it is suspended, or if it is that, when it is lost",
  })),
  released_at: Nullable(Type.String({ description: "When it was given up" })),
});
const OfferSchema = Type.Object({
  phone_number: Type.String(),
  phone_number_formatted: Type.String(),
  country_code: Type.String(),
  price: Type.Number({ description: "A month, USD" }),
  stripe_price_id: Type.Null(),
  address_requirements: Type.String(),
  sms_capable: Type.Boolean(),
});
const SearchQuery = Type.Object({
  country_code: Type.Optional(Type.String({
    pattern: "^[A-Z]{2}$",
    default: COUNTRY_DEFAULT,
    ...prepared((value) => (typeof value === "string" ? value.toUpperCase() : value)),
    ...withMessage("The country code must be two letters."),
  })),
  contains: Type.Optional(Type.String({
    pattern: `^[0-9]{1,${CONTAINS_DIGITS_MAX}}$`,
    ...withMessage(`The contains must be at most ${CONTAINS_DIGITS_MAX} digits.`),
  })),
});
const PurchaseBody = Type.Object({
  phone_number: Type.String({ maxLength: 64, description: "E.164, from the search" }),
});
export const UpdateBody = Type.Object({
  nickname: Type.Optional(Nullable(Type.String({
    maxLength: NICKNAME_CHARS_MAX,
    ...withMessage(`The nickname must not exceed ${NICKNAME_CHARS_MAX} characters.`),
  }))),
});

const isoOrNull = (instant: Instant | null): string | null =>
  instant === null ? null : isoMicros(instant);

const hasSubscription = ({ paidUntil, status }: PhoneNumber): boolean =>
  paidUntil !== null && status !== "suspended";

const wireNumber = (number: PhoneNumber) => ({
  id: number.id,
  phone_number: number.phoneNumber,
  nickname: number.nickname,
  country_code: number.countryCode,
  type: number.type,
  type_label: TYPE_LABELS[number.type],
  sms_capable: number.smsCapable,
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
  sms_capable: offer.smsCapable,
});

function boughtReply({ purchase, replayed }: Bought): Reply {
  const headers = replayed ? { "Idempotency-Replayed": "true" } : {};
  const { phoneNumberId: id, phoneNumber, countryCode } = purchase;
  if (purchase.state !== "completed") {
    return json(purchase.status ?? 500, { error: purchase.error }, headers);
  }
  return json(201, {
    message: "Phone number purchased successfully.",
    data: {
      id, phone_number: phoneNumber, country_code: countryCode, type: "normal",
      sms_capable: purchase.smsCapable,
    },
  }, headers);
}

const COMMON = {
  tag: "Phone numbers", errorShape: "error", notFound: "Phone number not found.",
} as const;
const missing = { 404: { description: "No such number", schema: ErrorSchema } };
const invalid = { 422: { description: "Fields at fault", schema: InvalidSchema } };
const failed = (description: string) => ({ description, schema: ErrorSchema });

export function phoneNumberRoutes(options: PhoneNumberRouteOptions): Route[] {
  return [
    ...listRoutes(options), searchRoute(options), purchaseRoute(options), ...oneRoutes(options),
    ...sipTrunkRoutes(options.sipTrunks),
  ];
}

function listRoutes({ numbers }: PhoneNumberRouteOptions): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/phone-numbers/all",
      summary: "List the phone numbers",
      responses: {
        200: { description: "All", schema: Type.Object({ data: Type.Array(NumberSchema) }) },
      },
      handle: ({ caller }) =>
        json(200, { data: numbers.list(caller.accountId).map(wireNumber) }),
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/phone-numbers",
      summary: "List the numbers that can send SMS and have a subscription",
      responses: { 200: { description: "All of them", schema: Type.Array(NumberSchema) } },
      handle: ({ caller }) => json(200, numbers.list(caller.accountId)
        .filter((number) => number.smsCapable && hasSubscription(number))
        .map(wireNumber)),
    }),
  ];
}

function searchRoute({ purchases }: PhoneNumberRouteOptions): Route {
  const offers = Type.Array(OfferSchema);
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/phone-numbers/search",
    summary: "Search numbers that can be bought",
    query: SearchQuery,
    responses: {
      200: {
        description: `At most ${LIMITS.numberSearchMax} numbers, the same twice`,
        schema: Type.Object({ data: offers, result: offers }),
      },
      ...invalid,
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
    summary: "Buy a number: the first month at once, then every month until it is released",
    body: PurchaseBody,
    responses: {
      201: {
        description: "Bought",
        schema: Type.Object({
          message: Type.String(),
          data: Type.Object({
            id: Type.Integer(), phone_number: Type.String(), country_code: Type.String(),
            type: Type.String(), sms_capable: Type.Boolean(),
          }),
        }),
      },
      400: failed("In use, or not for sale"),
      402: failed("Never paid, or the balance is short"),
      422: failed("Not a telephone number; or fields at fault"),
      500: failed("The provider failed; nothing was charged"),
      503: failed("An earlier try with the key is not settled yet"),
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
      summary: "One phone number",
      responses: {
        200: { description: "The number", schema: Type.Object({ data: NumberSchema }) },
        ...missing,
      },
      handle: ({ caller, id }) =>
        json(200, { data: wireNumber(numbers.get(caller.accountId, id)) }),
    }),
    keyRoute({
      ...COMMON,
      method: "PUT",
      path,
      summary: "Name a number; null or nothing takes the name away",
      body: UpdateBody,
      responses: {
        200: {
          description: "Changed",
          schema: Type.Object({
            message: Type.String(),
            data: Type.Pick(
              NumberSchema, ["id", "phone_number", "nickname", "country_code", "type"]),
          }),
        },
        ...missing, ...invalid,
      },
      handle: async ({ caller: { accountId }, id, body: { nickname } }) => {
        const number = nickname === undefined
          ? numbers.get(accountId, id)
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
      summary: "Give a number up: at the end of the month that is paid, others at once",
      responses: {
        200: { description: "Given up", schema: Type.Object({ message: Type.String() }) },
        400: failed("It is given up already"),
        ...missing,
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
