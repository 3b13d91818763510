// Calls over a Plivo account: its Voice API (v1), and the XML that its webhooks ask for. When a
// call is answered or transferred, Plivo asks for XML at a URL given before, whose query carries
// the reply. Reports of an incoming call go to the operator's application, not to the call's own
// URL, so the end of its stream means that it is over. Tested against a double and what Plivo's SDK
// sends and signs, never against a live account. Used by hosted-carriers.ts.
import assert from "node:assert/strict";
import { Type, type Static } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProviderError } from "#core/faults.ts";
import { jsonOf } from "#core/values.ts";
import type { LegEndCause, LegEvent } from "#providers/carriers/port.ts";
import { withoutPlus, withPlus } from "./numbers.ts";
import type { CarrierRequest, CallReport, HostedCalls, HostedDial, WebhookReply } from "./port.ts";
import {
  basicAuthorization, createRestClient, HOSTED_REST_LIMITS, isDone, segment, type RestAnswer,
  type RestLimits,
} from "./rest.ts";
import { ringingSeconds, TRANSFER_RINGING_S } from "./ringing.ts";
import { isFromPlivo } from "./signatures.ts";
import { ended, entryOf } from "./status.ts";
import { element, escapeXml, responseOf } from "./twiml.ts";

export interface PlivoCallsOptions {
  /** `https://api.plivo.com`. */
  url: string;
  authId: string;
  authToken: string;
  limits?: Partial<RestLimits>;
}

const VENDOR = "Plivo";

// XML

const xml = (content: string): WebhookReply =>
  ({ status: 200, contentType: "text/xml; charset=utf-8", body: responseOf(content) });

const EXTRA_HEADERS_CHARS_MAX = 512;

