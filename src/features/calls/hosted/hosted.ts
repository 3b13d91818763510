// Calls over an account at a hosted carrier: finds the call that a report, a stream or an offer is
// about, and handles those of unknown calls. call.ts has one call, media.ts its sound, routes.ts
// the routes that the carrier requests. Made by app/hosted-carriers.ts.
import { Fault } from "#core/faults.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { wait, type System } from "#core/system.ts";
import { isE164 } from "#core/values.ts";
import type { SharedOffers } from "#cluster/cluster.ts";
import type { Socket, SocketHandlers } from "#http/exchange.ts";
import type { CallReport, HostedCalls, Join, WebhookReply } from "#providers/carriers/hosted/port.ts";
import { rateOfDialect } from "#providers/carriers/hosted/dialects.ts";
import type { RefusalCause } from "#providers/carriers/port.ts";
import { HostedCall, isUnderWay, type HostedCallOptions } from "./call.ts";
import { serveStream, TOKEN_PARAMETER } from "./media.ts";
import type { Face } from "#features/calls/face.ts";
import type { LegSetup } from "#features/calls/voice/protocol.ts";

/** Paths the carrier requests, below PARLEY_PUBLIC_URL or, for existing calls, PARLEY_NODE_URL. */
export const hostedPaths = (account: HostedAccount) => ({
  voice: `/carriers/${account}/voice`,
  status: `/carriers/${account}/status`,
  media: `/carriers/${account}/media`,
});

interface HostedOptions {
  carrier: HostedCalls;
  /** The URL at which people and carriers reach any node, without a trailing slash. */
  publicUrl: string;
  /** The URL at which a carrier reaches this node, for calls it has; absent: `publicUrl`. */
  nodeUrl?: string | null;
  /** Absent: there are no other nodes. */
  offers?: SharedOffers | undefined;
  system: System;
  log: Logger;
}

/** Our side of a call: its events go to `publish`. */
export interface HostedParty extends
  Pick<HostedCallOptions, "callId" | "callerId" | "publish" | "transferFailed"> {}

/** Who rings whom, as the carrier says. */
export interface HostedArrival {
  to: string;
  /** Null: withheld, or no telephone. */
  from: string | null;
  /** Idempotency key: a delivery with the same key is the same call. */
  key: string;
}

/** Answers an inbound call by calling `join`, or resolves to why it is refused. */
export type Receive = (
  arrival: HostedArrival, join: (party: HostedParty) => Face,
) => Promise<RefusalCause | null>;

export interface Hosted {
  readonly carrier: Pick<
    HostedCalls, "account" | "connect" | "isGenuine" | "read" | "signsSockets"
  >;
  /** Base URLs the carrier may have requested and signed: this node's, and the public one. */
  readonly addresses: readonly string[];
  readonly leg: LegSetup;
  /** Begins an outbound call; `dial` is called once our side is ready to talk. */
  call(party: HostedParty): {
    face: Face;
    dial(request: { to: string; from: string; ringingMs: number; detectMachine: boolean }): void;
  };
  /** `token`: from the address that the report came to. */
  report(token: string, report: CallReport): void;
  /** The answer to an offer; a redelivery gets the same one. */
  offer(report: CallReport, receive: Receive): Promise<WebhookReply>;
  /** Lets a carrier without webhooks report its calls from now on; does nothing for others. */
  connect(receive: Receive): void;
  /** Serves a stream that the carrier has opened. */
  serve(socket: Socket): SocketHandlers;
  /** Waits a little for requests to the carrier that are in flight. Idempotent. */
  close(): Promise<void>;
}

/** ANONYMOUS, UNAVAILABLE, RESTRICTED, UNKNOWN and BLOCKED, as Twilio spells them in digits. */
const WITHHELD = new Set(["+266696687", "+86282452253", "+7378742833", "+8656696", "+2562533"]);

const telephoneOf = (from: string | null): string | null =>
  from !== null && isE164(from) && !WITHHELD.has(from) ? from : null;

/** Twilio knows no other reasons. */
const REASONS: Record<RefusalCause, "busy" | "rejected"> = {
  unknown_number: "rejected", not_allowed: "rejected", unavailable: "rejected", busy: "busy",
  overloaded: "busy",
};

interface Entry {
  call: HostedCall;
  join: Join;
}

/** The calls of the account, by the tokens the carrier presents, and the requests in flight. */
function createRegistry(options: HostedOptions) {
  const { carrier, log, system } = options;
  const address = options.nodeUrl ?? options.publicUrl;
  const paths = hostedPaths(carrier.account);
  /** Keyed by the token in their status URL; kept for a while after their end. */
  const reported = new Map<string, HostedCall>();
  /** Keyed by the token that their stream must present, until it has. */
  const awaited = new Map<string, HostedCall>();
  const pending = new Set<Promise<void>>();
  const underWay = (work: Promise<void>): void => {
    const kept = work
      .catch((error: unknown) => log.error({ err: error }, "a carrier's call failed"))
      .finally(() => pending.delete(kept));
    pending.add(kept);
  };
  return {
    reported,
    awaited,
    underWay,
    settled: async (): Promise<void> => void await Promise.all(pending),
    begin: (
      party: HostedParty, type: HostedCallOptions["type"], forget: () => void,
    ): Entry => {
      const statusToken = system.uuid();
      // Plivo accepts only letters and digits.
      const token = system.uuid().replaceAll("-", "");
      const statusUrl = `${address}${paths.status}/${statusToken}`;
      const call = new HostedCall({
        ...options, ...party, type, statusUrl, underWay,
        forget: () => {
          reported.delete(statusToken);
          awaited.delete(token);
          forget();
        },
      });
      reported.set(statusToken, call);
      awaited.set(token, call);
      return {
        call,
        join: {
          url: `${socketUrlOf(address)}${paths.media}`,
          parameters: { [TOKEN_PARAMETER]: token },
          statusUrl,
        },
      };
    },
  };
}

