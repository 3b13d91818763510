// Calls over Twilio's REST interface (2010-04-01), and over SignalWire's, which is the same under
// another address. Tested against an emulator and Twilio's own SDK, never against a live account.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProviderError } from "#core/faults.ts";
import type { CarrierRequest, CallReport, HostedCalls, HostedDial } from "./port.ts";
import {
  errorCodeOf, HOSTED_REST_LIMITS, segment, type RestAnswer, type RestLimits,
} from "./rest.ts";
import { ringingSeconds, TRANSFER_RINGING_S } from "./ringing.ts";
import { isFromTwilio, type SignedBody } from "./signatures.ts";
import { twilioEvents } from "./status.ts";
import { createTwilioClient, type TwilioAccount } from "./twilio-client.ts";
import { connectTwiml, dialTwiml, rejectTwiml } from "./twiml.ts";

export interface TwilioCallsOptions extends TwilioAccount {
  name: "twilio" | "signalwire";
  /** SignalWire's key for signing webhooks; absent for Twilio, which signs with the token. */
  signingKey?: string | null;
  limits?: Partial<RestLimits>;
}

const Call = TypeCompiler.Compile(Type.Object({ sid: Type.String({ minLength: 1 }) }));

const VENDORS = { twilio: "Twilio", signalwire: "SignalWire" };
const SIGNATURES = { twilio: "x-twilio-signature", signalwire: "x-signalwire-signature" };
const EVENTS = ["initiated", "ringing", "answered", "completed"];
/** "Call is not in-progress": it is over, or was never answered. */
const NOT_IN_PROGRESS = "21220";
/** The most seconds that Twilio accepts for `Timeout`. */
const RINGING_S_MAX = 600;

const xml = (body: string) => ({ status: 200, contentType: "text/xml; charset=utf-8", body });

/** A body as it was signed. */
function bodyOf({ method, header, body }: CarrierRequest): SignedBody {
  if (method === "GET" || body.length === 0) return { kind: "none" };
  return /^application\/x-www-form-urlencoded\b/i.test(header("content-type") ?? "")
    ? { kind: "form", fields: new URLSearchParams(Buffer.from(body).toString("utf8")) }
    : { kind: "raw", bytes: body };
}

function read(request: CarrierRequest): CallReport | null {
  const body = bodyOf(request);
  if (body.kind !== "form") return null;
  const { fields } = body;
  const callId = fields.get("CallSid");
  if (!callId) return null;
  const events = twilioEvents(fields);
  return {
    callId,
    from: fields.get("From"),
    to: fields.get("To"),
    isOffer: fields.get("Direction") === "inbound" && !events.some(({ kind }) => kind === "ended"),
    events,
    reply: null,
  };
}

function formOf({ to, from, ringingMs, join, detectMachine }: HostedDial) {
  const { url, parameters, statusUrl } = join;
  const form: [string, string][] = [
    ["To", to], ["From", from],
    ["Twiml", connectTwiml(url, parameters)],
    ["Timeout", String(ringingSeconds(ringingMs, { max: RINGING_S_MAX }))],
    ["StatusCallback", statusUrl], ["StatusCallbackMethod", "POST"],
    ...EVENTS.map((event): [string, string] => ["StatusCallbackEvent", event]),
  ];
  if (detectMachine) {
    // Without AsyncAmd the call would be silent until the detection is done.
    form.push(["MachineDetection", "Enable"], ["AsyncAmd", "true"]);
    form.push(["AsyncAmdStatusCallback", statusUrl], ["AsyncAmdStatusCallbackMethod", "POST"]);
  }
  return form;
}

export function createTwilioCalls(options: TwilioCallsOptions): HostedCalls {
  const { name, authToken, signingKey, limits } = options;
  const vendor = VENDORS[name];
  const client = createTwilioClient(options, vendor, { ...HOSTED_REST_LIMITS, ...limits });
  const update = (callId: string, form: [string, string][]): Promise<RestAnswer> =>
    client.ask("POST", `/Calls/${segment(callId)}.json`, { form });
  const isOver = ({ status, body }: RestAnswer): boolean =>
    status === 404 || errorCodeOf(body) === NOT_IN_PROGRESS;
  return {
    account: "twilio",
    vendor,
    dialect: name,
    // SignalWire documents signatures for webhooks only.
    signsSockets: name === "twilio",
    connect: null,
    isGenuine: (request) => isFromTwilio({
      authToken: signingKey ?? authToken, signature: request.header(SIGNATURES[name]),
      url: request.url, body: bodyOf(request),
    }),
    read,
    dial: (request) => client.order("/Calls.json", { form: formOf(request) },
      (body) => (Call.Check(body) ? body.sid : null)),
    answer: (_callId, { url, parameters }) => Promise.resolve(xml(connectTwiml(url, parameters))),
    refuse: (_callId, reason) => Promise.resolve(xml(rejectTwiml(reason))),
    hangUp: async (callId) => {
      // Ends a call that still rings as well.
      const answer = await update(callId, [["Status", "completed"]]);
      if (answer.status !== 200 && !isOver(answer)) throw client.refusal(answer);
    },
    transfer: async ({ callId, to, callerId }) => {
      const answer = await update(callId, [["Twiml", dialTwiml(to, callerId, TRANSFER_RINGING_S)]]);
      if (isOver(answer)) throw new ProviderError("the call is over", { retryable: false });
      if (answer.status !== 200) throw client.refusal(answer);
    },
    sendDtmf: null,
    close: client.close,
  };
}
