// The transaction layer, client and server. The user agent passes every message here first and gets
// back only new requests. It knows nothing of sockets, so tests can run it over a lossy transport.
import type { System } from "#core/system.ts";
import {
  createClientTransactions, type ClientTransactions, type Send,
} from "./client-transactions.ts";
import type { SipMessage, SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import type { Peer } from "./peer.ts";
import { createServerTransactions, type ServerTransactions } from "./server-transactions.ts";

export interface Transactions {
  readonly clients: ClientTransactions;
  readonly servers: ServerTransactions;
  receive(message: SipMessage, peer: Peer): void;
  close(): void;
}

interface TransactionsOptions {
  system: System;
  send: Send;
  /** Receives new requests and every ACK to a 2xx. No state is kept unless `serve` is called. */
  onRequest(request: SipRequest, peer: Peer): void;
}

/** 122 random bits, so that a response can be forged only by somebody who has seen the request. */
export const newBranch = (system: System): string => `z9hG4bK${system.uuid().replaceAll("-", "")}`;

export const newTag = (system: System): string => system.randomBytes(8).toString("hex");

export function createTransactions(options: TransactionsOptions): Transactions {
  const { system, send, onRequest } = options;
  const clients = createClientTransactions(system, send);
  const servers = createServerTransactions(system, send);
  return {
    clients,
    servers,
    receive(message, peer) {
      // A response that matches no transaction is dropped, as RFC 6026 demands.
      if (message.kind === "response") clients.receive(message, peer);
      else if (servers.receive(message, peer) === "new") onRequest(message, peer);
    },
    close() {
      clients.close();
      servers.close();
    },
  };
}
