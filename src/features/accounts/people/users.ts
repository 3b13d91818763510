// People of an account: records of members, invitations and sessions, their store port, and the use
// cases of adding, changing and removing members. Signing in is in sign-in.ts.
import { hash } from "node:crypto";
import { Fault, fieldFault } from "#core/faults.ts";
import type { Instant, System } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import type { EventBus } from "#events/bus.ts";
import type { Author } from "#events/events.ts";
import { publishNoted, type By } from "#features/accounts/audit.ts";
import { mayManage, type Role } from "./roles.ts";

export interface User {
  id: number;
  accountId: number;
  /** In lower case. */
  email: string;
  name: string;
  role: Role;
  hasPassword: boolean;
  /** True: linked to a person at the OpenID provider. */
  isLinked: boolean;
  /** The last time somebody signed in as this member. */
  seenAt: Instant | null;
  createdAt: Instant;
}

export interface StoredUser extends User {
  passwordHash: string | null;
}

export interface Invitation {
  id: number;
  accountId: number;
  /** The member whose password it resets; null: it creates a member. */
  userId: number | null;
  email: string;
  role: Role;
  invitedBy: Author;
  createdAt: Instant;
  expiresAt: Instant;
}

export interface UserSession {
  id: number;
  address: string;
  agent: string;
  createdAt: Instant;
  expiresAt: Instant;
}

/** A person at the OpenID provider. */
export interface Subject {
  issuer: string;
  subject: string;
}

export interface NewSession {
  accountId: number;
  userId: number;
  tokenHash: string;
  address: string;
  agent: string;
  expiresAt: Instant;
  /** The hash that the password was verified against; null: no password was needed. */
  provenBy: string | null;
  by: By;
  now: Instant;
}

/** Who acts on members; where `userId` is set, the store reads that member's current role. */
export interface Manager {
  userId: number | null;
  role: Role;
}

export interface Join {
  accountId: number;
  invitationId: number;
  name: string;
  passwordHash: string | null;
  subject: Subject | null;
  address: string;
  now: Instant;
}

export type JoinOutcome =
  | { kind: "joined"; user: User }
  /** Used, taken back or expired. */
  | { kind: "gone" }
  /** The address belongs to a member already, of this account or another. */
  | { kind: "email_taken" };

export type ChangeOutcome =
  | { kind: "changed"; user: User }
  | { kind: "not_found" } | { kind: "last_owner" } | { kind: "forbidden" };

export type InviteOutcome =
  | { kind: "invited"; invitation: Invitation } | { kind: "is_member" } | { kind: "forbidden" };

/** Each write is one transaction, including its entry in the audit log. */
export interface UserStore {
  list(accountId: number): Promise<User[]>;
  find(accountId: number, userId: number): Promise<User | null>;
  /** Whether any account has a member. */
  hasAny(): Promise<boolean>;
  findByEmail(email: string): Promise<StoredUser | null>;
  findBySubject(subject: Subject): Promise<User | null>;
  /** Null unless the session is in force and its member still exists. */
  findSession(
    tokenHash: string, now: Instant,
  ): Promise<{ sessionId: number; user: User } | null>;
  /** As `findSession`, for streams that the session opened. */
  sessionById(sessionId: number, now: Instant): Promise<User | null>;
  sessions(userId: number, now: Instant): Promise<UserSession[]>;
  /** Adds a member at once, without an invitation; null: the address is taken. */
  add(args: Omit<Join, "invitationId"> & { email: string; role: Role }): Promise<User | null>;
  change(args: {
    accountId: number; userId: number; manager: Manager; by: By; now: Instant;
    role: Role | null; name: string | null;
  }): Promise<ChangeOutcome>;
  /** Ends the member's sessions too. */
  remove(args: {
    accountId: number; userId: number; manager: Manager; by: By; now: Instant;
  }): Promise<ChangeOutcome>;
  /**
   * Also ends every session of the member and voids links for a new password. False: the member is
   * gone, or the password is no longer `provenBy`.
   */
  setPassword(args: {
    accountId: number; userId: number; passwordHash: string; provenBy: string | null; by: By;
    now: Instant;
  }): Promise<boolean>;
  /** False: the member is gone, or linked to another person meanwhile. */
  link(args: {
    accountId: number; userId: number; subject: Subject; by: By; now: Instant;
  }): Promise<boolean>;
  /** Null: the member is gone, or the password changed meanwhile. */
  openSession(args: NewSession): Promise<number | null>;
  /** False when the member has no such session. */
  closeSession(args: {
    accountId: number; userId: number; sessionId: number; by: By; now: Instant;
  }): Promise<boolean>;
  invitations(accountId: number, now: Instant): Promise<Invitation[]>;
  findInvitation(tokenHash: string, now: Instant): Promise<Invitation | null>;
  /** The oldest open invitation that creates a member. */
  invitationFor(email: string, now: Instant): Promise<Invitation | null>;
  /** Null: the account has a member of that address. Replaces an open invitation. */
  invite(args: {
    accountId: number; userId: number | null; email: string; role: Role; tokenHash: string;
    expiresAt: Instant; manager: Manager; by: By; now: Instant;
  }): Promise<InviteOutcome>;
  /** False when there is no such open invitation. */
  closeInvitation(args: {
    accountId: number; invitationId: number; by: By; now: Instant;
  }): Promise<boolean>;
  join(args: Join): Promise<JoinOutcome>;
  /** Microseconds until the next try, 0: allowed now. Each counter that is not full counts it. */
  tryPassword(args: PasswordTry): Promise<number>;
}

