// Calls over an account at a hosted carrier: which call a report, a stream or an offer is about,
// and what becomes of those nobody here knows. One call is in call.ts, its sound in
// media.ts, the carrier's way in in routes.ts. Made by app/hosted-carriers.ts.
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

/** The carrier's way in, below PARLEY_PUBLIC_URL or, for calls there are, PARLEY_NODE_URL. */
export const hostedPaths = (account: HostedAccount) => ({
  voice: `/carriers/${account}/voice`,
  status: `/carriers/${account}/status`,
  media: `/carriers/${account}/media`,
});

interface HostedOptions {
  carrier: HostedCalls;
  /** As people and carriers reach any node, without a slash at its end. */
  publicUrl: string;
  /** As a carrier reaches this node, where its calls are; absent: by `publicUrl`. */
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
  /** Whatever else has it is the same call. */
  key: string;
}

/** Answers a call that came in by `join`, or says why not. */
export type Receive = (
  arrival: HostedArrival, join: (party: HostedParty) => Face,
) => Promise<RefusalCause | null>;

export interface Hosted {
  readonly carrier: Pick<
    HostedCalls, "account" | "connect" | "isGenuine" | "read" | "signsSockets"
  >;
  /** Those the carrier may have asked for, and signed: this server's, and any node's. */
  readonly addresses: readonly string[];
  readonly leg: LegSetup;
  /** `dial` when whoever is to talk is ready. */
  call(party: HostedParty): {
    face: Face;
    dial(request: { to: string; from: string; ringingMs: number; detectMachine: boolean }): void;
  };
  /** `token` is of the address it came to. */
  report(token: string, report: CallReport): void;
  /** What to answer an offer with; asked again, the same. */
  offer(report: CallReport, receive: Receive): Promise<WebhookReply>;
  /** From now on a carrier without webhooks reports its calls; does nothing at any other. */
  connect(receive: Receive): void;
  /** A stream the carrier has opened. */
  serve(socket: Socket): SocketHandlers;
  /** Waits a little for what is asked of the carrier. Idempotent. */
  close(): Promise<void>;
}

/** Twilio spells ANONYMOUS, UNAVAILABLE, RESTRICTED, UNKNOWN and BLOCKED on the keypad. */
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

/** The calls there are, by what the carrier shows of them, and what is under way at the carrier. */
function createRegistry(options: HostedOptions) {
  const { carrier, log, system } = options;
  const address = options.nodeUrl ?? options.publicUrl;
  const paths = hostedPaths(carrier.account);
  /** Keyed by the token of the address they are reported to; kept a while after their end. */
  const reported = new Map<string, HostedCall>();
  /** Keyed by the token their stream has to show, until it has. */
  const awaited = new Map<string, HostedCall>();
  const pending = new Set<Promise<void>>();
  const underWay = (work: Promise<void>): void => {
    const kept = work
      .catch((error: unknown) => log.error({ err: error }, "a hosted call failed"))
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
      // Plivo takes letters and digits alone.
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
      log.warn({ carrier_call_id: news.callId }, "a call nobody knows is hung up");
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
        // Used up, whoever shows it.
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
        log.warn({ err: error, carrier_call_id: id }, "a call could not be refused");
        // Asks to be asked again.
        throw new Fault(503, "The carrier cannot be reached.");
      });
    }
    entry.call.answering(id);
    return carrier.answer(id, entry.join).catch((error: unknown) => {
      // The caller has given up, most likely.
      log.warn({ err: error, carrier_call_id: id }, "a call could not be answered");
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

