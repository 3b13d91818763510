// The port between nodes: what may be lost travels here, and nothing else; truth is in the store.
// Implemented in wires/, used by what the cluster is made of.

/** The version of what travels between nodes. */
export const PROTOCOL = 1;

/** Messages arrive once or never. Subjects lie below the cluster's name, put before by the wire. */
export interface Wire {
  publish(subject: string, data: Uint8Array): void;
  /** `reply` is null where nobody waits for one. The result ends it; idempotent. */
  subscribe(
    subject: string,
    hear: (data: Uint8Array, reply: ((data: Uint8Array) => void) | null) => void,
  ): () => void;
  /** The first answer. Rejects with a WireFault. */
  request(subject: string, data: Uint8Array, timeoutMs: number): Promise<Uint8Array>;
  state(): "up" | "down";
  /** The result ends it; idempotent. */
  onState(changed: (state: "up" | "down") => void): () => void;
  /** Idempotent. */
  close(): Promise<void>;
}

/** Why nobody answered on a Wire: `nobody` is known at once, `late` after the time given. */
export class WireFault extends Error {
  readonly reason: "nobody" | "late" | "down";

  constructor(reason: "nobody" | "late" | "down", options?: ErrorOptions) {
    super(`no answer from another node: ${reason}`, options);
    this.name = "WireFault";
    this.reason = reason;
  }
}
