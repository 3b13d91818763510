// Signing in as a member: sessions, passwords, accepted invitations. Nobody can find out who is a
// member: an unknown address takes as long and is answered like a wrong password.
import { LIMITS } from "#core/limits.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { addressKey } from "#core/networks.ts";
import type { Instant, System } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import { publishNoted, type By } from "#features/accounts/audit.ts";
import type { EventBus } from "#events/bus.ts";
import type { Passwords } from "./passwords.ts";
import type { Role } from "./roles.ts";
import {
  emailOf, hashToken, newToken, userAuthorId, type Invitation, type Subject, type User,
  type UserSession, type UserStore,
} from "./users.ts";

/** The address and browser a sign-in comes from. */
export interface From {
  address: string;
  agent: string;
}

export interface OpenedSession {
  /** Only its hash is stored: the token itself is in the browser's cookie. */
  token: string;
  user: User;
  expiresAt: Instant;
  /** True: the cookie survives closing the browser. */
  isKept: boolean;
}

/** The person as the OpenID provider identifies them; the e-mail address is verified. */
interface Claims extends Subject {
  email: string;
  name: string | null;
}

export interface Member {
  user: User;
  sessionId: number;
}

export interface SignIn {
  /** Throws Fault 401, the same whatever is wrong, or 429. */
  login(args: {
    email: string; password: string; isKept: boolean; from: From;
  }): Promise<OpenedSession>;
  /** Null: the claims let nobody in. */
  enter(claims: Claims, from: From): Promise<OpenedSession | null>;
  /** Whether there is anybody who could. */
  hasMembers(): Promise<boolean>;
  logout(token: string, from: From): Promise<void>;
  /** Null for anything but the token of a session in force. */
  find(token: string): Promise<Member | null>;
  /** The session's member in their current state; null once it has ended. */
  memberOf(sessionId: number): Promise<User | null>;
  sessions(userId: number): Promise<UserSession[]>;
  closeSession(member: Member, sessionId: number, by: By): Promise<boolean>;
  /** Throws Fault 404 for a link that is used, taken back, expired or made up. */
  invitation(token: string): Promise<Invitation>;
  join(args: { token: string; name: string; password: string; from: From }): Promise<OpenedSession>;
  /** Ends all sessions of the member and opens one anew, as long as theirs. Fault 422, 429. */
  changePassword(
    member: Member, args: { current: string; password: string; from: From; by: By },
  ): Promise<OpenedSession>;
}

const SESSION_MS = 12 * 60 * 60 * 1000;
const KEPT_SESSION_DAYS = 30;
const AGENT_CHARS_MAX = 200;
const QUARTER_MICROS = 15 * 60 * 1_000_000;

interface SignInOptions {
  store: UserStore;
  passwords: Passwords;
  bus: EventBus;
  system: System;
  /** False: attempts are not counted. */
  limits: boolean;
  /** Domains whose addresses may sign in at the OpenID provider; empty: all. */
  domains: string[];
  /** Role and account of people who are neither members nor invited; null: they are refused. */
  newcomers: { role: Role; accountOf(): Promise<number | null> } | null;
  /** Sessions have ended: the streams they opened are checked again. */
  onChange(): void;
}

const wrong = (): Fault => new Fault(401, "The e-mail address or the password is wrong.", {
  extra: { error: "Unauthorized", message: "The e-mail address or the password is wrong." },
});

/** Attempts are counted across all nodes and restarts. */
type Guard = (who: string, address: string) => Promise<void>;

/** Limits attempts per e-mail address and network, per e-mail address, and per network. */
function createGuard({ limits, store, system }: SignInOptions): Guard {
  return async (who, address) => {
    if (!limits) return;
    const from = addressKey(address);
    const waitMicros = await store.tryPassword({
      counted: [
        { whoHash: hashToken(`pair ${who} ${from}`), max: LIMITS.passwordTriesMax },
        { whoHash: hashToken(`email ${who}`), max: LIMITS.passwordTriesOfEmailMax },
        { whoHash: hashToken(`address ${from}`), max: LIMITS.passwordTriesOfAddressMax },
      ],
      windowMicros: QUARTER_MICROS, now: system.now(),
    });
    if (waitMicros === 0) return;
    const retryAfterS = Math.ceil(waitMicros / 1_000_000);
    const message = `Too many attempts. Try again in ${Math.ceil(retryAfterS / 60)} minutes.`;
    throw new Fault(429, message, { retryAfterS, extra: { message, retry_after: retryAfterS } });
  };
}

