// Messages to browsers that nobody has open, through the service of the browser's maker. Used by
// features/conversations/desk/push.ts; made by web-push.ts.

/** A subscription as the browser gives it: whoever holds it can send there. */
export interface PushTarget {
  endpoint: string;
  /** P-256, uncompressed, base64url. */
  publicKey: string;
  /** 16 bytes, base64url. */
  auth: string;
}

interface PushMessage {
  text: string;
  /** One that was not shown yet is replaced by the next of the same topic. */
  topic: string;
}

export type PushOutcome =
  | { kind: "taken" }
  /** The browser has ended it: nothing sent there arrives any more. */
  | { kind: "gone" }
  /** `retryable`: the push service may accept it later. */
  | { kind: "failed"; error: string; retryable: boolean; retryAfterS: number };

export interface Pusher {
  /** The key by which a browser knows that messages are from this server. */
  publicKey: string;
  /** Never rejects. */
  send(target: PushTarget, message: PushMessage): Promise<PushOutcome>;
  close(): Promise<void>;
}
