// The port of hosted carriers: they place and answer calls over REST and webhooks, and connect the
// audio of a call to a WebSocket of ours, in the dialect they name. An account at such a carrier is
// one HostedCalls. The caller of this port (calls/hosted) owns the routes, the sockets and all
// state; adaptors are stateless, except that of Asterisk, which reports calls over a connection we
// open.
import type { ProviderError } from "#core/faults.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import type { DialectName } from "./dialect-table.ts";

/** The addresses a call's sound and reports go to. */
export interface Join {
  /** The address of our WebSocket, `wss:`. No query: carriers drop it. */
  url: string;
  /** Come back in the stream's `start`, where they identify the call; valid for one use only. */
  parameters: Record<string, string>;
  /** Where the carrier sends its reports; unique to the call. May be extended with a query. */
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
  /** The number shown as the caller's; null for the carrier's default. */
  callerId: string | null;
  /** The `statusUrl` of the call's Join. */
  statusUrl: string;
}

export type Dialled =
  | { kind: "placed"; callId: string }
  /** No telephone rings or will ring. */
  | { kind: "refused"; error: ProviderError }
  /**
   * The response was lost, and a telephone may ring, so the call must not be retried: the first
   * report at `statusUrl` brings its id, to continue it or to hang up.
   */
  | { kind: "unknown"; error: ProviderError };

/** A webhook, or the opening of a WebSocket. */
export interface CarrierRequest {
  method: "GET" | "POST";
  /** The URL the carrier uses: the configured public origin, then path and query as received. */
  url: string;
  /** Null when there is no such header. `name` is in lower case. */
  header(name: string): string | null;
  body: Uint8Array;
}

/** The response to a webhook. */
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
  /** The reply the carrier asks for with this report, at a URL made by `dial` or `transfer`. */
  reply: WebhookReply | null;
}

/** Receives the reports of a carrier without webhooks, which come over a connection we open. */
export interface ReportHandlers {
  /** `token` is the last part of the call's `statusUrl`. */
  report(token: string, report: CallReport): void;
  offer(report: CallReport): void;
}

export interface HostedCalls {
  /** `twilio` for SignalWire as well, which is configured in its place. */
  readonly account: HostedAccount;
  /** The vendor's name for people. */
  readonly vendor: string;
  readonly dialect: DialectName;
  /** Set if a call continues when its stream ends; absent if the call is over then. */
  readonly outlivesStream?: true;
  /** Whether the opening of a WebSocket is signed too. */
  readonly signsSockets: boolean;
  /**
   * Called once: opens a connection over which calls are reported, and reconnects it. Null when the
   * carrier uses webhooks.
   */
  readonly connect: ((handlers: ReportHandlers) => void) | null;
  /** Whether the request comes from the carrier. Never throws. */
  isGenuine(request: CarrierRequest): boolean;
  /** Reads a genuine request; null when it is not about a call. Never throws. */
  read(request: CarrierRequest): CallReport | null;
  /** Sends one request and never retries it. Never throws. */
  dial(request: HostedDial): Promise<Dialled>;
  /** The response to the offer. Throws ProviderError if a request it takes first fails. */
  answer(callId: string, join: Join): Promise<WebhookReply>;
  refuse(callId: string, reason: "busy" | "rejected"): Promise<WebhookReply>;
  /** Done also when the call is over already. Throws ProviderError. */
  hangUp(callId: string): Promise<void>;
  /** The stream ends once the carrier has accepted the transfer. Throws ProviderError. */
  transfer(call: Handover): Promise<void>;
  /** Null when keys go over the stream, or else as tones. Throws ProviderError. */
  sendDtmf: ((callId: string, digits: string) => Promise<void>) | null;
  /** Idempotent. */
  close(): Promise<void>;
}
