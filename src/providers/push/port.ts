// Messages to browsers that nobody has open, through the service of the browser's maker. Used by
// features/conversations/desk/push.ts; made by web-push.ts.

/** As a browser gives it: only whoever has it can send there. */
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
  /** `retryable`: later it may be taken. */
  | { kind: "failed"; error: string; retryable: boolean; retryAfterS: number };

export interface Pusher {
  /** A browser knows by it that messages are this server's. */
  publicKey: string;
  /** Never rejects. */
  send(target: PushTarget, message: PushMessage): Promise<PushOutcome>;
  close(): Promise<void>;
}
