// Session timers (RFC 4028): a vanished far end is detected because it no longer refreshes the
// session. One side refreshes at half the interval; the other hangs up shortly before it ends.
import type { System, Timer } from "#core/system.ts";
import { secondsOf, tokensOf } from "#providers/carriers/sip/grammar/bodies.ts";
import type { SipHeaders } from "#providers/carriers/sip/grammar/headers.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";

export interface SessionTerms {
  intervalS: number;
  weRefresh: boolean;
}

export interface SessionTimer {
  /** The terms from now on; null: the session never expires. */
  agree(terms: SessionTerms | null): void;
  readonly terms: SessionTerms | null;
  stop(): void;
}

export function createSessionTimer(
  system: System, events: { refresh(): void; expired(): void },
): SessionTimer {
  let terms: SessionTerms | null = null;
  let timers: Timer[] = [];
  const stop = () => {
    for (const timer of timers) timer.cancel();
    timers = [];
  };
  return {
    get terms() {
      return terms;
    },
    agree(agreed) {
      stop();
      terms = agreed;
      if (!agreed) return;
      const { intervalS, weRefresh } = agreed;
      const marginS = Math.min(32, intervalS / 3);
      timers.push(system.after((intervalS - marginS) * 1000, events.expired));
      if (weRefresh) timers.push(system.after(intervalS * 500, events.refresh));
    },
    stop,
  };
}

function refresherOf(headers: SipHeaders): "uac" | "uas" | null {
  const value = /;\s*refresher\s*=\s*(uac|uas)\b/i.exec(headers.get("Session-Expires") ?? "")?.[1];
  const name = value?.toLowerCase();
  return name === "uac" || name === "uas" ? name : null;
}

/** A UAS may not raise the interval (RFC 4028 9): a peer that is refreshed too late hangs up. */
const clamp = (intervalS: number): number =>
  Math.min(LIMITS.sessionExpiresMaxS, Math.max(LIMITS.sessionExpiresLeastS, intervalS));

/** The session terms that a 2xx to our request sets. */
export function termsOfResponse(headers: SipHeaders): SessionTerms | null {
  const intervalS = secondsOf(headers, "Session-Expires");
  if (intervalS === null) return null;
  return { intervalS: clamp(intervalS), weRefresh: refresherOf(headers) !== "uas" };
}

type TermsAnswer =
  | { kind: "too_small" }
  | { kind: "agreed"; terms: SessionTerms | null; headers: [string, string][] };

/** Our terms for a request that begins or refreshes a session, and the headers of our 2xx. */
export function answerTerms(request: SipHeaders): TermsAnswer {
  const wantedS = secondsOf(request, "Session-Expires");
  if (wantedS === null) return { kind: "agreed", terms: null, headers: [] };
  const canRefresh = tokensOf(request, "Supported").includes("timer")
    || tokensOf(request, "Require").includes("timer");
  if (wantedS < LIMITS.sessionExpiresMinS && canRefresh) return { kind: "too_small" };
  const intervalS = clamp(wantedS);
  // A caller that knows nothing of session timers cannot be the one that refreshes.
  const refresher = canRefresh ? refresherOf(request) ?? "uac" : "uas";
  const headers: [string, string][] = [
    ["Session-Expires", `${intervalS};refresher=${refresher}`],
    ...(canRefresh ? [["Require", "timer"] satisfies [string, string]] : []),
  ];
  return { kind: "agreed", terms: { intervalS, weRefresh: refresher === "uas" }, headers };
}

/** Sets the headers of a request of ours that begins or refreshes a session. */
export function offerTerms(headers: SipHeaders, terms: SessionTerms | null, minS: number): void {
  headers.set("Session-Expires", terms
    ? `${Math.max(terms.intervalS, minS)};refresher=${terms.weRefresh ? "uac" : "uas"}`
    : String(Math.max(LIMITS.sessionExpiresS, minS)));
  headers.set("Min-SE", String(minS));
}