export function createSignIn(options: SignInOptions): SignIn {
  const { store, passwords, bus, system } = options;
  const guard = createGuard(options);
  const open = async (
    user: User, from: From, isKept: boolean, provenBy: string | null = null,
  ): Promise<OpenedSession> => {
    const token = newToken(system);
    const now = system.now();
    const expiresAt = now + (isKept ? KEPT_SESSION_DAYS * DAY_MICROS : SESSION_MS * 1000);
    const { accountId, id: userId } = user;
    const { address } = from;
    const opened = await store.openSession({
      accountId, userId, tokenHash: hashToken(token), address, expiresAt, provenBy, now,
      agent: from.agent.slice(0, AGENT_CHARS_MAX), by: { actor: actorOf(user), address },
    });
    if (opened === null) throw wrong();
    publishNoted(bus, accountId);
    return { token, user, expiresAt, isKept };
  };
  const close = async (user: User, sessionId: number, by: By): Promise<boolean> => {
    const { accountId, id: userId } = user;
    const isClosed = await store.closeSession(
      { accountId, userId, sessionId, by, now: system.now() });
    if (!isClosed) return false;
    publishNoted(bus, accountId);
    options.onChange();
    return true;
  };
  return {
    login: async ({ email: given, password, isKept, from }) => {
      const email = emailOf(given);
      await guard(email, from.address);
      const user = await store.findByEmail(email);
      const isRight = await passwords.verify(password, user?.passwordHash ?? null);
      if (!user || !isRight) throw wrong();
      return open(user, from, isKept, user.passwordHash);
    },
    enter: async (claims, from) => {
      const user = await recognise(options, claims, from);
      return user && open(user, from, true);
    },
    logout: async (token, { address }) => {
      const found = await store.findSession(hashToken(token), system.now());
      if (!found) return;
      const { user, sessionId } = found;
      await close(user, sessionId, { actor: actorOf(user), address });
    },
    hasMembers: store.hasAny,
    find: (token) => store.findSession(hashToken(token), system.now()),
    memberOf: (sessionId) => store.sessionById(sessionId, system.now()),
    sessions: (userId) => store.sessions(userId, system.now()),
    closeSession: ({ user }, sessionId, by) => close(user, sessionId, by),
    invitation: (token) => openInvitation(options, token),
    join: async ({ token, name, password, from }) => {
      const { accountId, id: invitationId, email } = await openInvitation(options, token);
      assertUsable(password, email);
      const outcome = await store.join({
        accountId, invitationId, name, passwordHash: await passwords.hash(password),
        subject: null, address: from.address, now: system.now(),
      });
      if (outcome.kind === "gone") throw gone();
      if (outcome.kind === "email_taken") {
        throw new Fault(409, "There already is a member with this e-mail address.");
      }
      options.onChange();
      return open(outcome.user, from, false);
    },
    changePassword: createChangePassword(options, guard, open),
  };
}

function createChangePassword(
  { store, passwords, system, onChange }: SignInOptions,
  guard: Guard,
  open: (user: User, from: From, isKept: boolean) => Promise<OpenedSession>,
): SignIn["changePassword"] {
  return async ({ user, sessionId }, { current, password, from, by }) => {
    const { accountId, id: userId, email } = user;
    await guard(email, from.address);
    const own = (await store.sessions(userId, system.now())).find(({ id }) => id === sessionId);
    const stored = await store.findByEmail(email);
    // A member who has only signed in at the provider sets a first password.
    const isFirst = stored?.passwordHash === null;
    if (!isFirst && current === "") {
      throw fieldFault("current_password", "The current password field is required.");
    }
    const wrong = (): Fault => fieldFault("current_password", "The current password is wrong.");
    const provenBy = stored?.passwordHash ?? null;
    if (!isFirst && !await passwords.verify(current, provenBy)) throw wrong();
    assertUsable(password, email);
    const passwordHash = await passwords.hash(password);
    const now = system.now();
    if (!await store.setPassword({ accountId, userId, passwordHash, provenBy, by, now })) {
      throw wrong();
    }
    onChange();
    const isKept = own !== undefined && own.expiresAt - own.createdAt > SESSION_MS * 1000;
    return open(user, from, isKept);
  };
}

const actorOf = ({ id, name }: User) => ({ kind: "user", id: userAuthorId(id), name }) as const;

const gone = (): Fault => new Fault(404, "This link was used, withdrawn or has expired.");

async function openInvitation(
  { store, system }: SignInOptions, token: string,
): Promise<Invitation> {
  const invitation = await store.findInvitation(hashToken(token), system.now());
  if (!invitation) throw gone();
  return invitation;
}

function assertUsable(password: string, email: string): void {
  const [name = ""] = email.split("@");
  const isName = [email, name].includes(password.trim().toLowerCase());
  const isOneLetter = new Set(password).size < 3;
  if (isName || isOneLetter) throw fieldFault("password", "The password is too easy to guess.");
}

/** The linked member, else the one with that address, else an invited person, else a newcomer. */
async function recognise(
  { store, system, domains, newcomers }: SignInOptions, claims: Claims, { address }: From,
): Promise<User | null> {
  const now = system.now();
  const email = emailOf(claims.email);
  const domain = email.slice(email.lastIndexOf("@") + 1);
  if (domains.length > 0 && !domains.includes(domain)) return null;
  const linked = await store.findBySubject(claims);
  if (linked) return linked;
  const subject = { issuer: claims.issuer, subject: claims.subject };
  const known = await store.findByEmail(email);
  if (known) {
    // Another person at the provider has this member's address now: it is not the same one.
    if (known.isLinked) return null;
    const { accountId, id: userId } = known;
    const by: By = { actor: actorOf(known), address };
    return await store.link({ accountId, userId, subject, by, now }) ? known : null;
  }
  const name = claims.name?.trim() || email;
  const person = { name, passwordHash: null, subject, address, now };
  const invitation = await store.invitationFor(email, now);
  if (invitation) {
    const { accountId, id: invitationId } = invitation;
    const outcome = await store.join({ accountId, invitationId, ...person });
    return outcome.kind === "joined" ? outcome.user : null;
  }
  const accountId = await newcomers?.accountOf() ?? null;
  if (!newcomers || accountId === null) return null;
  return store.add({ accountId, email, role: newcomers.role, ...person });
}
