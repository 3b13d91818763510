// What is wrong with a request before anybody looks at what it is about (RFC 3261 8.2). Nothing is
// kept of what is refused here.
import { sdpOf, secondsOf, tokensOf } from "#providers/carriers/sip/grammar/bodies.ts";
import { ALLOW, SUPPORTED } from "./dialog.ts";
import { responseTo, type SipRequest, type SipResponse } from "#providers/carriers/sip/grammar/message.ts";
import { answerTerms } from "./session-timer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";

const METHODS = new Set(ALLOW.split(", "));
/** What others may ask of a SIP element, but not of this one. */
const KNOWN = new Set([
  ...METHODS, "REGISTER", "SUBSCRIBE", "PUBLISH", "MESSAGE", "REFER", "PRACK",
]);
const EXTENSIONS = new Set(SUPPORTED.split(", "));

/** Null: to be looked at. The caller adds the tag. */
export function refusalOf(request: SipRequest, tag: string | undefined): SipResponse | null {
  const { method, headers } = request;
  if (!METHODS.has(method)) {
    const response = responseTo(request, KNOWN.has(method) ? 405 : 501, undefined, tag);
    response.headers.add("Allow", ALLOW);
    return response;
  }
  const missing = tokensOf(headers, "Require").filter((name) => !EXTENSIONS.has(name));
  // Extensions are not for CANCEL and ACK (RFC 3261 8.2.2.3).
  if (missing.length > 0 && method !== "CANCEL" && method !== "ACK") {
    const response = responseTo(request, 420, undefined, tag);
    response.headers.add("Unsupported", missing.join(", "));
    return response;
  }
  return null;
}

/** What else an INVITE needs that begins something. */
export function inviteRefusalOf(request: SipRequest, tag: string): SipResponse | null {
  const { headers } = request;
  const refuse = (status: number, ...extra: [string, string][]) => {
    const response = responseTo(request, status, undefined, tag);
    for (const [name, value] of extra) response.headers.add(name, value);
    return response;
  };
  // We may place another call for it, so a call that goes in circles must come to its end here.
  if (secondsOf(headers, "Max-Forwards") === 0) return refuse(483);
  if (headers.get("Contact") === null) return refuse(400);
  const sdp = sdpOf(request);
  if (sdp !== null && typeof sdp !== "string") return refuse(415, ["Accept", "application/sdp"]);
  if (answerTerms(headers).kind === "too_small") {
    return refuse(422, ["Min-SE", String(LIMITS.sessionExpiresMinS)]);
  }
  return null;
}
