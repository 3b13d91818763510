// The port for protocols of other people's clients on the message route: who speaks one is read and
// answered by it. Implemented by gateways/ai-sdk/ui-message-stream.ts.
import type { HttpRequest, Reply } from "#http/exchange.ts";
import type { StreamSource } from "#realtime/session.ts";
import type { Sent } from "./outcomes.ts";

export interface ProtocolMessage {
  text: string;
  /** Which message it is: the same is answered once; null: each is a new one. */
  key: string | null;
  /** Another answer is wanted where there is one. */
  regenerates: boolean;
}

export type Watched = Pick<Extract<Sent, { kind: "answering" }>, "turnId" | "fromSequence" | "events">;

export interface MessageProtocol {
  /** What a request that speaks the protocol sends; null: it does not. Throws Fault 422. */
  read(http: HttpRequest, body: object): ProtocolMessage | null;
  reply(source: StreamSource, sent: Sent): Reply;
  /** A turn that is being answered, from its beginning. */
  rejoin(source: StreamSource, turn: Watched): Reply;
}
