// The port to the nodes that serve one database together, this one among them. Over SQLite there is
// one node, by the same code. Features take of a Cluster what
// they need; app/ joins it together.
import type { Instant } from "#core/system.ts";
import type { Author, DeskReason, DeskState } from "#events/events.ts";

/** Things of one kind that a node has to itself. */
export interface Owned {
  nodeId: number;
  what: string;
  things: number;
}

export interface Waiting {
  /** Being read, or to be. */
  documents: number;
  /** Webhooks that are to be sent, or sent again. */
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
  /** `dead`: nobody has heard of it for a lease; others take up what it had. */
  state: "live" | "draining" | "dead";
  owned: Record<string, number>;
  /** What it alone does for all. */
  leases: string[];
}

export interface ClusterAtAGlance {
  /** The database's time of it. */
  now: Instant;
  nodes: NodeAtAGlance[];
  waiting: Waiting;
}

/** Another node, as the store has it. */
export interface NodeView {
  id: number;
  /** Leads to this node alone; null: it has none. */
  url: string | null;
  draining: boolean;
}

export interface Cluster {
  /** This process among all that ever served the database, never used again: its fencing token. */
  readonly nodeId: number;
  /** Those that are not given up, this one included, as of the last beat. */
  alive(): NodeView[];
  /**
   * Whether what this node owns is still its own: asked before every effect outside (a dial, a
   * webhook, a tool call, an order of a number), by a monotonic and by the wall clock.
   */
  holds(): boolean;
  /** This node was given up: all work it owns ends now, nothing of it can be stored. */
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

/** People who take part in calls, whichever node has them. */
export interface SharedPersons {
  /** False: the call is not live. */
  whisper(callId: number, by: Author, text: string): Promise<boolean>;
  takeOver(callId: number, by: Author, isAlone: boolean): Promise<CallDeskOutcome>;
  handBack(callId: number, by: Author): Promise<CallDeskOutcome>;
  /** Null: the call is not live. `over` is called when it ends otherwise than by `close`. */
  speak(
    callId: number, authorId: string, onAudio: (pcm: Int16Array) => void, over: () => void,
  ): Promise<Speaking | "not_theirs" | null>;
}

/** The calls of all nodes; each answers false, or null, where the call is not live. */
export interface SharedCalls {
  say(callId: number, text: string): Promise<boolean>;
  mute(callId: number, on: boolean): Promise<boolean>;
  end(callId: number): Promise<boolean>;
  /** Frames that do not come in time are left out. */
  listen(callId: number, onAudio: OnAudio, over: () => void): Promise<(() => void) | null>;
  persons: SharedPersons;
}

/** What a carrier is answered that asks what to do with a call. */
export interface OfferReply {
  status: number;
  contentType: string;
  body: string;
}

/** Calls that carriers bring, of all nodes, by what is the same whenever a call is brought. */
export interface SharedOffers {
  /** What another node answers, or has answered; null: none has it, or none is reached. */
  find(key: string): Promise<OfferReply | null>;
  /** This node answers it, until the result is called. */
  take(key: string, reply: Promise<OfferReply>): () => void;
}
