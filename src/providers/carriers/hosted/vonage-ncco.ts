// NCCO documents, which tell Vonage what to do with a call. A call ends when all of its document is
// done, and `connect` is done when the other end, here the WebSocket or a telephone, is gone.
import assert from "node:assert/strict";
import { rateOfDialect } from "./dialects.ts";
import { withoutPlus } from "./numbers.ts";
import type { Join } from "./port.ts";
import { TRANSFER_RINGING_S } from "./ringing.ts";

/** Vonage's limit for all headers of a WebSocket together, as JSON. */
const HEADERS_BYTES_MAX = 512;

/**
 * Where the legs that a document adds to a call are reported: the WebSocket, and the target of a
 * transfer. They have ids and statuses of their own, which are not those of the call.
 */
const addedLegsUrl = (statusUrl: string): string => `${statusUrl}?leg=added`;

export const isOfAddedLeg = (url: string): boolean => /\?leg=added$/.test(url);

const connect = (statusUrl: string, endpoint: object, more: object = {}): object => ({
  action: "connect", eventUrl: [addedLegsUrl(statusUrl)], eventMethod: "POST", ...more,
  endpoint: [endpoint],
});

/** Connects the sound of the call, both ways, to a WebSocket whose opening Vonage signs. */
export function mediaNcco(join: Join, callId: string | null): object[] {
  const headers = { ...join.parameters, ...(callId === null ? {} : { call_uuid: callId }) };
  assert(Buffer.byteLength(JSON.stringify(headers)) <= HEADERS_BYTES_MAX, "headers are too long");
  return [connect(join.statusUrl, {
    type: "websocket", uri: join.url, "content-type": `audio/l16;rate=${rateOfDialect("vonage")}`,
    headers, authorization: { type: "vonage" },
  })];
}

/** Connects the caller to a number or a SIP address. */
export function transferNcco(to: string, callerId: string | null, statusUrl: string): object[] {
  const endpoint = /^sips?:/i.test(to)
    ? { type: "sip", uri: to }
    : { type: "phone", number: withoutPlus(to) };
  return [connect(statusUrl, endpoint, {
    ...(callerId === null ? {} : { from: withoutPlus(callerId) }), timeout: TRANSFER_RINGING_S,
  })];
}
