// The 2xx responses of a dialog whose ACK has not come yet: each is retransmitted, over every
// transport (RFC 3261 13.3.1.4), until it is acknowledged or times out.
import type { System, Timer } from "#core/system.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";

export interface Unacknowledged {
  add(number: number, sendAgain: () => void, wantsSdp: boolean): void;
  acknowledge(number: number, sdp: string | null): void;
  isEmpty(): boolean;
  /** Whether an outstanding ACK has to bring the answer to an offer in our 2xx. */
  wantsSdp(): boolean;
  stop(): void;
}

interface UnacknowledgedEvents {
  /** Called for the first ACK and for each ACK to a 2xx with an offer; only the latter has SDP. */
  acknowledged(sdp: string | null): void;
  lost(): void;
  /** No 2xx is waiting for its ACK any more. */
  settled(): void;
}

interface Entry {
  wantsSdp: boolean;
  again: Timer;
  end: Timer;
}

export function createUnacknowledged(
  system: System, events: UnacknowledgedEvents,
): Unacknowledged {
  const entries = new Map<number, Entry>();
  let isFirst = true;
  const remove = (number: number): Entry | undefined => {
    const entry = entries.get(number);
    entry?.again.cancel();
    entry?.end.cancel();
    entries.delete(number);
    return entry;
  };
  return {
    add(number, sendAgain, wantsSdp) {
      const repeat = (delayMs: number): Timer => system.after(delayMs, () => {
        const entry = entries.get(number);
        if (!entry) return;
        entry.again = repeat(Math.min(delayMs * 2, LIMITS.t2Ms));
        sendAgain();
      });
      const end = system.after(LIMITS.transactionMs, () => {
        remove(number);
        events.lost();
        if (entries.size === 0) events.settled();
      });
      entries.set(number, { wantsSdp, again: repeat(LIMITS.t1Ms), end });
    },
    acknowledge(number, sdp) {
      const entry = remove(number);
      if (!entry) return;
      const isTold = isFirst || entry.wantsSdp;
      isFirst = false;
      if (isTold) events.acknowledged(entry.wantsSdp ? sdp : null);
      if (entries.size === 0) events.settled();
    },
    isEmpty: () => entries.size === 0,
    wantsSdp: () => [...entries.values()].some((entry) => entry.wantsSdp),
    stop() {
      for (const number of [...entries.keys()]) remove(number);
    },
  };
}
