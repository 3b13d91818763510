// The port of carriers that are somebody's service: they place and answer calls over REST and
// webhooks, and connect the sound of a call to a WebSocket of ours, in the dialect they name. An
// account at such a carrier is one HostedCalls. Whoever joins these with legs owns the routes, the
// sockets and all state; everything here answers one question at a time and remembers nothing, but
// for Asterisk, which reports calls over a connection of ours.
import type { ProviderError } from "#core/faults.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import type { DialectName } from "./dialect-table.ts";

/** The addresses a call's sound and reports go to. */
export interface Join {
  /** The address of our WebSocket, `wss:`. No query: carriers drop it. */
  url: string;
  /** Come back in the `start` of the stream; what says which call it is, for one use only. */
  parameters: Record<string, string>;
  /** Where the carrier reports to; unlike for any other call. Takes a query. */
  statusUrl: string;
}

export interface HostedDial {
  to: string;
  from: string;
  ringingMs: number;
  join: Join;
  detectMachine: boolean;
}

export interface Handover {
  callId: string;
  /** E.164, or a SIP address. */
  to: string;
  /** Who is shown to be calling; null: as the carrier has it. */
  callerId: string | null;
  /** The `statusUrl` of the call's Join. */
  statusUrl: string;
}

export type Dialled =
  | { kind: "placed"; callId: string }
  /** Nothing rings and nothing will. */
  | { kind: "refused"; error: ProviderError }
  /**
   * The answer was lost, and it may ring. It is not to be placed again: the first report at
   * `statusUrl` brings its id, whether to go on or to hang up.
   */
  | { kind: "unknown"; error: ProviderError };

/** A webhook, or the opening of a WebSocket. */
export interface CarrierRequest {
  method: "GET" | "POST";
  /** As the carrier has it: the configured public origin, then path and query as they came. */
  url: string;
  /** Null when there is no such header. Names are asked for in small letters. */
  header(name: string): string | null;
  body: Uint8Array;
}

/** What to answer a webhook with. */
export interface WebhookReply {
  status: number;
  contentType: string;
  body: string;
}

export interface CallReport {
  callId: string;
  from: string | null;
  to: string | null;
  /** An inbound call that waits for `answer` or `refuse`. */
  isOffer: boolean;
  /** As the carrier reports them: late, twice or out of order. See createCallProgress. */
  events: LegEvent[];
  /** What the carrier asks for with this report, at an address made by `dial` or `transfer`. */
  reply: WebhookReply | null;
}

/** Receives what a carrier without webhooks reports over a connection of its own. */
export interface ReportHandlers {
  /** `token` is the last part of the call's `statusUrl`. */
  report(token: string, report: CallReport): void;
  offer(report: CallReport): void;
}

export interface HostedCalls {
  /** SignalWire's is `twilio`: it takes that place. */
  readonly account: HostedAccount;
  /** As people call the vendor. */
  readonly vendor: string;
  readonly dialect: DialectName;
  /** A call goes on when its stream is stopped; absent: it is over then. */
  readonly outlivesStream?: true;
  /** Whether the opening of a WebSocket is signed too. */
  readonly signsSockets: boolean;
  /**
   * Opens a connection over which calls are reported, once, and keeps it up. Null: webhooks do.
   */
  readonly connect: ((handlers: ReportHandlers) => void) | null;
  /** Whether it comes from the carrier. Never throws. */
  isGenuine(request: CarrierRequest): boolean;
  /** Null: about no call. Only for what is genuine. Never throws. */
  read(request: CarrierRequest): CallReport | null;
  /** Sends one request, whatever happens. Never throws. */
  dial(request: HostedDial): Promise<Dialled>;
  /** What to answer the offer with. Throws ProviderError where that takes a request first. */
  answer(callId: string, join: Join): Promise<WebhookReply>;
  refuse(callId: string, reason: "busy" | "rejected"): Promise<WebhookReply>;
  /** Done also when the call is over already. Throws ProviderError. */
  hangUp(callId: string): Promise<void>;
  /** The stream ends once the carrier has taken it. Throws ProviderError. */
  transfer(call: Handover): Promise<void>;
  /** Null: keys have to be sent as tones. Throws ProviderError. */
  sendDtmf: ((callId: string, digits: string) => Promise<void>) | null;
  /** Idempotent. */
  close(): Promise<void>;
}
