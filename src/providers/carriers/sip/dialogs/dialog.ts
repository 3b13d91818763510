// The state of a dialog, set up by an INVITE and its 2xx (RFC 3261 section 12): tags, sequence
// numbers, route set. Builds the requests within it and decides who may send any.
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { ClientHandlers, ClientTransaction } from "#providers/carriers/sip/transport/client-transactions.ts";
import { parseCseq, parseNameAddr, SipHeaders } from "#providers/carriers/sip/grammar/headers.ts";
import type {
  SipMessage, SipRequest, SipResponse,
} from "#providers/carriers/sip/grammar/message.ts";
import { addressOf, nextHop, plainHost, type MayReach, type Peer } from "#providers/carriers/sip/transport/peer.ts";
import { parseUri } from "#providers/carriers/sip/grammar/uri.ts";

export const ALLOW = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, NOTIFY";
export const SUPPORTED = "timer";

/** What the user agent provides to its calls. */
export interface Signalling {
  readonly system: System;
  readonly log: Logger;
  /** Value of a Contact that leads here. */
  contact(peer: Peer, localHost: string, user: string | null): string;
  localHost(peer: Peer): Promise<string>;
  hasConnection(peer: Peer): boolean;
  readonly mayReach: MayReach;
  /** Adds a Via to the request and runs its transaction. */
  begin(
    request: SipRequest, peer: Peer, localHost: string, handlers: ClientHandlers,
  ): ClientTransaction;
  /** For a CANCEL, which has the Via of its INVITE. */
  beginAs(request: SipRequest, peer: Peer, handlers: ClientHandlers): ClientTransaction;
  /** Sends an ACK, once and without a transaction; adds a Via when there is none. */
  post(request: SipRequest, peer: Peer, localHost: string): void;
  readonly sessions: {
    add(key: string, session: InDialog): void;
    remove(key: string): void;
  };
}

/** The object to which the user agent passes the messages of a dialog. */
export interface InDialog {
  readonly dialog: DialogState;
  receive(request: SipRequest, peer: Peer, answer: (response: SipResponse) => void): void;
  acknowledged(request: SipRequest): void;
  bye(): void;
}

export interface DialogState {
  readonly callId: string;
  readonly localTag: string;
  readonly remoteTag: string;
  /** The From (`local`) and To (`remote`) of our requests. */
  readonly local: string;
  readonly remote: string;
  localCseq: number;
  remoteCseq: number | null;
  /** Route values, nearest first. */
  readonly routes: string[];
  /** The far end's Contact. */
  target: string;
  /** The peer that the dialog began with; its port follows the far end's latest request. */
  peer: Peer;
  readonly localHost: string;
  readonly contact: string;
}

export const tagOf = (value: string | null): string =>
  parseNameAddr(value ?? "")?.params.get("tag") ?? "";

const contactOf = (message: SipMessage): string | null => {
  const uri = parseNameAddr(message.headers.get("Contact") ?? "")?.uri;
  return uri !== undefined && parseUri(uri) ? uri : null;
};

export const dialogKey = (callId: string, localTag: string, remoteTag: string): string =>
  `${callId}|${localTag}|${remoteTag}`;

export const keyOfDialog = (dialog: DialogState): string =>
  dialogKey(dialog.callId, dialog.localTag, dialog.remoteTag);

const withTag = (value: string, tag: string): string => `${value};tag=${tag}`;

/** After a 2xx to our INVITE. */
export function dialogAsCaller(
  invite: SipRequest, response: SipResponse, peer: Peer, localHost: string,
): DialogState {
  const { headers } = invite;
  return {
    callId: headers.get("Call-ID") ?? "",
    localTag: tagOf(headers.get("From")),
    remoteTag: tagOf(response.headers.get("To")),
    local: headers.get("From") ?? "",
    remote: response.headers.get("To") ?? "",
    localCseq: parseCseq(headers.get("CSeq"))?.number ?? 1,
    remoteCseq: null,
    routes: response.headers.all("Record-Route").reverse(),
    target: contactOf(response) ?? invite.uri,
    peer,
    localHost,
    contact: headers.get("Contact") ?? "",
  };
}

