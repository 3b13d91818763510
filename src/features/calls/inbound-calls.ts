// Inbound calls: finds the assistant that the number rings at, begins the record, asks the
// assistant's webhook who is calling, and has the carrier answer or refuse. Called by calling.ts.
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { RouteInbound } from "#features/phone-numbers/inbound-routing.ts";
import type { RefusalCause } from "#providers/carriers/port.ts";
import type { Calls } from "./calls.ts";
import type { Call } from "./records/records.ts";
import type { AssistantFacts, CallingOptions } from "./live-call.ts";

interface InboundOptions
  extends Pick<
    CallingOptions, "askInbound" | "capacity" | "factsOf" | "findAssistant" | "whyCannotTalk"
  > {
  calls: Calls;
  routeInbound: RouteInbound;
  log: Logger;
}

/** What is known of an inbound call before it is answered. */
export interface Arrival {
  to: string;
  from: string | null;
  trunkId: number | null;
  /** Null: a hosted carrier delivered it, whose signature was checked. */
  sourceAddress: string | null;
  /** Idempotency key: the same one means a redelivery of the same call; absent: a new call. */
  key?: string;
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

/** Begins the record of a call and opens it; resolves to why it was refused, or null. */
export async function admit(
  options: InboundOptions, arrival: Arrival,
  open: (admitted: Admitted) => Promise<RefusalCause | null>,
): Promise<RefusalCause | null> {
  const { capacity, findAssistant, routeInbound, whyCannotTalk, log } = options;
  const { to, trunkId, sourceAddress } = arrival;
  const route = await routeInbound({ calledNumber: to, trunkId, sourceAddress });
  if (route.kind === "refused") {
    if (route.cause === "tied") {
      log.warn({ called: to, source: sourceAddress },
        "an inbound call's number belongs to several accounts, so it was refused: approve one with parley number approve");
    }
    log.info({ cause: route.cause, source: sourceAddress }, "an inbound call was refused");
    return REFUSALS[route.cause];
  }
  const assistant = await findAssistant(route.accountId, route.assistantId);
  if (!assistant) return "unavailable";
  const refuse = (cause: RefusalCause, reason: string): RefusalCause => {
    log.warn({ assistant_id: assistant.id, reason }, "an inbound call was refused");
    return cause;
  };
  // Checked before the record: a call that cannot be understood is refused, not failed.
  const why = whyCannotTalk(assistant, null);
  if (why !== null) return refuse("unavailable", why);
  const leave = capacity.hold(assistant, null);
  if (!leave) return refuse("overloaded", capacity.refusal().message);
  try {
    const begun = await begin(options, arrival, assistant, route.number);
    if (begun instanceof Fault) {
      // The plan's limit of parallel calls acts as the number of lines: one caller more hears busy.
      return refuse(begun.status === 429 ? "busy" : "unavailable", begun.message);
    }
    if (!begun.replayed) return await open(begun);
    if (begun.call.endedAt !== null) return refuse("unavailable", "the call is over");
    throw new Fault(503, "Another server has the call.", { retryAfterS: 1 });
  } finally {
    leave();
  }
}

async function begin(
  { calls, factsOf }: InboundOptions, { from, key }: Arrival, assistant: Assistant,
  number: string,
): Promise<Admitted & { replayed: boolean } | Fault> {
  const facts = await factsOf(assistant);
  const beginAs = async (idempotencyKey?: string): ReturnType<Calls["begin"]> => {
    const begun = await calls.begin({
      assistant, type: "inbound", conversationUuid: null, assistantPhone: number,
      customerPhone: from, variables: {}, idempotencyKey: idempotencyKey ?? null,
    });
    const { id, answeredAt, endReason } = begun.call;
    // Its server died before the answer: the call still rings, and is taken under a new key.
    const isLeft = begun.replayed && answeredAt === null && endReason === "server_restarted";
    return isLeft ? beginAs(`${idempotencyKey} after ${id}`) : begun;
  };
  try {
    return { ...await beginAs(key), assistant, facts };
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
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
