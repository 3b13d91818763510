// Twilio's REST API (2010-04-01) as a provider of numbers. Tested against a double that follows
// Twilio's documentation, never against a live account.
import { Type, type Static } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { LIMITS } from "#core/limits.ts";
import {
  errorCodeOf, isBeforeSending, isRefusal, type RestAnswer,
} from "#providers/carriers/hosted/rest.ts";
import { createTwilioClient, type TwilioAccount } from "#providers/carriers/hosted/twilio-client.ts";
import type { NumberProvider, OfferedNumber, Provisioning } from "./port.ts";

interface TwilioOptions extends TwilioAccount {
  /** The webhook for calls to numbers bought here; null: there is none, calls are not answered. */
  voiceUrl: string | null;
}

const Capabilities = Type.Object({
  sms: Type.Optional(Type.Boolean()),
  // Older answers spell it like this.
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

type Offer = Static<typeof AvailableNumber>;

/** "PhoneNumber is not available": somebody else has it, or it was never there. */
const NOT_AVAILABLE = "21422";
/** Where Twilio handles a number unless it is set otherwise. */
const REGION = "us1";
/** Twilio takes no pattern of one digit. */
const PATTERN_CHARS_MIN = 2;

const nameOf = (purchaseId: string): string => `parley ${purchaseId}`;

function requirementOf(text = "none"): OfferedNumber["addressRequirements"] {
  if (text === "none" || text === "foreign") return text;
  // `any` asks for an address anywhere: a local one satisfies it.
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

function provisioningOf(answer: RestAnswer, reason: string): Provisioning {
  const { status, body } = answer;
  if (status === 201 && Incoming.Check(body)) return { kind: "provisioned", sid: body.sid };
  if (errorCodeOf(body) === NOT_AVAILABLE) return { kind: "unavailable" };
  // Only after an explicit refusal is it certain that nothing was done.
  return { kind: isRefusal(answer) ? "refused" : "unknown", reason };
}

export function createTwilioNumbers(options: TwilioOptions): NumberProvider {
  const { voiceUrl } = options;
  const client = createTwilioClient(options, "Twilio", {
    answerMs: LIMITS.numberProviderMs,
    connections: LIMITS.numberProviderConnectionsMax,
    bytesMax: LIMITS.numberProviderBytesMax,
  });
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
    if (answer.status !== 200 || !Available.Check(answer.body)) throw client.refusal(answer);
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
      const form: [string, string][] = [
        ["PhoneNumber", phoneNumber], ["FriendlyName", nameOf(purchaseId)],
      ];
      if (voiceUrl !== null) form.push(["VoiceUrl", voiceUrl], ["VoiceMethod", "POST"]);
      try {
        const answer = await client.send("POST", "/IncomingPhoneNumbers.json", { form });
        return provisioningOf(answer, client.refusal(answer).message);
      } catch (error) {
        const { message } = error as Error;
        return { kind: isBeforeSending(error) ? "refused" : "unknown", reason: message };
      }
    },
    lookUp: async ({ phoneNumber, purchaseId }) => {
      const query = new URLSearchParams({ FriendlyName: nameOf(purchaseId) });
      const answer = await client.ask("GET", `/IncomingPhoneNumbers.json?${query}`);
      if (answer.status !== 200 || !IncomingList.Check(answer.body)) throw client.refusal(answer);
      // Never by the number alone: it may be the operator's own.
      const found = answer.body.incoming_phone_numbers.find((incoming) =>
        incoming.friendly_name === nameOf(purchaseId) && incoming.phone_number === phoneNumber);
      return found?.sid ?? null;
    },
    release: async (sid) => {
      const answer = await client.ask("DELETE", `/IncomingPhoneNumbers/${sid}.json`);
      if (answer.status !== 204 && answer.status !== 404) throw client.refusal(answer);
    },
    close: client.close,
  };
}