/** The dialog made by our 2xx to the far end's INVITE. */
export function dialogAsCallee(
  invite: SipRequest, tag: string, peer: Peer, localHost: string, contact: string,
): DialogState {
  const { headers } = invite;
  return {
    callId: headers.get("Call-ID") ?? "",
    localTag: tag,
    remoteTag: tagOf(headers.get("From")),
    local: withTag(headers.get("To") ?? "", tag),
    remote: headers.get("From") ?? "",
    localCseq: 0,
    remoteCseq: parseCseq(headers.get("CSeq"))?.number ?? null,
    routes: headers.all("Record-Route"),
    target: contactOf(invite) ?? parseNameAddr(headers.get("From") ?? "")?.uri ?? invite.uri,
    peer,
    localHost,
    contact,
  };
}

export function refreshTarget(dialog: DialogState, message: SipMessage): void {
  dialog.target = contactOf(message) ?? dialog.target;
}

/**
 * Whether a request of this dialog may come from this host. Call-ID and tags travel over the open
 * network, so they alone would let anybody who saw them end the call.
 */
export function mayComeFrom(dialog: DialogState, host: string): boolean {
  const from = plainHost(host);
  if (from === plainHost(dialog.peer.host)) return true;
  const way = dialog.routes.length > 0 ? dialog.routes.map(uriOfRoute) : [dialog.target];
  return way.some((uri) => addressOf(uri) === from);
}

const uriOfRoute = (route: string): string => parseNameAddr(route)?.uri ?? route;

/** The next request within the dialog and where it goes. An ACK has the number of its INVITE. */
export function requestWithin(
  dialog: DialogState, method: string, signalling: Signalling, acknowledges?: SipRequest,
): { request: SipRequest; peer: Peer } {
  const [first] = dialog.routes;
  const firstUri = first === undefined ? null : uriOfRoute(first);
  const isStrict = firstUri !== null && parseUri(firstUri)?.params.has("lr") === false;
  const headers = new SipHeaders();
  // A strict router, older than RFC 3261, expects its own URI in the request line.
  const routes = isStrict ? [...dialog.routes.slice(1), `<${dialog.target}>`] : dialog.routes;
  for (const route of routes) headers.add("Route", route);
  headers.add("Max-Forwards", "70")
    .add("From", dialog.local)
    .add("To", dialog.remote)
    .add("Call-ID", dialog.callId);
  const uri = isStrict ? firstUri : dialog.target;
  const peer = hopOf(dialog, firstUri ?? dialog.target, signalling);
  if (acknowledges) {
    headers.add("CSeq", `${parseCseq(acknowledges.headers.get("CSeq"))?.number ?? 1} ACK`);
    // Credentials meant for one host are not sent to another.
    const isSame = plainHost(peer.host) === plainHost(dialog.peer.host);
    for (const name of isSame ? ["Authorization", "Proxy-Authorization"] : []) {
      for (const value of acknowledges.headers.all(name)) headers.add(name, value);
    }
  } else {
    dialog.localCseq++;
    headers.add("CSeq", `${dialog.localCseq} ${method}`);
    headers.add("Contact", dialog.contact).add("Allow", ALLOW).add("Supported", SUPPORTED);
  }
  const request: SipRequest = { kind: "request", method, uri, headers, body: Buffer.alloc(0) };
  return { request, peer };
}

function hopOf(
  dialog: DialogState, uri: string, { hasConnection, mayReach }: Signalling,
): Peer {
  const { peer } = dialog;
  const next = nextHop(uri, peer, mayReach);
  const isSame = next.transport === peer.transport && next.host === plainHost(peer.host);
  // The connection that is open is used, rather than one to a port that their NAT may block.
  return next.transport !== "udp" && isSame && hasConnection(peer) ? peer : next;
}

export function setSdp(message: SipMessage, sdp: string): void {
  message.headers.set("Content-Type", "application/sdp");
  message.body = Buffer.from(sdp);
}
