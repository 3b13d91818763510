// Calls over an Asterisk (20.18, 22.8 or later): placed, answered and ended over its REST
// interface (ARI), reported over a connection we keep open to it, with audio over a WebSocket that
// Asterisk opens to us (chan_websocket). Asterisk needs to reach us only for that socket. Unlike
// the other carriers of this folder, this one keeps state: the calls in its switchboard.
// Tested with a real Asterisk 22.
import assert from "node:assert/strict";
import { ProviderError } from "#core/faults.ts";
import { isE164, isUuid } from "#core/values.ts";
import { createAri, VENDOR, type Ari } from "./ari.ts";
import { createLink, type Link, type LinkOptions } from "./link.ts";
import { Switchboard, type SwitchboardOptions } from "./switchboard.ts";
import { transferTo } from "./transfer.ts";
import type { Dialled, HostedCalls, HostedDial, Join, WebhookReply } from "#providers/carriers/hosted/port.ts";
import { ringingSeconds } from "#providers/carriers/hosted/ringing.ts";

export interface AsteriskCallsOptions
  extends LinkOptions, Omit<SwitchboardOptions, "ari" | "link"> {
  /** The template of the endpoint to dial, such as `PJSIP/{number}@trunk`. */
  endpoint: string;
}

/** Our own limit in seconds; Asterisk accepts any. */
const RINGING_S_MAX = 600;
const TAKEN: WebhookReply = { status: 204, contentType: "text/plain", body: "" };

const failure = (what: string, retryable = false): ProviderError =>
  new ProviderError(`${VENDOR}: ${what}`, { retryable });
const refused = (what: string, retryable = false): Dialled =>
  ({ kind: "refused", error: failure(what, retryable) });

/** The token in a call's `statusUrl`, which names all of the call's objects at Asterisk. */
function tokenOf({ statusUrl }: Join): string {
  const token = /[^/]*$/.exec(statusUrl)?.[0] ?? "";
  assert(isUuid(token), "the address for reports ends in no token");
  return token;
}

interface Parts {
  ari: Ari;
  link: Link;
  calls: Switchboard;
  endpointOf(number: string): string;
}

async function dial(
  { ari, link, calls, endpointOf }: Parts, { to, from, ringingMs, join }: HostedDial,
): Promise<Dialled> {
  if (!isE164(to)) return refused("this number cannot be dialled");
  // Without the connection, no report of the call would reach us.
  if (!link.isOpen) return refused("there is no connection to Asterisk", true);
  if (calls.isFull) return refused("Asterisk has too many calls", true);
  const token = tokenOf(join);
  const line = calls.add({
    token, callId: calls.channelOf(token), parameters: join.parameters,
    isPlaced: false, isAnswered: false,
  });
  const dialled = await ari.originate({
    channelId: line.callId, endpoint: endpointOf(to), callerId: isE164(from) ? from : null,
    timeoutS: ringingSeconds(ringingMs, { max: RINGING_S_MAX }),
  });
  line.isPlaced = true;
  if (dialled.kind === "refused") await calls.forget(line);
  return dialled;
}

export function createAsteriskCalls(options: AsteriskCallsOptions): HostedCalls {
  const { app, endpoint } = options;
  const ari = createAri(options);
  const link = createLink(options);
  const calls = new Switchboard({ ...options, ari, link });
  const endpointOf = (number: string): string => endpoint.replaceAll("{number}", () => number);
  let closing: Promise<void> | null = null;
  return {
    account: "asterisk",
    vendor: VENDOR,
    dialect: "asterisk",
    signsSockets: false,
    connect: (handlers) => calls.open(handlers),
    // Asterisk sends no webhooks.
    isGenuine: () => false,
    read: () => null,
    dial: (request) => dial({ ari, link, calls, endpointOf }, request),
    answer: async (callId, join) => {
      const line = calls.add({
        token: tokenOf(join), callId, parameters: join.parameters,
        isPlaced: true, isAnswered: true,
      });
      try {
        await ari.answer(callId);
        await calls.giveRoom(line);
      } catch (error) {
        // The caller of `answer` hangs up.
        await calls.forget(line);
        throw error;
      }
      return TAKEN;
    },
    refuse: async (callId, reason) => {
      await ari.hangUp(callId, reason);
      calls.settled(callId);
      return TAKEN;
    },
    hangUp: async (callId) => {
      await ari.hangUp(callId);
      // The room is closed with its call; we wait for that, because the server may be stopping.
      await calls.find(callId)?.room?.close();
    },
    transfer: async ({ callId, to, callerId }) => {
      const line = calls.find(callId);
      if (!line) throw failure("the call is over");
      if (!isE164(to)) throw failure("calls can be transferred to telephone numbers only");
      line.isHandedOn = true;
      try {
        await transferTo(ari, { callId, app, endpoint: endpointOf(to), callerId });
        await calls.forget(line);
      } finally {
        line.isHandedOn = false;
      }
    },
    sendDtmf: (callId, digits) => ari.dtmf(callId, digits),
    close: () => (closing ??= (calls.close(), ari.close())),
  };
}
