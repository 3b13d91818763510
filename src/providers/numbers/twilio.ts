// Twilio's REST API (2010-04-01) as a provider of numbers. Tested against a double that speaks as
// Twilio's documentation says, never against a live account.
import { Type, type Static } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Agent, request } from "undici";
import { ProviderError } from "../../core/faults.ts";
import { LIMITS } from "../../core/limits.ts";
import type { NumberProvider, OfferedNumber, Provisioning } from "./port.ts";

export interface TwilioOptions {
  /** `https://api.twilio.com` */
  url: string;
  accountSid: string;
  authToken: string;
}

const Capabilities = Type.Object({
  sms: Type.Optional(Type.Boolean()),
  // As older answers spell it.
  SMS: Type.Optional(Type.Boolean()),
});
const AvailableNumber = Type.Object({
  phone_number: Type.String(),
  iso_country: Type.String(),
  address_requirements: Type.Optional(Type.String()),
  capabilities: Capabilities,
});
const Available = TypeCompiler.Compile(Type.Object({
  available_phone_numbers: Type.Array(AvailableNumber),
}));
const Incoming = TypeCompiler.Compile(Type.Object({ sid: Type.String() }));
const IncomingList = TypeCompiler.Compile(Type.Object({
  incoming_phone_numbers: Type.Array(Type.Object({
    sid: Type.String(), phone_number: Type.String(), friendly_name: Type.String(),
  })),
}));
const Refusal = TypeCompiler.Compile(Type.Object({ code: Type.Integer() }));

type Offer = Static<typeof AvailableNumber>;

/** "PhoneNumber is not available": somebody else has it, or it was never there. */
const NOT_AVAILABLE = 21422;
/** Where Twilio handles a number unless it was told otherwise. */
const REGION = "us1";
/** Twilio takes no pattern of one digit. */
const PATTERN_CHARS_MIN = 2;

/** The request has certainly not reached anybody. */
const BEFORE_SENDING = new Set([
  "ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT",
]);

interface Answer {
  status: number;
  body: unknown;
}

const nameOf = (purchaseId: string): string => `parley ${purchaseId}`;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function requirementOf(text = "none"): OfferedNumber["addressRequirements"] {
  if (text === "none" || text === "foreign") return text;
  // `any`: an address anywhere; a local one does.
  return "local";
}

const offerOf = (found: Offer): OfferedNumber => ({
  phoneNumber: found.phone_number,
  countryCode: found.iso_country,
  smsCapable: found.capabilities.sms ?? found.capabilities.SMS ?? false,
  region: REGION,
  addressRequirements: requirementOf(found.address_requirements),
  monthlyMicros: null,
});

/** Of an answer nobody asked for: what a person needs to find out why. */
function refusalOf({ status, body }: Answer): ProviderError {
  const code = Refusal.Check(body) ? `, code ${body.code}` : "";
  return new ProviderError(`Twilio answered ${status}${code}`, {
    retryable: status === 429 || status >= 500,
  });
}

function createClient({ url, accountSid, authToken }: TwilioOptions) {
  const agent = new Agent({
    connections: LIMITS.numberProviderConnectionsMax,
    maxResponseSize: LIMITS.numberProviderBytesMax,
  });
  const root = `${url}/2010-04-01/Accounts/${accountSid}`;
  const credentials = Buffer.from(`${accountSid}:${authToken}`).toString("base64");
  const headers = { authorization: `Basic ${credentials}`, "accept-encoding": "identity" };
  const send = async (
    method: "GET" | "POST" | "DELETE", path: string, form?: Record<string, string>,
  ): Promise<Answer> => {
    const { statusCode, body } = await request(root + path, {
      dispatcher: agent,
      method,
      headers: form
        ? { ...headers, "content-type": "application/x-www-form-urlencoded" }
        : headers,
      body: form ? new URLSearchParams(form).toString() : null,
      signal: AbortSignal.timeout(LIMITS.numberProviderMs),
    });
    return { status: statusCode, body: parse(await body.text()) };
  };
  let closing: Promise<void> | null = null;
  return {
    send,
    /** As `send`; what keeps an answer from coming is a ProviderError. */
    ask: async (...what: Parameters<typeof send>): Promise<Answer> => {
      try {
        return await send(...what);
      } catch (error) {
        throw new ProviderError("Twilio could not be reached", { retryable: true, cause: error });
      }
    },
    close: () => (closing ??= agent.destroy()),
  };
}

function provisioningOf(answer: Answer): Provisioning {
  const { status, body } = answer;
  if (status === 201 && Incoming.Check(body)) return { kind: "provisioned", sid: body.sid };
  if (Refusal.Check(body) && body.code === NOT_AVAILABLE) return { kind: "unavailable" };
  const reason = refusalOf(answer).message;
  // Only a refusal in so many words is known to have done nothing.
  return status >= 400 && status < 500 && status !== 408
    ? { kind: "refused", reason }
    : { kind: "unknown", reason };
}

export function createTwilioNumbers(options: TwilioOptions): NumberProvider {
  const client = createClient(options);
  const search: NumberProvider["search"] = async ({ countryCode, contains, most }) => {
    const query = new URLSearchParams({
      VoiceEnabled: "true",
      // Those that need an address cannot be bought without one, and nobody has given us any.
      ExcludeAllAddressRequired: "true",
      PageSize: String(most),
      ...(contains.length >= PATTERN_CHARS_MIN ? { Contains: contains } : {}),
    });
    const path = `/AvailablePhoneNumbers/${countryCode}/Local.json?${query}`;
    const answer = await client.ask("GET", path);
    // The country has no local numbers there.
    if (answer.status === 404) return [];
    if (answer.status !== 200 || !Available.Check(answer.body)) throw refusalOf(answer);
    return answer.body.available_phone_numbers
      .map(offerOf)
      .filter(({ phoneNumber }) => phoneNumber.includes(contains))
      .slice(0, most);
  };
  return {
    name: "twilio",
    search,
    find: async ({ phoneNumber, nationalDigits: contains, countryCodes }) => {
      for (const countryCode of countryCodes) {
        const found = await search({ countryCode, contains, most: LIMITS.numberSearchMax });
        const exact = found.find((offer) => offer.phoneNumber === phoneNumber);
        if (exact) return exact;
      }
      return null;
    },
    provision: async ({ phoneNumber, purchaseId }) => {
      const form = { PhoneNumber: phoneNumber, FriendlyName: nameOf(purchaseId) };
      try {
        return provisioningOf(await client.send("POST", "/IncomingPhoneNumbers.json", form));
      } catch (error) {
        const { code = "", message } = error as NodeJS.ErrnoException;
        return { kind: BEFORE_SENDING.has(code) ? "refused" : "unknown", reason: message };
      }
    },
    lookUp: async ({ phoneNumber, purchaseId }) => {
      const query = new URLSearchParams({ FriendlyName: nameOf(purchaseId) });
      const answer = await client.ask("GET", `/IncomingPhoneNumbers.json?${query}`);
      if (answer.status !== 200 || !IncomingList.Check(answer.body)) throw refusalOf(answer);
      // Never by the number alone: it may be the operator's own.
      const found = answer.body.incoming_phone_numbers.find((incoming) =>
        incoming.friendly_name === nameOf(purchaseId) && incoming.phone_number === phoneNumber);
      return found?.sid ?? null;
    },
    release: async (sid) => {
      const answer = await client.ask("DELETE", `/IncomingPhoneNumbers/${sid}.json`);
      if (answer.status !== 204 && answer.status !== 404) throw refusalOf(answer);
    },
    close: client.close,
  };
}
