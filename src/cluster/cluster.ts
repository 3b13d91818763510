// The port to the nodes that serve one database together, this one among them. Over SQLite the same
// code runs with one node. Features take the parts of a Cluster that they need; app/ composes it.
import type { Instant } from "#core/system.ts";
import type { Author, DeskReason, DeskState } from "#events/events.ts";

/** How many things of one kind a node owns. */
export interface Owned {
  nodeId: number;
  what: string;
  things: number;
}

export interface Waiting {
  /** Documents being read, or waiting to be. */
  documents: number;
  /** Webhooks waiting to be sent or retried. */
  deliveries: number;
}

export interface NodeAtAGlance {
  id: number;
  name: string;
  url: string | null;
  version: string;
  startedAt: Instant;
  beatAt: Instant;
  leaseUntil: Instant | null;
  calls: number;
  streams: number;
  /** `dead`: its lease has run out, or it is gone; other nodes recover what it owned. */
  state: "live" | "draining" | "dead";
  owned: Record<string, number>;
  /** Names of the work that this node alone does for all nodes. */
  leases: string[];
}

export interface ClusterAtAGlance {
  /** When the view was taken, by the database's clock. */
  now: Instant;
  nodes: NodeAtAGlance[];
  waiting: Waiting;
}

/** Another node, as the store has it. */
export interface NodeView {
  id: number;
  /** An address that leads to this node alone; null: it has none. */
  url: string | null;
  draining: boolean;
}

export interface Cluster {
  /** This process among all that ever served the database; never reused (fencing token). */
  readonly nodeId: number;
  /** Nodes that have not been given up, this one included, as of the last beat. */
  alive(): NodeView[];
  /**
   * Whether this node still owns what it owned, by a monotonic and by the wall clock. Checked
   * before every external effect (a dial, a webhook, a tool call, an order of a number).
   */
  holds(): boolean;
  /** Called when this node was given up: its work ends now, none of it can be stored any more. */
  onLost(handler: () => void): void;
}

export type OnAudio = (pcm: Int16Array, rate: number) => void;

export type CallDeskOutcome =
  | {
      kind: "moved";
      desk: {
        state: DeskState; holder: Author | null; reason: DeskReason | null; at: Instant | null;
      };
    }
  /** Somebody else has the call. */
  | { kind: "held"; holder: Author }
  | { kind: "not_live" };

/** A person's microphone in a call. */
export interface Speaking {
  write(pcm: Int16Array): void;
  close(): void;
}

/** People who take part in calls, whichever node has the call. */
export interface SharedPersons {
  /** False: the call is not live. */
  whisper(callId: number, by: Author, text: string): Promise<boolean>;
  takeOver(callId: number, by: Author, isAlone: boolean): Promise<CallDeskOutcome>;
  handBack(callId: number, by: Author): Promise<CallDeskOutcome>;
  /** Null: the call is not live. `over` is called when the talk ends by anything but `close`. */
  speak(
    callId: number, authorId: string, onAudio: (pcm: Int16Array) => void, over: () => void,
  ): Promise<Speaking | "not_theirs" | null>;
}

/** The same for the calls of this node. */
export interface OwnPersons extends Pick<SharedPersons, "whisper" | "takeOver" | "handBack"> {
  speak(...args: Parameters<SharedPersons["speak"]>): Awaited<ReturnType<SharedPersons["speak"]>>;
}

/** The calls of all nodes; every method resolves to false or null when the call is not live. */
export interface SharedCalls {
  say(callId: number, text: string): Promise<boolean>;
  mute(callId: number, on: boolean): Promise<boolean>;
  end(callId: number): Promise<boolean>;
  /** Frames that do not arrive in time are dropped. */
  listen(callId: number, onAudio: OnAudio, over: () => void): Promise<(() => void) | null>;
  persons: SharedPersons;
}

/** The answer to a carrier that asks what to do with a call. */
export interface OfferReply {
  status: number;
  contentType: string;
  body: string;
}

/** Calls that carriers deliver to any node, by a key that stays the same on every redelivery. */
export interface SharedOffers {
  /** The reply another node gives or gave; null: no node has the call, or none is reachable. */
  find(key: string): Promise<OfferReply | null>;
  /** This node answers for the call until the result is called. */
  take(key: string, reply: Promise<OfferReply>): () => void;
}
