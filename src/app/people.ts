// Composition root, the people of an account: members, sign-in, the audit log, and what others see
// of a caller. Called by features.ts; mount.ts and admission.ts use it.
import type { Accounts } from "#features/accounts/accounts.ts";
import { createAuditLog, type By } from "#features/accounts/audit.ts";
import { createPasswords, type PasswordCost } from "#features/accounts/people/passwords.ts";
import { may, type Role } from "#features/accounts/people/roles.ts";
import { createSignIn } from "#features/accounts/people/sign-in.ts";
import { createUsers, userAuthorId, type User } from "#features/accounts/people/users.ts";
import type { Config } from "#config/config.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { Author } from "#events/events.ts";
import type { HttpRequest } from "#http/exchange.ts";
import type { Caller } from "#http/route.ts";
import { createOpenId } from "#providers/identity/openid.ts";
import type { AsksProvider } from "#providers/identity/port.ts";
import type { Storage } from "#storage/storage.ts";

interface PeopleOptions {
  config: Config;
  storage: Pick<Storage, "users" | "audit">;
  accounts: Accounts;
  bus: EventBus;
  system: System;
  passwordCost?: PasswordCost | undefined;
  /** Some members may see less than before: their open streams are checked again. */
  onChange(): void;
}

export type People = ReturnType<typeof createPeople>;

/** Roles that may build get the scopes of a writing key; all else depends on the role. */
const scopesOf = (role: Role): string[] => may(role, "build") ? ["read", "write"] : ["read"];

const callerOfUser = ({ id, accountId, role }: User, sessionId: number): Caller => ({
  accountId, keyId: 0, role, scopes: scopesOf(role), member: { userId: id, sessionId },
});

const authorOfUser = ({ id, name }: User): Author => ({ id: userAuthorId(id), name });

export function createPeople(options: PeopleOptions) {
  const { config, storage, accounts, bus, system, passwordCost, onChange } = options;
  const shared = { store: storage.users, bus, system, onChange };
  const signIn = createSignIn({
    ...shared,
    passwords: createPasswords({ system, cost: passwordCost }),
    limits: config.PARLEY_RATE_LIMITS,
    domains: config.PARLEY_OIDC_DOMAINS,
    newcomers: newcomersOf(options),
  });
  const users = createUsers(shared);
  const current = oncePerTurn(signIn.memberOf);
  const authorOf = async (caller: Caller): Promise<Author> => {
    if (!caller.member) return accounts.authorOf(caller);
    const user = await users.find(caller.accountId, caller.member.userId);
    return user ? authorOfUser(user) : { id: userAuthorId(caller.member.userId), name: "" };
  };
  return {
    users, signIn, authorOf,
    audit: createAuditLog({ store: storage.audit, bus, system }),
    oidc: openIdOf(config),
    /** Null: the account has no such member, or key in force, that may answer. */
    findAuthor: async (accountId: number, id: string): Promise<Author | null> => {
      const userId = Number(/^user:(\d{1,15})$/.exec(id)?.[1] ?? 0);
      if (userId === 0) return accounts.findAuthor(accountId, id);
      const user = await users.find(accountId, userId);
      return user && may(user.role, "answer") ? authorOfUser(user) : null;
    },
    /** The author of a deed: the caller, and the address it came from. */
    byOf: async (caller: Caller, { address }: Pick<HttpRequest, "address">): Promise<By> =>
      ({ actor: { kind: caller.member ? "user" : "key", ...await authorOf(caller) }, address }),
    memberOf: async (token: string): Promise<Caller | null> => {
      const found = await signIn.find(token);
      return found && callerOfUser(found.user, found.sessionId);
    },
    /** The caller with the member's present role. */
    callerOf: async (sessionId: number): Promise<Caller | null> => {
      const user = await signIn.memberOf(sessionId);
      return user && callerOfUser(user, sessionId);
    },
    isInForce: async ({ keyId, member }: Pick<Caller, "keyId" | "member">): Promise<boolean> =>
      member ? await current(member.sessionId) !== null : accounts.isInForce(keyId),
    mayAudit: async ({ keyId, member }: Caller): Promise<boolean> => {
      if (!member) return accounts.isInForce(keyId);
      const user = await current(member.sessionId);
      return user !== null && may(user.role, "audit");
    },
  };
}

/** Asks once per session and event-loop turn: an event reaches all its watchers within one turn. */
function oncePerTurn(
  find: (sessionId: number) => Promise<User | null>,
): (sessionId: number) => Promise<User | null> {
  const asked = new Map<number, Promise<User | null>>();
  return (sessionId) => {
    const known = asked.get(sessionId);
    if (known) return known;
    const answer = find(sessionId);
    asked.set(sessionId, answer);
    setImmediate(() => asked.delete(sessionId));
    return answer;
  };
}

/** Null: OpenID sign-in is for members and invited people only. */
function newcomersOf({ config, accounts }: PeopleOptions) {
  const role = config.PARLEY_OIDC_DEFAULT_ROLE;
  if (role === null) return null;
  const accountOf = async (): Promise<number | null> => {
    const all = await accounts.list();
    const chosen = config.PARLEY_OIDC_ACCOUNT;
    if (chosen !== null) return all.some(({ id }) => id === chosen) ? chosen : null;
    return all.length === 1 ? all[0]?.id ?? null : null;
  };
  return { role, accountOf };
}

function openIdOf(config: Config): AsksProvider | null {
  const {
    PARLEY_OIDC_ISSUER: issuer, PARLEY_OIDC_CLIENT_ID: clientId,
    PARLEY_OIDC_CLIENT_SECRET: clientSecret, PARLEY_OIDC_NAME: name,
  } = config;
  if (issuer === null || clientId === null || clientSecret === null) return null;
  return createOpenId({ issuer, clientId, clientSecret, name });
}
