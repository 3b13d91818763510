// The REST client of an account at Twilio, or at SignalWire, which speaks the same interface. Used
// by twilio-calls.ts and by providers/numbers/twilio.ts.
import { basicAuthorization, createRestClient, type RestClient, type RestLimits } from "./rest.ts";

export interface TwilioAccount {
  /** `https://api.twilio.com`, or `https://<space>.signalwire.com/api/laml`. */
  url: string;
  /** SignalWire: the id of the project. */
  accountSid: string;
  /** SignalWire: the token of the project. */
  authToken: string;
}

/** Paths are below the account. */
export const createTwilioClient = (
  { url, accountSid, authToken }: TwilioAccount, vendor: string, limits: RestLimits,
): RestClient => createRestClient({
  vendor,
  root: `${url.replace(/\/+$/, "")}/2010-04-01/Accounts/${accountSid}`,
  authorization: () => basicAuthorization(accountSid, authToken),
  limits,
});
