// The port to the nodes that serve one database together, this one among them. Over SQLite there is
// one node, by the same code. Features take of a Cluster what
// they need; app/ joins it together.

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

/** The calls of all nodes; each answers false, or null, where the call is not live. */
export interface SharedCalls {
  say(callId: number, text: string): Promise<boolean>;
  mute(callId: number, on: boolean): Promise<boolean>;
  end(callId: number): Promise<boolean>;
  /** Frames that do not come in time are left out. */
  listen(callId: number, onAudio: OnAudio, over: () => void): Promise<(() => void) | null>;
}
