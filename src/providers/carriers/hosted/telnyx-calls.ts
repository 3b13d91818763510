// Calls over Telnyx' Voice API (Call Control, v2): every command is a request, and the call's
// events come by webhook. Tested against a double that follows the documentation and against what
// Telnyx' own SDK sends and verifies, never against a live account.
import { hash } from "node:crypto";
import { ProviderError } from "#core/faults.ts";
import type { System } from "#core/system.ts";
import { jsonOf } from "#core/values.ts";
import type { LegEndCause, LegEvent } from "#providers/carriers/port.ts";
import { at, encodeClientState } from "./dialect-table.ts";
import type {
  CallReport, CarrierRequest, HostedCalls, HostedDial, Join, WebhookReply,
} from "./port.ts";
import {
  createRestClient, errorCodeOf, HOSTED_REST_LIMITS, isDone, segment, type RestAnswer,
  type RestLimits,
} from "./rest.ts";
import { ringingSeconds, TRANSFER_RINGING_S } from "./ringing.ts";
import { isFromTelnyx } from "./signatures.ts";
import { CAUSE_OF_SIP, entryOf } from "./status.ts";

export interface TelnyxCallsOptions {
  /** `https://api.telnyx.com` */
  url: string;
  apiKey: string;
  /** The key that verifies webhooks: an Ed25519 public key in base64. */
  publicKey: string;
  /** The Voice API application that places the calls. */
  connectionId: string;
  system: Pick<System, "now">;
  limits?: Partial<RestLimits>;
}

const VENDOR = "Telnyx";
/** Seconds that Telnyx accepts for `timeout_secs`. */
const RINGING_S = { min: 5, max: 600 };
/** "Call has already ended", and an id that is no call's. */
const OVER = new Set(["90018", "90015"]);
/** Anything but a 200 makes Telnyx deliver the webhook again, to the failover URL. */
const TAKEN: WebhookReply = { status: 200, contentType: "text/plain", body: "" };

// Reports

/** In a `statusUrl`: few webhooks have the direction, and a transfer's target is another call. */
const QUERY = { direction: "direction", handedOn: "handed_on" };

const CAUSES: Record<string, LegEndCause> = {
  timeout: "no_answer", no_answer: "no_answer", user_busy: "busy", call_rejected: "rejected",
  not_found: "failed",
};

const ANSWERERS: Record<string, "human" | "machine"> = {
  human: "human", human_residence: "human", human_business: "human",
  machine: "machine", fax_detected: "machine",
};

type Direction = "inbound" | "outbound";
const DIRECTIONS: Record<string, Direction> = {
  incoming: "inbound", outgoing: "outbound", inbound: "inbound", outbound: "outbound",
};
/** The value of `hangup_source` that means us. */
const OUR_SIDE = { inbound: "callee", outbound: "caller" };

function textAt(message: unknown, path: string): string | null {
  const value = at(message, path);
  return typeof value === "string" && value !== "" ? value : null;
}

function causeOf(payload: unknown, direction: Direction | null): LegEndCause {
  const cause = textAt(payload, "hangup_cause");
  if (cause === "normal_clearing") {
    const isOurs = direction !== null && textAt(payload, "hangup_source") === OUR_SIDE[direction];
    return isOurs ? "we_hung_up" : "far_hung_up";
  }
  // The calling side hung up while it rang.
  if (cause === "originator_cancel") return direction === "outbound" ? "we_hung_up" : "far_hung_up";
  return entryOf(CAUSES, cause)
    ?? entryOf(CAUSE_OF_SIP, textAt(payload, "sip_hangup_cause")) ?? "failed";
}

function eventsOf(kind: string, payload: unknown, direction: Direction | null): LegEvent[] {
  switch (kind) {
    // Telnyx does not report ringing; this event comes closest.
    case "call.initiated":
      return direction === "outbound" ? [{ kind: "ringing" }] : [];
    case "call.answered":
    // The call continues without its stream (after a crash of ours, say) unless it is hung up.
    case "streaming.stopped":
    case "streaming.failed":
      return [{ kind: "answered" }];
    case "call.machine.detection.ended":
    case "call.machine.premium.detection.ended": {
      const by = entryOf(ANSWERERS, textAt(payload, "result")) ?? "unknown";
      return [{ kind: "answered_by", by }];
    }
    case "call.hangup":
      return [{ kind: "ended", cause: causeOf(payload, direction) }];
    default:
      return [];
  }
}

