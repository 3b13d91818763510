// Checks that a request must pass before its content is considered (RFC 3261 8.2). No state is
// kept for a request that is refused here.
import { sdpOf, secondsOf, tokensOf } from "#providers/carriers/sip/grammar/bodies.ts";
import { ALLOW, SUPPORTED } from "./dialog.ts";
import { responseTo, type SipRequest, type SipResponse } from "#providers/carriers/sip/grammar/message.ts";
import { answerTerms } from "./session-timer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";

const METHODS = new Set(ALLOW.split(", "));
/** Methods of SIP, including those that this element does not implement (405, not 501). */
const KNOWN = new Set([
  ...METHODS, "REGISTER", "SUBSCRIBE", "PUBLISH", "MESSAGE", "REFER", "PRACK",
]);
const EXTENSIONS = new Set(SUPPORTED.split(", "));
/** Reliable provisional responses (RFC 3262). Who requires them gets none that needs a PRACK. */
export const RELIABLE = "100rel";

/** Null when the request passes. `tag` is for the To of the refusal. */
export function refusalOf(request: SipRequest, tag: string | undefined): SipResponse | null {
  const { method, headers } = request;
  if (!METHODS.has(method)) {
    const response = responseTo(request, KNOWN.has(method) ? 405 : 501, undefined, tag);
    response.headers.add("Allow", ALLOW);
    return response;
  }
  const missing = tokensOf(headers, "Require").filter((name) =>
    !EXTENSIONS.has(name) && !(name === RELIABLE && method === "INVITE"));
  // Require does not apply to CANCEL and ACK (RFC 3261 8.2.2.3).
  if (missing.length > 0 && method !== "CANCEL" && method !== "ACK") {
    const response = responseTo(request, 420, undefined, tag);
    response.headers.add("Unsupported", missing.join(", "));
    return response;
  }
  return null;
}

/** Further checks for an initial INVITE; null when it passes. */
export function inviteRefusalOf(request: SipRequest, tag: string): SipResponse | null {
  const { headers } = request;
  const refuse = (status: number, ...extra: [string, string][]) => {
    const response = responseTo(request, status, undefined, tag);
    for (const [name, value] of extra) response.headers.add(name, value);
    return response;
  };
  // This call may make us place another, so a call that loops has to end here.
  if (secondsOf(headers, "Max-Forwards") === 0) return refuse(483);
  if (headers.get("Contact") === null) return refuse(400);
  const sdp = sdpOf(request);
  if (sdp !== null && typeof sdp !== "string") return refuse(415, ["Accept", "application/sdp"]);
  if (answerTerms(headers).kind === "too_small") {
    return refuse(422, ["Min-SE", String(LIMITS.sessionExpiresMinS)]);
  }
  return null;
}