/** Null when Plivo would not return the parameters unchanged. */
function extraHeadersOf(parameters: Record<string, string>): string | null {
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}=${value}`);
  const text = pairs.join(",");
  const isCarried = pairs.every((pair) => /^[\w-]+=[\w-]+$/.test(pair));
  return isCarried && text.length <= EXTRA_HEADERS_CHARS_MAX ? text : null;
}

/** The only element in its document, so that the call ends with the stream. */
const streamElement = (url: string, extraHeaders: string): string => element("Stream", {
  bidirectional: "true", keepCallAlive: "true", contentType: "audio/x-mulaw;rate=8000", extraHeaders,
}, escapeXml(url));

/** Connects the caller to `to`; the call ends when the dialled one does. */
function dialElement(to: string, callerId: string | null): string {
  const noun = /^sips?:/i.test(to) ? "User" : "Number";
  return element("Dial", {
    callerId: callerId === null ? null : withoutPlus(callerId),
    timeout: String(TRANSFER_RINGING_S),
  }, element(noun, {}, escapeXml(withoutPlus(to))));
}

// Replies to Plivo's requests for XML

const Then = Type.Union([
  Type.Object({
    kind: Type.Literal("stream"), url: Type.String(), parameters: Type.Record(Type.String(), Type.String()),
  }),
  Type.Object({
    kind: Type.Literal("dial"), to: Type.String({ minLength: 1 }),
    callerId: Type.Union([Type.String(), Type.Null()]),
  }),
]);
type Then = Static<typeof Then>;
const ThenCheck = TypeCompiler.Compile(Then);

const THEN_PARAMETER = "then";

/** Uses only characters that nobody escapes, because the URL is signed as it is written. */
const asking = (statusUrl: string, then: Then): string =>
  `${statusUrl}?${THEN_PARAMETER}=${Buffer.from(JSON.stringify(then)).toString("base64url")}`;

function thenOf(url: string): Then | null {
  const text = new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? "").get(THEN_PARAMETER);
  const then = jsonOf(Buffer.from(text ?? "", "base64url").toString("utf8"));
  return ThenCheck.Check(then) ? then : null;
}

function replyOf(then: Then | null): WebhookReply | null {
  if (then?.kind === "dial") return xml(dialElement(then.to, then.callerId));
  const extraHeaders = then && extraHeadersOf(then.parameters);
  return extraHeaders ? xml(streamElement(then.url, extraHeaders)) : null;
}

// Reports

/** The body as it was signed; null for a body that Plivo never sends. */
function formOf({ method, header, body }: CarrierRequest): URLSearchParams | null {
  const text = Buffer.from(body).toString("utf8");
  if (method === "GET" || text === "") return new URLSearchParams();
  return /^application\/x-www-form-urlencoded\b/i.test(header("content-type") ?? "")
    ? new URLSearchParams(text)
    : null;
}

/** The second is signed by the main account, when the number belongs to a subaccount. */
const SIGNATURES = ["x-plivo-signature-v3", "x-plivo-signature-ma-v3"];

function isGenuine(authToken: string, request: CarrierRequest): boolean {
  const { method, url, header } = request;
  const form = formOf(request);
  if (!form) return false;
  const nonce = header("x-plivo-signature-v3-nonce");
  // It is not documented whether a WebSocket is signed with its `ws` URL or the `http` one.
  const urls = method === "GET" ? [url, url.replace(/^ws/i, "http")] : [url];
  return urls.some((one) => SIGNATURES.some((name) =>
    isFromPlivo({ authToken, signature: header(name), nonce, method, url: one, form })));
}

const STATUSES: Record<string, LegEvent> = {
  ringing: { kind: "ringing" },
  "in-progress": { kind: "answered" },
  completed: ended("far_hung_up"),
  busy: ended("busy"),
  "no-answer": ended("no_answer"),
  // The network timed out, not the telephone.
  timeout: ended("failed"),
  failed: ended("failed"),
  // Only we can cancel a call.
  cancel: ended("we_hung_up"),
};

/** Keyed by `HangupCauseCode`, for the codes that say more than the status. */
const CAUSES: Record<string, LegEndCause> = {
  1000: "we_hung_up",
  3000: "no_answer", 6010: "no_answer",
  3010: "busy", 3100: "busy",
  3020: "rejected", 3110: "rejected",
};

const ANSWERERS: Record<string, LegEvent> = {
  true: { kind: "answered_by", by: "machine" },
  false: { kind: "answered_by", by: "human" },
};

function eventsOf(form: URLSearchParams): LegEvent[] {
  const answerer = entryOf(ANSWERERS, form.get("Machine"));
  const detected = answerer ? [answerer] : [];
  const event = entryOf(STATUSES, form.get("CallStatus"));
  if (event?.kind !== "ended") return event ? [event, ...detected] : detected;
  const cause = entryOf(CAUSES, form.get("HangupCauseCode"));
  return [...detected, cause ? ended(cause) : event];
}

function read(request: CarrierRequest): CallReport | null {
  const form = request.method === "POST" ? formOf(request) : null;
  // Both ids are the same for a call to one telephone; CallUUID is missing if no call was placed.
  const callId = form?.get("CallUUID") || form?.get("RequestUUID");
  if (!form || !callId) return null;
  const events = eventsOf(form);
  const hasEnded = events.some(({ kind }) => kind === "ended");
  return {
    callId,
    from: withPlus(form.get("From")),
    to: withPlus(form.get("To")),
    isOffer: form.get("Direction") === "inbound" && !hasEnded,
    events,
    reply: hasEnded ? null : replyOf(thenOf(request.url)),
  };
}

// REST

function orderOf({ to, from, ringingMs, join, detectMachine }: HostedDial): object {
  const { url, parameters, statusUrl } = join;
  return {
    to: withoutPlus(to),
    from: withoutPlus(from),
    answer_url: asking(statusUrl, { kind: "stream", url, parameters }), answer_method: "POST",
    ring_url: statusUrl, ring_method: "POST",
    hangup_url: statusUrl, hangup_method: "POST",
    ring_timeout: ringingSeconds(ringingMs),
    // The result is reported while the call continues.
    ...(detectMachine ? {
      machine_detection: "true",
      machine_detection_url: statusUrl, machine_detection_method: "POST",
    } : {}),
  };
}

const Order = TypeCompiler.Compile(Type.Object({ request_uuid: Type.String({ minLength: 1 }) }));

const isUnknown = ({ status }: RestAnswer): boolean => status === 404;

export function createPlivoCalls(options: PlivoCallsOptions): HostedCalls {
  const { url, authId, authToken, limits } = options;
  const client = createRestClient({
    vendor: VENDOR,
    root: `${url.replace(/\/+$/, "")}/v1/Account/${authId}`,
    authorization: () => basicAuthorization(authId, authToken),
    limits: { ...HOSTED_REST_LIMITS, ...limits },
  });
  return {
    account: "plivo",
    vendor: VENDOR,
    dialect: "plivo",
    signsSockets: true,
    connect: null,
    isGenuine: (request) => isGenuine(authToken, request),
    read,
    dial: (request) => client.order("/Call/", { json: orderOf(request) },
      (body) => (Order.Check(body) ? body.request_uuid : null)),
    answer: async (_callId, { url: streamUrl, parameters }) => {
      const extraHeaders = extraHeadersOf(parameters);
      assert(extraHeaders !== null, "Plivo does not return these stream parameters");
      return xml(streamElement(streamUrl, extraHeaders));
    },
    refuse: (_callId, reason) => Promise.resolve(xml(element("Hangup", { reason }))),
    hangUp: async (callId) => {
      const id = segment(callId);
      // A queued request is not a call yet. When neither exists, the call is over.
      for (const path of [`/Call/${id}/`, `/Request/${id}/`]) {
        const answer = await client.ask("DELETE", path);
        if (isDone(answer)) return;
        if (!isUnknown(answer)) throw client.refusal(answer);
      }
    },
    transfer: async ({ callId, to, callerId, statusUrl }) => {
      const answer = await client.ask("POST", `/Call/${segment(callId)}/`, { json: {
        legs: "aleg", aleg_url: asking(statusUrl, { kind: "dial", to, callerId }), aleg_method: "POST",
      } });
      if (isUnknown(answer)) throw new ProviderError("the call is over", { retryable: false });
      if (!isDone(answer)) throw client.refusal(answer);
    },
    // Keys are sent on the stream instead, in order with the audio.
    sendDtmf: null,
    close: client.close,
  };
}