function read({ url, body }: CarrierRequest): CallReport | null {
  const message = jsonOf(Buffer.from(body).toString("utf8"));
  const kind = textAt(message, "data.event_type") ?? "";
  const payload = at(message, "data.payload");
  const id = textAt(payload, "call_control_id");
  if (id === null) return null;
  const query = new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? "");
  const direction = entryOf(DIRECTIONS, query.get(QUERY.direction))
    ?? entryOf(DIRECTIONS, textAt(payload, "direction"));
  const report = {
    callId: id, from: textAt(payload, "from"), to: textAt(payload, "to"),
    isOffer: false, events: [], reply: TAKEN,
  };
  const handedOn = query.get(QUERY.handedOn);
  if (handedOn !== null && handedOn !== id) {
    // This is the call to the transfer's target. It only matters when it fails, because the first
    // call then continues with nobody there. If the two have talked, Telnyx ends both calls.
    const isTaken = kind !== "call.hangup" || textAt(payload, "hangup_cause") === "normal_clearing";
    return { ...report, callId: handedOn, events: isTaken ? [] : [{ kind: "transfer_failed" }] };
  }
  return {
    ...report,
    isOffer: kind === "call.initiated" && textAt(payload, "direction") === "incoming",
    events: eventsOf(kind, payload, direction),
  };
}

// Commands

function reportedAt(statusUrl: string, name: string, value: string) {
  const url = new URL(statusUrl);
  url.searchParams.set(name, value);
  return { webhook_url: url.href, webhook_url_method: "POST" };
}

/** Audio both ways, and reports. `command_id` makes a repeat within a minute have no effect. */
const joined = ({ url, parameters, statusUrl }: Join, direction: Direction) => ({
  stream_url: url,
  stream_track: "inbound_track",
  stream_codec: "PCMU",
  stream_bidirectional_mode: "rtp",
  stream_bidirectional_codec: "PCMU",
  stream_bidirectional_target_legs: "self",
  client_state: encodeClientState(parameters),
  command_id: hash("sha256", statusUrl, "hex"),
  ...reportedAt(statusUrl, QUERY.direction, direction),
});

function orderOf({ to, from, ringingMs, join, detectMachine }: HostedDial, connectionId: string) {
  return {
    connection_id: connectionId, to, from,
    timeout_secs: ringingSeconds(ringingMs, RINGING_S),
    // Else it would ring as long again over every further route.
    retry_on_timeout: false,
    ...joined(join, "outbound"),
    ...(detectMachine ? { answering_machine_detection: "detect" } : {}),
  };
}

/** Leaves the colon of the ids unescaped, as Telnyx' SDK does. */
const pathOf = (callId: string, action: string): string =>
  `/calls/${segment(callId).replaceAll("%3A", ":")}/actions/${action}`;

const isOver = ({ status, body }: RestAnswer): boolean =>
  status === 404 || OVER.has(errorCodeOf(body) ?? "");

export function createTelnyxCalls(options: TelnyxCallsOptions): HostedCalls {
  const { url, apiKey, publicKey, connectionId, system, limits } = options;
  const client = createRestClient({
    vendor: VENDOR,
    root: `${url.replace(/\/+$/, "")}/v2`,
    authorization: () => `Bearer ${apiKey}`,
    limits: { ...HOSTED_REST_LIMITS, ...limits },
  });
  /** True when it succeeds; false when the call is over. */
  const command = async (callId: string, action: string, json: object): Promise<boolean> => {
    const answer = await client.ask("POST", pathOf(callId, action), { json });
    if (isDone(answer)) return true;
    if (isOver(answer)) return false;
    throw client.refusal(answer);
  };
  const commandToLive = async (callId: string, action: string, json: object): Promise<void> => {
    if (await command(callId, action, json)) return;
    throw new ProviderError("the call is over", { retryable: false });
  };
  return {
    account: "telnyx",
    vendor: VENDOR,
    dialect: "telnyx",
    outlivesStream: true,
    signsSockets: false,
    connect: null,
    isGenuine: ({ header, body }) => isFromTelnyx({
      publicKey, signature: header("telnyx-signature-ed25519"),
      timestamp: header("telnyx-timestamp"), body, nowMs: system.now() / 1000,
    }),
    read,
    dial: (request) => client.order("/calls", { json: orderOf(request, connectionId) },
      (body) => textAt(body, "data.call_control_id")),
    answer: async (callId, join) => {
      await commandToLive(callId, "answer", joined(join, "inbound"));
      return TAKEN;
    },
    refuse: async (callId, reason) => {
      const cause = reason === "busy" ? "USER_BUSY" : "CALL_REJECTED";
      await command(callId, "reject", { cause });
      return TAKEN;
    },
    // Ends a call that still rings as well. It has no `command_id`, because a failed command would
    // then keep the next one from being carried out.
    hangUp: async (callId) => void await command(callId, "hangup", {}),
    transfer: ({ callId, to, callerId, statusUrl }) => commandToLive(callId, "transfer", {
      to,
      ...(callerId === null ? {} : { from: callerId }),
      timeout_secs: TRANSFER_RINGING_S,
      ...reportedAt(statusUrl, QUERY.handedOn, callId),
    }),
    sendDtmf: (callId, digits) => commandToLive(callId, "send_dtmf", { digits }),
    close: client.close,
  };
}
