// Calls over Vonage's Voice API (v1) with NCCO documents. Tested against a double and Vonage's own
// SDK, never against a live account.
//
// A call at Vonage has a leg for the telephone, whose id is the call's, and one for the WebSocket.
// The telephone's leg of an outbound call is reported at the URL given in the request. That of an
// inbound call is reported at the application's event URL, so the end of its stream ends the call.
//
// A call exists in one region of Vonage, and every other region responds that there is no such
// call, or that the request is bad. When the numbers are in another region than the one nearest to
// the server, `url` must be that region's.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProviderError } from "#core/faults.ts";
import type { System } from "#core/system.ts";
import { withoutPlus } from "./numbers.ts";
import type { HostedCalls, HostedDial, WebhookReply } from "./port.ts";
import {
  createRestClient, HOSTED_REST_LIMITS, isDone, segment, type RestAnswer, type RestLimits,
} from "./rest.ts";
import { ringingSeconds } from "./ringing.ts";
import { isFromVonage } from "./signatures.ts";
import { mediaNcco, transferNcco } from "./vonage-ncco.ts";
import { readVonage } from "./vonage-report.ts";
import { createVonageAuthorization } from "./vonage-token.ts";

export interface VonageCallsOptions {
  /** `https://api.nexmo.com`, or of a region. */
  url: string;
  applicationId: string;
  /** PEM. */
  privateKey: string;
  /** What webhooks are signed with. */
  signatureSecret: string;
  system: Pick<System, "now" | "uuid">;
  limits?: Partial<RestLimits>;
}

const Call = TypeCompiler.Compile(Type.Object({ uuid: Type.String({ minLength: 1 }) }));

const VENDOR = "Vonage";
/** The most seconds that Vonage accepts for `ringing_timer`. */
const RINGING_S_MAX = 120;

const json = (ncco: object[]): WebhookReply =>
  ({ status: 200, contentType: "application/json; charset=utf-8", body: JSON.stringify(ncco) });

const orderOf = ({ to, from, ringingMs, join, detectMachine }: HostedDial): object => ({
  to: [{ type: "phone", number: withoutPlus(to) }],
  from: { type: "phone", number: withoutPlus(from) },
  // Its id is not known yet, so the stream cannot bring it back.
  ncco: mediaNcco(join, null),
  event_url: [join.statusUrl],
  event_method: "POST",
  ringing_timer: ringingSeconds(ringingMs, { max: RINGING_S_MAX }),
  // In every other mode the call is silent until Vonage has made up its mind.
  ...(detectMachine
    ? { advanced_machine_detection: { behavior: "continue", mode: "default" } }
    : {}),
});

export function createVonageCalls(options: VonageCallsOptions): HostedCalls {
  const { url, signatureSecret, system, limits } = options;
  const client = createRestClient({
    vendor: VENDOR,
    root: `${url.replace(/\/+$/, "")}/v1/calls`,
    authorization: createVonageAuthorization(options),
    limits: { ...HOSTED_REST_LIMITS, ...limits },
  });
  const update = (callId: string, body: object): Promise<RestAnswer> =>
    client.ask("PUT", `/${segment(callId)}`, { json: body });
  return {
    account: "vonage",
    vendor: VENDOR,
    dialect: "vonage",
    signsSockets: true,
    connect: null,
    isGenuine: ({ header, body }) => isFromVonage({
      signatureSecret, authorization: header("authorization"), body, nowMs: system.now() / 1000,
    }),
    read: readVonage,
    dial: (request) => client.order("", { json: orderOf(request) },
      (body) => (Call.Check(body) ? body.uuid : null)),
    answer: (callId, join) => Promise.resolve(json(mediaNcco(join, callId))),
    // An NCCO cannot state a reason; an empty one ends the call.
    refuse: () => Promise.resolve(json([])),
    hangUp: async (callId) => {
      // Ends a call that still rings as well.
      const answer = await update(callId, { action: "hangup" });
      if (!isDone(answer) && answer.status !== 404) throw client.refusal(answer);
    },
    transfer: async ({ callId, to, callerId, statusUrl }) => {
      const destination = { type: "ncco", ncco: transferNcco(to, callerId, statusUrl) };
      const answer = await update(callId, { action: "transfer", destination });
      if (answer.status === 404) {
        throw new ProviderError("the call is over, or in another region than PARLEY_VONAGE_URL", {
          retryable: false,
        });
      }
      if (!isDone(answer)) throw client.refusal(answer);
    },
    sendDtmf: async (callId, digits) => {
      const answer = await client.ask("PUT", `/${segment(callId)}/dtmf`, { json: { digits } });
      if (!isDone(answer)) throw client.refusal(answer);
    },
    close: client.close,
  };
}
