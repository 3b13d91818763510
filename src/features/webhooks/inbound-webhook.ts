// Asks an assistant's inbound webhook who is calling, before the assistant speaks: an answer in
// time becomes variables of the call. On any failure, the call goes on without them.
import type { Logger } from "#core/logger.ts";
import { LIMITS } from "#core/limits.ts";
import { isoMicros, type System } from "#core/system.ts";
import { jsonOf, recordOf } from "#core/values.ts";
import { fittingVariables } from "#core/variables.ts";
import type { Outbound } from "#outbound/request.ts";
import { signatureHeaders, type Endpoint, type WebhookStore } from "./webhooks.ts";

interface InboundAskOptions {
  store: WebhookStore;
  outbound: Outbound;
  signingSecrets(endpoint: Endpoint): string[];
  system: System;
  log: Logger;
}

interface InboundFacts {
  url: string;
  accountId: number;
  assistantId: number;
  callId: number;
  customerPhone: string | null;
  assistantPhone: string | null;
  variables: Record<string, string>;
}

/** Never rejects. */
export function createInboundAsk(options: InboundAskOptions) {
  const { store, outbound, system, log } = options;
  const ask = async (facts: InboundFacts): Promise<Record<string, string>> => {
    const { url, accountId, assistantId, callId } = facts;
    const now = system.now();
    const endpoint = await store.assistantEndpoint({
      accountId, assistantId, purpose: "inbound_call", url, now,
    });
    const body = JSON.stringify({
      customer_phone: facts.customerPhone,
      assistant_phone: facts.assistantPhone,
      assistant_id: assistantId,
      call_id: callId,
      status: "incoming",
      timestamp: isoMicros(now),
      variables: facts.variables,
    });
    const secrets = options.signingSecrets(endpoint);
    const reply = await outbound.request({
      url,
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...signatureHeaders(`msg_call_${callId}`, body, secrets, now),
      },
      body,
      totalMs: LIMITS.inboundWebhookMs,
      bytesMax: LIMITS.webhookResponseBytesMax,
    });
    if (reply.kind !== "reply" || reply.status < 200 || reply.status > 299) {
      const why = reply.kind === "reply" ? reply.status : reply.reason;
      log.warn({ call_id: callId, why }, "the inbound webhook sent no valid answer in time");
      return {};
    }
    return variablesOf(reply.body.toString("utf8"));
  };
  return (facts: InboundFacts): Promise<Record<string, string>> =>
    ask(facts).catch((error: unknown) => {
      log.error({ err: error, call_id: facts.callId }, "could not call the inbound webhook");
      return {};
    });
}

/** Members of the answer, or of its `variables`; any other answer gives none. */
export function variablesOf(text: string): Record<string, string> {
  const value = recordOf(jsonOf(text)) ?? {};
  const { variables } = value;
  const isWrapped = typeof variables === "object" && variables !== null;
  return fittingVariables(isWrapped ? variables : value);
}