type Registry = ReturnType<typeof createRegistry>;

export function createHosted(options: HostedOptions): Hosted {
  const { carrier, publicUrl, nodeUrl, system, log } = options;
  const registry = createRegistry(options);
  const offer = createOffers(options, registry);
  const report: Hosted["report"] = (token, news) => {
    const call = registry.reported.get(token);
    if (call) call.report(news);
    else if (isUnderWay(news)) {
      // The process that placed it has died: nobody will ever talk in it.
      log.warn({ carrier_call_id: news.callId }, "hanging up an unknown call");
      registry.underWay(carrier.hangUp(news.callId));
    }
  };
  let closing: Promise<void> | null = null;
  return {
    carrier,
    addresses: [...new Set([nodeUrl ?? publicUrl, publicUrl])],
    leg: { kind: "remote", rate: rateOfDialect(carrier.dialect), hasLine: true },
    call: (party) => {
      const { call, join } = registry.begin(party, "outbound", () => undefined);
      return { face: call.face, dial: (how) => call.dial({ ...how, join }) };
    },
    report,
    offer,
    connect: (receive) => carrier.connect?.({
      report,
      offer: (news) => registry.underWay(offer(news, receive).then(() => undefined)),
    }),
    serve: (socket) => serveStream({
      dialect: carrier.dialect, system, log,
      claim: ({ token, callId }, stream) => {
        const call = registry.awaited.get(token);
        // A token is good once, even if the call then rejects the stream.
        registry.awaited.delete(token);
        return call?.join(callId, stream) ?? null;
      },
    }, socket),
    close: () => (closing ??= Promise.race([registry.settled(), wait(system, LIMITS.callEndMs)])
      .then(() => carrier.close())),
  };
}

/** The offer is settled already, or there is nothing to say. */
export const NO_REPLY: WebhookReply = { status: 204, contentType: "text/plain", body: "" };

function createOffers({ carrier, log, offers }: HostedOptions, registry: Registry): Hosted["offer"] {
  const answers = new Map<string, Promise<WebhookReply>>();
  const keyOf = (id: string): string => `offer ${carrier.account} ${id}`;
  const decide = async (
    { callId: id, to, from }: CallReport, receive: Receive, forget: () => void,
  ): Promise<WebhookReply> => {
    const begun: Entry[] = [];
    const arrival = { to: to ?? "", from: telephoneOf(from), key: keyOf(id) };
    const cause = await receive(arrival, (party) => {
      const entry = registry.begin(party, "inbound", forget);
      begun.push(entry);
      return entry.call.face;
    });
    const [entry] = begun;
    if (cause !== null || !entry) {
      entry?.call.face.over("carrier_failed");
      forget();
      return carrier.refuse(id, REASONS[cause ?? "unavailable"]).catch((error: unknown) => {
        log.warn({ err: error, carrier_call_id: id }, "could not refuse a call");
        // Makes the carrier retry.
        throw new Fault(503, "The carrier cannot be reached.");
      });
    }
    entry.call.answering(id);
    return carrier.answer(id, entry.join).catch((error: unknown) => {
      // Most likely the caller has hung up.
      log.warn({ err: error, carrier_call_id: id }, "could not answer a call");
      entry.call.lost();
      return NO_REPLY;
    });
  };
  const answerHere = (report: CallReport, receive: Receive): Promise<WebhookReply> => {
    const { callId: id } = report;
    const { promise, resolve, reject } = Promise.withResolvers<WebhookReply>();
    const withdraw = offers?.take(keyOf(id), promise);
    const forget = (): void => {
      answers.delete(id);
      withdraw?.();
    };
    decide(report, receive, forget).then(resolve, (error: unknown) => {
      forget();
      reject(error as Error);
    });
    return promise;
  };
  const answer = async (report: CallReport, receive: Receive): Promise<WebhookReply> => {
    const { callId: id } = report;
    const there = await offers?.find(keyOf(id)) ?? null;
    if (there === null) return answerHere(report, receive);
    answers.delete(id);
    return there;
  };
  return (report, receive) => {
    const known = answers.get(report.callId);
    if (known) return known;
    const answered = answer(report, receive);
    answers.set(report.callId, answered);
    answered.catch(() => answers.delete(report.callId));
    return answered;
  };
}

/** The address under which the same server takes WebSockets. */
export const socketUrlOf = (address: string): string => address.replace(/^http/i, "ws");

