// DTMF keys we send in INFO (application/dtmf-relay): one after the other, so that none overtakes
// another, each after the duration of the one before it. Used by sip-session.ts.
import type { System, Timer } from "#core/system.ts";
import type { Outcome } from "./asking.ts";
import type { SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import { DIGITS } from "#providers/carriers/sip/media/telephone-event.ts";

export const KEYS_TYPE = "application/dtmf-relay";

export interface InfoKeys {
  add(keys: string): void;
  stop(): void;
}

/** The same durations as those of keys sent as telephone events. */
const KEY_MS = 160;
const PAUSE_MS = 80;
const WAITING_MAX = 128;

export function createInfoKeys(
  system: System, ask: (fill: (request: SipRequest) => void, done: (it: Outcome) => void) => void,
): InfoKeys {
  let waiting: string[] = [];
  let isBusy = false;
  let pause: Timer | null = null;
  const next = () => {
    const key = waiting.shift();
    isBusy = key !== undefined;
    if (key === undefined) return;
    const fill = (request: SipRequest) => {
      request.headers.set("Content-Type", KEYS_TYPE);
      request.body = Buffer.from(`Signal=${key}\r\nDuration=${KEY_MS}\r\n`);
    };
    ask(fill, (outcome) => {
      // A number with a key missing is another number.
      if (outcome.kind === "failed" || outcome.response.status >= 300) waiting = [];
      pause = system.after(KEY_MS + PAUSE_MS, next);
    });
  };
  return {
    add(keys) {
      const known = [...keys.toUpperCase()].filter((key) => DIGITS.includes(key));
      waiting = [...waiting, ...known].slice(0, WAITING_MAX);
      if (!isBusy) next();
    },
    stop() {
      waiting = [];
      pause?.cancel();
    },
  };
}
