// Both halves of the transaction layer together. The user agent hands every message in here first
// and sees only what is new. Knows nothing of sockets: tests put a lossy wire under it.
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
  /** A request no transaction knows, and every ACK to a 2xx. Nothing is kept unless `serve`d. */
  onRequest(request: SipRequest, peer: Peer): void;
}

/** 122 random bits: nobody who has not seen the request can forge its response. */
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
      // A response to nothing is dropped, as RFC 6026 demands.
      if (message.kind === "response") clients.receive(message, peer);
      else if (servers.receive(message, peer) === "new") onRequest(message, peer);
    },
    close() {
      clients.close();
      servers.close();
    },
  };
}
