// Identifies the sender of a call: by the registration it came through, by its source address, or
// by digest credentials. Also reads the called and calling numbers. Used by sip.ts.
import type { FailedAuthentications } from "#core/failed-authentications.ts";
import type { createDigestServer } from "#providers/carriers/sip/grammar/digest.ts";
import { parseNameAddr } from "#providers/carriers/sip/grammar/headers.ts";
import type { SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import { contactUserOf, identityOf, type TrunkRoster } from "./trunk-roster.ts";
import type { TrunkSetup } from "./trunk.ts";
import { parseUri } from "#providers/carriers/sip/grammar/uri.ts";
import type { IncomingInvite } from "#providers/carriers/sip/dialogs/call-types.ts";

type Sender =
  /** Null when its address alone admits it; the called number then says which trunk is meant. */
  | { kind: "known"; trunk: TrunkSetup | null }
  | { kind: "refused"; status: number; headers: [string, string][] };

const NUMBER_CHARS_MAX = 64;

/** Cuts off the parameters of a telephone number (`;cpc=ordinary`, `;npdi;rn=…`). */
const NUMBER_WITH_PARAMETERS = /^(\+?[\d.()-]+);.*$/s;

const userOf = (uri: string): string | null =>
  parseUri(uri)?.user?.replace(NUMBER_WITH_PARAMETERS, "$1") ?? null;

interface Identification {
  roster: TrunkRoster;
  digest: ReturnType<typeof createDigestServer>;
  failures: FailedAuthentications;
  /** Warns the operator that several accounts have the number. */
  logTied(called: string | null, source: string): void;
}

const refused = (status: number, ...headers: [string, string][]): Sender =>
  ({ kind: "refused", status, headers });

export function identify(
  { roster, digest, failures, logTied }: Identification, invite: IncomingInvite,
): Sender {
  const { request, peer } = invite;
  const called = userOf(request.uri);
  const registered = roster.registeredAt(peer.host, called);
  // A call that may be meant for another account rings nowhere.
  if (registered === "tied") {
    logTied(called, peer.host);
    return refused(404);
  }
  if (registered) return { kind: "known", trunk: registered };
  if (roster.admits(peer.host, called)) return { kind: "known", trunk: null };
  // The request may also have answers to the challenges of other servers.
  const shown = request.headers.all("Authorization").find((value) => digest.isForUs(value)) ?? null;
  if (shown === null) return challenge(digest, false);
  // To slow down guessing, a host that has sent many wrong passwords has to wait.
  const waitMs = failures.waitMs(peer.host);
  if (waitMs > 0) return refused(503, ["Retry-After", String(Math.ceil(waitMs / 1000))]);
  const found = judge(roster, digest, shown, request);
  switch (found) {
    case "stale":
      return challenge(digest, true);
    case "mismatched":
      return refused(400);
    case "wrong":
      failures.record(peer.host, "sip");
      return refused(403);
    default:
      return { kind: "known", trunk: found };
  }
}

/** Two accounts may have lines of the same name: the password tells which is meant. */
function judge(
  roster: TrunkRoster, digest: Identification["digest"], shown: string, request: SipRequest,
): TrunkSetup | "stale" | "mismatched" | "wrong" {
  const username = /\busername="([^"]{1,256})"/i.exec(shown)?.[1] ?? "";
  let verdict: "stale" | "mismatched" | "wrong" = "wrong";
  for (const trunk of roster.named(username)) {
    const { kind } = digest.verify(shown, request, () => trunk.password);
    if (kind === "ok") return trunk;
    if (kind === "stale" || kind === "mismatched") verdict = kind;
  }
  return verdict;
}

/** A 401 with the best algorithm first, as RFC 8760 requires. */
const challenge = (digest: Identification["digest"], isStale: boolean): Sender =>
  refused(401, ...digest.challenges(isStale)
    .map((value): [string, string] => ["WWW-Authenticate", value]));

/**
 * Registrars call the registered Contact, and some put only that, or the user name, in To as well:
 * then the trunk's own number is meant.
 */
export function calledNumber({ request }: IncomingInvite, trunk: TrunkSetup | null): string {
  const to = userOf(parseNameAddr(request.headers.get("To") ?? "")?.uri ?? "");
  const names = trunk ? [contactUserOf(trunk), identityOf(trunk).user] : [];
  const number = [userOf(request.uri), to].find((user) => user !== null && !names.includes(user));
  return (number ?? trunk?.phoneNumber ?? "").slice(0, NUMBER_CHARS_MAX);
}

/** Values with which a caller withholds the number from the called party (RFC 3323, 3325). */
const PRIVATE = /\b(?:id|user|header)\b/i;

/** What telephone networks call somebody whose number they withhold or do not know. */
const NOBODY = /^(?:|anonymous|restricted|unavailable|unknown)$/i;

/**
 * Null when withheld or unknown. The network's P-Asserted-Identity takes precedence over the From,
 * unless the caller asks for privacy: then it is for networks only.
 */
export function callerNumber({ request: { headers } }: IncomingInvite): string | null {
  const isPrivate = PRIVATE.test(headers.all("Privacy").join());
  for (const name of isPrivate ? ["From"] : ["P-Asserted-Identity", "From"]) {
    const uri = parseNameAddr(headers.get(name) ?? "")?.uri ?? "";
    const user = userOf(uri) ?? "";
    const isNobody = NOBODY.test(user) || parseUri(uri)?.host.endsWith(".invalid");
    if (!isNobody) return user.slice(0, NUMBER_CHARS_MAX);
  }
  return null;
}
