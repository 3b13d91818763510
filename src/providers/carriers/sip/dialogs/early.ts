// What the far end asks of a call that rings, by the tag it already has of us (RFC 3311 5.2, RFC
// 3261 15.1.2). Nothing of the call changes but that whoever rang us may hang up this way, too: a
// 481 would tell the far end that there is no such call, and end it.
import { responseTo, type SipRequest, type SipResponse } from "#providers/carriers/sip/grammar/message.ts";
import { ALLOW, SUPPORTED, type InDialog } from "./dialog.ts";

export type EarlyCall = Pick<InDialog, "receive">;

const RETRY_S = 10;

/** For what cannot be done before something else is. */
export function retryLater(request: SipRequest): SipResponse {
  const response = responseTo(request, 500);
  response.headers.add("Retry-After", String(RETRY_S));
  return response;
}

/** `hangUp`: for the far end; absent where it has not called us. */
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
