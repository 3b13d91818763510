// Calls that come in: finds the assistant the number rings at, begins the record, asks the
// assistant's webhook who is calling, and has the carrier answer or refuse. Called by calling.ts.
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { RouteInbound } from "#features/phone-numbers/inbound-routing.ts";
import type { RefusalCause } from "#providers/carriers/port.ts";
import type { Calls } from "./calls.ts";
import type { Call } from "./records.ts";
import type { AssistantFacts, CallingOptions } from "./live-call.ts";

interface InboundOptions
  extends Pick<CallingOptions, "askInbound" | "factsOf" | "findAssistant" | "whyCannotTalk"> {
  calls: Calls;
  routeInbound: RouteInbound;
  log: Logger;
}

/** What is known of a call before anybody has answered. */
interface Arrival {
  to: string;
  from: string | null;
  trunkId: number | null;
  /** Null: a hosted carrier brings it, its signature checked. */
  sourceAddress: string | null;
}

export interface Admitted {
  call: Call;
  assistant: Assistant;
  secondsMax: number;
  facts: AssistantFacts;
}

type Refused = Extract<Awaited<ReturnType<RouteInbound>>, { kind: "refused" }>;

const REFUSALS: Record<Refused["cause"], RefusalCause> = {
  unknown_number: "unknown_number",
  not_allowed: "not_allowed",
  tied: "not_allowed",
  no_assistant: "unavailable",
  inactive_assistant: "unavailable",
};

/** Begins the record of a call that may ring; else why not. */
export async function admit(
  options: InboundOptions, arrival: Arrival,
): Promise<Admitted | RefusalCause> {
  const { calls, findAssistant, routeInbound, whyCannotTalk, log } = options;
  const { to, from, trunkId, sourceAddress } = arrival;
  const route = await routeInbound({ calledNumber: to, trunkId, sourceAddress });
  if (route.kind === "refused") {
    if (route.cause === "tied") {
      log.warn({ called: to, source: sourceAddress },
        "a call fits numbers of several accounts and rings nowhere: approve one with parley number approve");
    }
    log.info({ cause: route.cause, source: sourceAddress }, "an inbound call was refused");
    return REFUSALS[route.cause];
  }
  const assistant = await findAssistant(route.accountId, route.assistantId);
  if (!assistant) return "unavailable";
  const refuse = (reason: string): void =>
    log.warn({ assistant_id: assistant.id, reason }, "an inbound call was refused");
  // Before the record: a call nobody can hear is refused, not failed.
  const why = whyCannotTalk(assistant, null);
  if (why !== null) {
    refuse(why);
    return "unavailable";
  }
  const facts = await options.factsOf(assistant);
  try {
    const { call, secondsMax } = await calls.begin({
      assistant, type: "inbound", conversationUuid: null, assistantPhone: route.number,
      customerPhone: from, variables: {},
    });
    return { call, assistant, secondsMax, facts };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    refuse(error.message);
    // The plan's calls at a time are the lines there are: the next caller hears that they are busy.
    return error.status === 429 ? "busy" : "unavailable";
  }
}

/** The call with what the assistant's webhook says about who is calling. */
export async function withInboundVariables(
  { askInbound, calls }: InboundOptions, call: Call, { id: assistantId, settings }: Assistant,
): Promise<Call> {
  const { inbound_webhook_url: url } = settings;
  if (url === null) return call;
  const { id: callId, accountId, customerPhone, assistantPhone } = call;
  const answered = await askInbound({
    url, accountId, assistantId, callId, customerPhone, assistantPhone, variables: call.variables,
  });
  if (Object.keys(answered).length === 0) return call;
  const variables = { ...call.variables, ...answered };
  await calls.setVariables(call, variables);
  return { ...call, variables };
}