/** One attempt, counted by several counters, such as the e-mail address and the network. */
export interface PasswordTry {
  counted: { whoHash: string; max: number }[];
  windowMicros: number;
  now: Instant;
}

export interface Users {
  list(accountId: number): Promise<User[]>;
  find(accountId: number, userId: number): Promise<User | null>;
  invitations(accountId: number): Promise<Invitation[]>;
  /** The token is not stored: it can only be shown now. */
  invite(args: {
    accountId: number; email: string; role: Role; manager: Manager; by: By;
  }): Promise<{ invitation: Invitation; token: string }>;
  /** A link with which a member sets a new password. */
  resetPassword(args: {
    accountId: number; userId: number; manager: Manager; by: By;
  }): Promise<{ invitation: Invitation; token: string }>;
  closeInvitation(args: { accountId: number; invitationId: number; by: By }): Promise<void>;
  change(args: {
    accountId: number; userId: number; manager: Manager; by: By;
    role: Role | null; name: string | null;
  }): Promise<User>;
  remove(args: { accountId: number; userId: number; manager: Manager; by: By }): Promise<void>;
}

const INVITATION_DAYS = 7;
const RESET_DAYS = 1;
const TOKEN_BYTES = 32;

export const userAuthorId = (userId: number): string => `user:${userId}`;

/** False: the author is a key or the account. */
export const isUserAuthor = (authorId: string): boolean => authorId.startsWith("user:");
export const hashToken = (token: string): string => hash("sha256", token, "hex");
export const newToken = (system: System): string =>
  system.randomBytes(TOKEN_BYTES).toString("base64url");
/** The token is behind `#`, so that no server or proxy logs it. */
export const joinLink = (origin: string, token: string): string => `${origin}/#/join/${token}`;

/** The form of an e-mail address, shared with the schemas of routes. */
export const EMAIL_FORM = { pattern: "^[^@\\s]+@[^@\\s]+$", maxLength: 254 };
const EMAIL = new RegExp(EMAIL_FORM.pattern);
/** They come with copied text; the owner of the address could never sign in with it. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/u;
export const isEmail = (text: string): boolean =>
  EMAIL.test(text) && text.length <= EMAIL_FORM.maxLength;
/** The form in which addresses are stored and compared. */
export const emailOf = (text: string): string => text.trim().toLowerCase();

const noMember = (): Fault => new Fault(404, "Member not found.");
const ownersOnly = (): Fault => {
  const message = "Only an owner may appoint, change or remove owners.";
  return new Fault(403, message, { extra: { error: "Insufficient permissions", message } });
};

function changed(outcome: ChangeOutcome): User {
  switch (outcome.kind) {
    case "changed":
      return outcome.user;
    case "not_found":
      throw noMember();
    case "last_owner":
      throw new Fault(409, "An account needs an owner: make somebody else an owner first.");
    case "forbidden":
      throw ownersOnly();
  }
}

interface UsersOptions {
  store: UserStore;
  bus: EventBus;
  system: System;
  /** Members changed: their open streams are checked again, as they may have lost access. */
  onChange(): void;
}

export function createUsers({ store, bus, system, onChange }: UsersOptions): Users {
  const invite = async (
    args: Parameters<Users["invite"]>[0] & { userId: number | null }, days: number,
  ): Promise<{ invitation: Invitation; token: string }> => {
    if (!mayManage(args.manager.role, args.role)) throw ownersOnly();
    const token = newToken(system);
    const now = system.now();
    const outcome = await store.invite({
      ...args, email: emailOf(args.email), tokenHash: hashToken(token),
      expiresAt: now + days * DAY_MICROS, now,
    });
    if (outcome.kind === "forbidden") throw ownersOnly();
    if (outcome.kind === "is_member") {
      throw fieldFault("email", "There already is a member with this e-mail address.");
    }
    publishNoted(bus, args.accountId);
    return { invitation: outcome.invitation, token };
  };
  return {
    list: store.list,
    find: store.find,
    invitations: (accountId) => store.invitations(accountId, system.now()),
    invite: async (args) => {
      if (INVISIBLE.test(args.email)) {
        throw fieldFault(
          "email", "The e-mail address contains an invisible character: type it by hand.");
      }
      return invite({ ...args, userId: null }, INVITATION_DAYS);
    },
    resetPassword: async ({ userId, ...args }) => {
      const user = await store.find(args.accountId, userId);
      if (!user) throw noMember();
      return invite({ ...args, userId, email: user.email, role: user.role }, RESET_DAYS);
    },
    closeInvitation: async (args) => {
      if (!await store.closeInvitation({ ...args, now: system.now() })) {
        throw new Fault(404, "Invitation not found.");
      }
      publishNoted(bus, args.accountId);
    },
    change: async (args) => {
      const user = changed(await store.change({ ...args, now: system.now() }));
      publishNoted(bus, args.accountId);
      onChange();
      return user;
    },
    remove: async (args) => {
      changed(await store.remove({ ...args, now: system.now() }));
      publishNoted(bus, args.accountId);
      onChange();
    },
  };
}
