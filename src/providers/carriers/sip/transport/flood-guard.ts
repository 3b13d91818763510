// Rate limits per source address and for all of them together. Beyond the limit an INVITE is
// refused with 503, and beyond the limit of refusals nothing is sent at all: responses to forged
// source addresses would make this server an amplifier. Memory is bounded: the source seen least
// recently is evicted.
import type { System } from "#core/system.ts";
import { plainHost } from "./peer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";

interface FloodGuard {
  /** Whether a new INVITE from this source may be processed. */
  admitInvite(host: string): boolean;
  /** Whether this source may be sent a stateless refusal. */
  mayAnswer(host: string): boolean;
  /** Sources remembered. */
  size(): number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

export function createFloodGuard(system: System): FloodGuard {
  const sources = new Map<string, { invites: Bucket; answers: Bucket }>();
  const fresh = (tokens: number): Bucket => ({ tokens, atMs: system.monotonicMs() });
  const all = {
    invites: fresh(LIMITS.invitesPerSecondOverallMax),
    answers: fresh(LIMITS.refusalsOverallPerSecondMax),
  };

  function take(bucket: Bucket, perSecond: number, burst: number): boolean {
    const nowMs = system.monotonicMs();
    bucket.tokens = Math.min(burst, bucket.tokens + (nowMs - bucket.atMs) / 1000 * perSecond);
    bucket.atMs = nowMs;
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }

  function sourceOf(host: string) {
    const key = plainHost(host);
    const known = sources.get(key);
    const source = known ?? {
      invites: fresh(LIMITS.invitesBurstMax),
      answers: fresh(LIMITS.refusalsPerSecondMax),
    };
    // Put back at the end: the map is then ordered by when a source was last seen.
    if (known) sources.delete(key);
    else if (sources.size >= LIMITS.sourcesMax) {
      for (const oldest of sources.keys()) {
        sources.delete(oldest);
        break;
      }
    }
    sources.set(key, source);
    return source;
  }

  return {
    // The source's own share first: one that floods must not use up everybody's.
    admitInvite: (host) =>
      take(sourceOf(host).invites, LIMITS.invitesPerSecondMax, LIMITS.invitesBurstMax)
      && take(all.invites, LIMITS.invitesPerSecondOverallMax, LIMITS.invitesPerSecondOverallMax),
    mayAnswer: (host) =>
      take(sourceOf(host).answers, LIMITS.refusalsPerSecondMax, LIMITS.refusalsPerSecondMax)
      && take(all.answers, LIMITS.refusalsOverallPerSecondMax, LIMITS.refusalsOverallPerSecondMax),
    size: () => sources.size,
  };
}
