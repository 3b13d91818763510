// The port for third-party client protocols on the message route: a request that uses one is read
// and answered by it. Implemented by gateways/ai-sdk/ui-message-stream.ts.
import type { HttpRequest, Reply } from "#http/exchange.ts";
import type { StreamSource } from "#realtime/session.ts";
import type { Sent } from "./outcomes.ts";

export interface ProtocolMessage {
  text: string;
  /** Idempotency key: a message is answered once per key; null: each is a new one. */
  key: string | null;
  /** Requests another answer where there is one already. */
  regenerates: boolean;
}

export type Watched = Pick<Extract<Sent, { kind: "answering" }>, "turnId" | "fromSequence" | "events">;

export interface MessageProtocol {
  /** The message of a request in this protocol; null: it is in another. Throws Fault 422. */
  read(http: HttpRequest, body: object): ProtocolMessage | null;
  reply(source: StreamSource, sent: Sent): Reply;
  /** Replays a turn that is being answered from its beginning. */
  rejoin(source: StreamSource, turn: Watched): Reply;
}
