// Answers requests within an early dialog, while the call rings (RFC 3311 5.2, RFC 3261 15.1.2).
// They change nothing about the call, except that a caller may also hang up with BYE: a 481 would
// tell the far end that there is no such call, and end it.
import { responseTo, type SipRequest, type SipResponse } from "#providers/carriers/sip/grammar/message.ts";
import { ALLOW, SUPPORTED, type InDialog } from "./dialog.ts";

export type EarlyCall = Pick<InDialog, "receive">;

const RETRY_S = 10;

/** Refuses a request that has to wait for something else to finish. */
export function retryLater(request: SipRequest): SipResponse {
  const response = responseTo(request, 500);
  response.headers.add("Retry-After", String(RETRY_S));
  return response;
}

/** `hangUp` ends the call for the far end; absent when the far end is not the caller. */
export const earlyCall = (contact: string, hangUp?: () => void): EarlyCall => ({
  receive: (request, _peer, answer) => answer(answerOf(request, contact, hangUp)),
});

function answerOf(request: SipRequest, contact: string, hangUp?: () => void): SipResponse {
  if (request.method === "BYE" && hangUp) {
    hangUp();
    return responseTo(request, 200);
  }
  if (request.method === "BYE") return responseTo(request, 481);
  if (request.method !== "UPDATE") return retryLater(request);
  // An offer has to wait for the answer to the one before it.
  if (request.body.length > 0) return hangUp ? retryLater(request) : responseTo(request, 491);
  const response = responseTo(request, 200);
  response.headers.add("Contact", contact).add("Allow", ALLOW).add("Supported", SUPPORTED);
  return response;
}
