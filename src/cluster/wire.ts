// The message port between nodes. It carries only what may be lost; the truth is in the store.
// Implemented in wires/, used by the other files of this folder.

/** The version of the protocol between nodes. */
export const PROTOCOL = 1;

/** Messages arrive at most once. The wire prefixes every subject with the cluster's name. */
export interface Wire {
  publish(subject: string, data: Uint8Array): void;
  /** `reply` is null when nobody waits for one. The result unsubscribes; idempotent. */
  subscribe(
    subject: string,
    hear: (data: Uint8Array, reply: ((data: Uint8Array) => void) | null) => void,
  ): () => void;
  /** Resolves to the first answer. Rejects with a WireFault. */
  request(subject: string, data: Uint8Array, timeoutMs: number): Promise<Uint8Array>;
  state(): "up" | "down";
  /** The result unsubscribes; idempotent. */
  onState(changed: (state: "up" | "down") => void): () => void;
  /** Idempotent. */
  close(): Promise<void>;
}

/** Why a request got no answer: `nobody` subscribes (known at once), `late` (timed out), `down`. */
export class WireFault extends Error {
  readonly reason: "nobody" | "late" | "down";

  constructor(reason: "nobody" | "late" | "down", options?: ErrorOptions) {
    super(`no answer from another node: ${reason}`, options);
    this.name = "WireFault";
    this.reason = reason;
  }
}
