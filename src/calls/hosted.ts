// Calls over an account at a hosted carrier: which call a report, a stream or an offer is about,
// and what becomes of those nobody here knows. One call is in hosted-call.ts, its sound in
// hosted-media.ts, the carrier's way in in hosted-routes.ts. Called by calling.ts.
import { LIMITS } from "../core/limits.ts";
import type { Logger } from "../core/logger.ts";
import { wait, type System } from "../core/system.ts";
import type { Socket, SocketHandlers } from "../http/exchange.ts";
import type {
  CallReport, HostedCalls, Join, WebhookReply,
} from "../providers/carriers/hosted/port.ts";
import type { RefusalCause } from "../providers/carriers/port.ts";
import { HostedCall, isUnderWay, type HostedCallOptions } from "./hosted-call.ts";
import { serveStream, TOKEN_PARAMETER } from "./hosted-media.ts";
import type { Face } from "./replies.ts";
import type { LegSetup } from "./voice/protocol.ts";

/** Where the carrier reaches us, below PARLEY_PUBLIC_URL. */
export const HOSTED_PATHS = {
  voice: "/carriers/twilio/voice",
  status: "/carriers/twilio/status",
  media: "/carriers/twilio/media",
} as const;

export interface HostedOptions {
  carrier: HostedCalls;
  /** As people and carriers reach this server, without a slash at its end. */
  publicUrl: string;
  system: System;
  log: Logger;
}

/** Our side of a call: what is told of it goes to `tell`. */
export interface HostedParty extends Pick<HostedCallOptions, "callId" | "callerId" | "tell"> {}

/** Who rings whom, as the carrier says. */
export interface HostedArrival {
  to: string;
  /** Null: withheld, or no telephone. */
  from: string | null;
}

/** Answers a call that came in by `join`, or says why not. */
export type Receive = (
  arrival: HostedArrival, join: (party: HostedParty) => Face,
) => Promise<RefusalCause | null>;

export interface Hosted {
  readonly carrier: Pick<HostedCalls, "name" | "isGenuine" | "read" | "signsSockets">;
  readonly publicUrl: string;
  /** `dial` when whoever is to talk is ready. */
  call(party: HostedParty): {
    face: Face;
    dial(request: { to: string; from: string; ringingMs: number; detectMachine: boolean }): void;
  };
  /** `token` is of the address it came to. */
  report(token: string, report: CallReport): void;
  /** What to answer an offer with; asked again, the same. */
  offer(report: CallReport, receive: Receive): Promise<WebhookReply>;
  /** A stream the carrier has opened. */
  serve(socket: Socket): SocketHandlers;
  /** Waits a little for what is asked of the carrier. Idempotent. */
  close(): Promise<void>;
}

/** Twilio's streams, which have no other. */
const RATE = 8000;
export const HOSTED_LEG: LegSetup = { kind: "remote", rate: RATE, hasLine: true };

const E164 = /^\+[1-9]\d{4,14}$/;
/** Twilio spells ANONYMOUS, UNAVAILABLE, RESTRICTED, UNKNOWN and BLOCKED on the keypad. */
const WITHHELD = new Set(["+266696687", "+86282452253", "+7378742833", "+8656696", "+2562533"]);

const telephoneOf = (from: string | null): string | null =>
  from !== null && E164.test(from) && !WITHHELD.has(from) ? from : null;

/** Twilio knows no other reasons. */
const REASONS: Record<RefusalCause, "busy" | "rejected"> = {
  unknown_number: "rejected", not_allowed: "rejected", unavailable: "rejected", busy: "busy",
};

interface Entry {
  call: HostedCall;
  statusUrl: string;
  join: Join;
}

/** The calls there are, by what the carrier shows of them, and what is under way at the carrier. */
function createBook(options: HostedOptions) {
  const { publicUrl, log, system } = options;
  /** By the token of the address they are reported to; kept a while after their end. */
  const reported = new Map<string, HostedCall>();
  /** By the token their stream has to show, until it has. */
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
      const token = system.uuid();
      const call = new HostedCall({
        ...options, ...party, type, underWay,
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
        statusUrl: `${publicUrl}${HOSTED_PATHS.status}/${statusToken}`,
        join: {
          url: `${socketUrlOf(publicUrl)}${HOSTED_PATHS.media}`,
          parameters: { [TOKEN_PARAMETER]: token },
        },
      };
    },
  };
}

type Book = ReturnType<typeof createBook>;

export function createHosted(options: HostedOptions): Hosted {
  const { carrier, publicUrl, system, log } = options;
  const book = createBook(options);
  let closing: Promise<void> | null = null;
  return {
    carrier,
    publicUrl,
    call: (party) => {
      const { call, statusUrl, join } = book.begin(party, "outbound", () => undefined);
      return { face: call.face, dial: (how) => call.dial({ ...how, join, statusUrl }) };
    },
    report: (token, report) => {
      const call = book.reported.get(token);
      if (call) call.report(report);
      else if (report.direction === "outbound" && isUnderWay(report)) {
        // Of a process that died: nobody will ever talk in it.
        log.warn({ carrier_call_id: report.callId }, "a call nobody knows is hung up");
        book.underWay(carrier.hangUp(report.callId));
      }
    },
    offer: createOffers(carrier, book),
    serve: (socket) => serveStream({
      dialect: carrier.dialect, system, log,
      claim: ({ token, callId }, stream) => {
        const call = book.awaited.get(token);
        // Used up, whoever shows it.
        book.awaited.delete(token);
        return call?.join(callId, stream) ?? null;
      },
    }, socket),
    close: () => (closing ??= Promise.race([book.settled(), wait(system, LIMITS.callEndMs)])
      .then(() => carrier.close())),
  };
}

function createOffers(carrier: HostedCalls, book: Book): Hosted["offer"] {
  const answers = new Map<string, Promise<WebhookReply>>();
  const decide = async (report: CallReport, receive: Receive): Promise<WebhookReply> => {
    const { callId: id, to, from } = report;
    const begun: Entry[] = [];
    const cause = await receive({ to: to ?? "", from: telephoneOf(from) }, (party) => {
      const entry = book.begin(party, "inbound", () => answers.delete(id));
      begun.push(entry);
      return entry.call.face;
    });
    const [entry] = begun;
    if (cause !== null || !entry) {
      entry?.call.face.over("carrier_failed");
      answers.delete(id);
      return carrier.refuse(id, REASONS[cause ?? "unavailable"]);
    }
    entry.call.answering(id);
    return carrier.answer(id, entry.join);
  };
  return (report, receive) => {
    const known = answers.get(report.callId);
    if (known) return known;
    const answer = decide(report, receive);
    answers.set(report.callId, answer);
    answer.catch(() => answers.delete(report.callId));
    return answer;
  };
}

/** The address under which the same server takes WebSockets. */
export const socketUrlOf = (publicUrl: string): string => publicUrl.replace(/^http/i, "ws");

