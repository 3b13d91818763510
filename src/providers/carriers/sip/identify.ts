// Who brings a call: by the registration it came through, the address it comes from, or the name
// and password it shows. And what the call says about both ends. Used by sip.ts.
import type { createDigestServer } from "./digest.ts";
import { parseNameAddr } from "./message.ts";
import { contactUserOf, identityOf, type TrunkRoster } from "./trunk-roster.ts";
import type { TrunkSetup } from "./trunk.ts";
import { parseUri } from "./uri.ts";
import type { IncomingInvite } from "./user-agent.ts";

export type Sender =
  /** Null: its address is one that calls may come from; which trunk is meant, its number tells. */
  | { kind: "known"; trunk: TrunkSetup | null }
  | { kind: "refused"; status: number; headers: [string, string][] };

const NUMBER_CHARS_MAX = 64;

const userOf = (uri: string): string | null => parseUri(uri)?.user ?? null;

export function identify(
  roster: TrunkRoster, digest: ReturnType<typeof createDigestServer>, invite: IncomingInvite,
): Sender {
  const { request, peer } = invite;
  const called = userOf(request.uri);
  const registered = roster.registeredAt(peer.host, called);
  // Nobody hears what may be meant for somebody else.
  if (registered === "tied") return { kind: "refused", status: 404, headers: [] };
  if (registered) return { kind: "known", trunk: registered };
  if (roster.admits(peer.host, called)) return { kind: "known", trunk: null };
  const shown = request.headers.get("Authorization");
  let isStale = false;
  if (shown !== null) {
    const username = /\busername="([^"]{1,256})"/i.exec(shown)?.[1] ?? "";
    // Two accounts may have lines of the same name: the password tells which is meant.
    for (const trunk of roster.named(username)) {
      const { kind } = digest.verify(shown, request.method, () => trunk.password);
      if (kind === "ok") return { kind: "known", trunk };
      isStale ||= kind === "stale";
    }
    if (!isStale) return { kind: "refused", status: 403, headers: [] };
  }
  // MD5 first: telephone systems that know nothing else look at the first and give up on it; those
  // that know better choose.
  const headers = digest.challenges(isStale).toReversed()
    .map((challenge): [string, string] => ["WWW-Authenticate", challenge]);
  return { kind: "refused", status: 401, headers };
}

/**
 * Registrars call what was registered, and some put only that, or the name of the line, in To as
 * well: then the trunk's own number is meant.
 */
export function calledNumber({ request }: IncomingInvite, trunk: TrunkSetup | null): string {
  const to = userOf(parseNameAddr(request.headers.get("To") ?? "")?.uri ?? "");
  const names = trunk ? [contactUserOf(trunk), identityOf(trunk).user] : [];
  const number = [userOf(request.uri), to].find((user) => user !== null && !names.includes(user));
  return (number ?? trunk?.phoneNumber ?? "").slice(0, NUMBER_CHARS_MAX);
}

/** Null: withheld. What a trusted network asserts comes before what the caller says. */
export function callerNumber({ request: { headers } }: IncomingInvite): string | null {
  for (const name of ["P-Asserted-Identity", "From"]) {
    const user = userOf(parseNameAddr(headers.get(name) ?? "")?.uri ?? "");
    if (user !== null && user !== "" && user.toLowerCase() !== "anonymous") {
      return user.slice(0, NUMBER_CHARS_MAX);
    }
  }
  return null;
}
