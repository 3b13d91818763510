// Accounts and their API keys: records, store port, rules. A key is `<id>|<secret>`; only a hash of
// the secret is kept, so a key is shown once. Every check reads the store: a revoked key stops
// working at once, whichever process revoked it.
import { hash, timingSafeEqual } from "node:crypto";
import type { Micros } from "#core/money.ts";
import { DEFAULT_PLAN } from "#core/price-lists.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { Author, CommittedEvent, Refused } from "#events/events.ts";
import { BY_OPERATOR, publishNoted, type By } from "./audit.ts";
import { may, type Role } from "./people/roles.ts";

export interface Account {
  id: number;
  name: string;
  email: string;
  plan: string;
  /** IANA name of the time zone in which its days are counted; null: nobody has chosen one. */
  timeZone: string | null;
  balanceMicros: Micros;
  reservedMicros: Micros;
  createdAt: Instant;
  /** The most recent trouble, however long ago; null: none yet. */
  trouble: Trouble | null;
}

/** A visitor of the account was not answered. */
export interface Trouble {
  reason: Refused | "reply_failed";
  conversationUuid: string | null;
  at: Instant;
}

export type Scope = "read" | "write";
export const ALL_SCOPES: readonly Scope[] = ["read", "write"];

export interface ApiKey {
  id: number;
  accountId: number;
  name: string;
  scopes: Scope[];
  /** The most it may do: the role that its creator had at the time. */
  role: Role;
  /** Null: the command line, or not known. */
  madeBy: Author | null;
  expiresAt: Instant | null;
  lastUsedAt: Instant | null;
  revokedAt: Instant | null;
  createdAt: Instant;
}

export interface StoredKey extends ApiKey {
  secretHash: string;
}

export type CreditOutcome =
  | { kind: "entered"; balanceMicros: Micros; events: CommittedEvent[] }
  | { kind: "repeated"; balanceMicros: Micros }
  | { kind: "not_found" }
  | { kind: "below_zero" };

interface KeyUse {
  accountId: number;
  keyId: number;
  at: Instant;
}

/** Each method is one transaction; writes resolve once they are durable. */
export interface AccountStore {
  createAccount(args: {
    name: string;
    email: string;
    plan: string;
    now: Instant;
  }): Promise<Account>;
  /** False when there is no such account. */
  setPlan(args: { accountId: number; plan: string }): Promise<boolean>;
  /** False when there is no such account. */
  setTimeZone(args: { accountId: number; timeZone: string | null }): Promise<boolean>;
  listAccounts(): Promise<Account[]>;
  findAccount(accountId: number): Promise<Account | null>;
  createKey(args: NewKey): Promise<ApiKey>;
  /** Keys of the account that are not revoked, oldest first. */
  listKeys(accountId: number): Promise<ApiKey[]>;
  findKey(keyId: number): Promise<StoredKey | null>;
  /** False when the account has no such key in force. */
  revokeKey(args: {
    accountId: number; keyId: number; by: By; now: Instant;
  }): Promise<boolean>;
  /** Records when keys were last used; deleted keys are skipped. */
  touchKeys(uses: Iterable<KeyUse>): Promise<void>;
  /** Adds (or with a negative amount takes) money; one entry per reference, for ever. */
  credit(args: {
    accountId: number;
    amountMicros: Micros;
    reference: string;
    now: Instant;
  }): Promise<CreditOutcome>;
}

export interface NewKey {
  accountId: number;
  name: string;
  secretHash: string;
  scopes: Scope[];
  role: Role;
  expiresAt: Instant | null;
  by: By;
  now: Instant;
}

/** The account, and the key with which a request is made. */
export interface Identity {
  accountId: number;
  keyId: number;
  scopes: Scope[];
  role: Role;
}

export interface Accounts {
  create(name: string, email?: string, plan?: string): Promise<Account>;
  /** False when there is no such account. */
  setPlan(accountId: number, plan: string): Promise<boolean>;
  /** `timeZone` null: none is chosen. False when there is no such account. */
  setTimeZone(accountId: number, timeZone: string | null): Promise<boolean>;
  /** The time zone in which days are counted; UTC where nobody has chosen one. */
  zoneOf(accountId: number): Promise<string>;
  list(): Promise<Account[]>;
  find(accountId: number): Promise<Account | null>;
  /** The token is not stored: it can only be shown now. */
  createKey(
    accountId: number,
    name: string,
    options?: { scopes?: Scope[]; expiresAt?: Instant | null; role?: Role; by?: By },
  ): Promise<{ key: ApiKey; token: string }>;
  listKeys(accountId: number): Promise<ApiKey[]>;
  revokeKey(accountId: number, keyId: number, by?: By): Promise<boolean>;
  /** Without the right secret, a key that exists is reported as unknown too. */
  authenticate(token: string): Promise<Identity | "unknown" | "revoked" | "expired">;
  /** Null once the key is revoked or expired. */
  identityOf(keyId: number): Promise<Identity | null>;
  /** How its holder is shown to others: named by the key's label, or else by the account's name. */
  authorOf(identity: Pick<Identity, "accountId" | "keyId">): Promise<Author>;
  /** The author with this id; null: the account has no such key in force that may answer. */
  findAuthor(accountId: number, id: string): Promise<Author | null>;
  /** False once the key is revoked or expired. */
  isInForce(keyId: number): Promise<boolean>;
  credit(accountId: number, amountMicros: Micros, reference?: string): Promise<CreditOutcome>;
  /** Writes down key uses gathered since the last call. */
  flushKeyUses(): Promise<void>;
}

const DEFAULT_ZONE = "UTC";

const SECRET_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const SECRET_LENGTH = 48;

function hashSecret(secret: string): string {
  return hash("sha256", secret, "hex");
}

/** 48 characters of base 62 carry 285 bits; bytes past the largest multiple of 62 are dropped. */
function drawSecret(system: System): string {
  let secret = "";
  while (secret.length < SECRET_LENGTH) {
    for (const byte of system.randomBytes(64)) {
      if (byte < 248 && secret.length < SECRET_LENGTH) secret += SECRET_CHARS[byte % 62];
    }
  }
  return secret;
}

function splitToken(token: string): { keyId: number; secret: string } | null {
  const match = /^(\d{1,15})\|([A-Za-z0-9]{20,100})$/.exec(token);
  return match?.[1] && match[2] ? { keyId: Number(match[1]), secret: match[2] } : null;
}

const identity = ({ accountId, id: keyId, scopes, role }: ApiKey): Identity =>
  ({ accountId, keyId, scopes, role });

/** Named by the key's label where it has one, or else by the account's name. */
async function authorOf(
  store: AccountStore, { accountId, keyId }: Pick<Identity, "accountId" | "keyId">,
): Promise<Author> {
  const [key, account] = await Promise.all([store.findKey(keyId), store.findAccount(accountId)]);
  return { id: `key:${keyId}`, name: key?.name.trim() || (account?.name ?? "") };
}

function createNewKey({ store, system, bus }: {
  store: AccountStore; system: System; bus: EventBus;
}): Accounts["createKey"] {
  return async (accountId, name, options = {}) => {
    const secret = drawSecret(system);
    const key = await store.createKey({
      accountId,
      name,
      secretHash: hashSecret(secret),
      scopes: options.scopes ?? [...ALL_SCOPES],
      role: options.role ?? "owner",
      expiresAt: options.expiresAt ?? null,
      by: options.by ?? BY_OPERATOR,
      now: system.now(),
    });
    publishNoted(bus, accountId);
    return { key, token: `${key.id}|${secret}` };
  };
}

export function createAccounts({ store, system, bus }: {
  store: AccountStore; system: System; bus: EventBus;
}): Accounts {
  let uses = new Map<number, KeyUse>();
  /** One read per key and turn of the event loop, in which an event reaches all its watchers. */
  const askedFor = new Map<number, Promise<boolean>>();
  const inForce = (key: StoredKey | null): key is StoredKey =>
    key !== null && key.revokedAt === null
    && (key.expiresAt === null || key.expiresAt > system.now());
  return {
    create: (name, email = "", plan = DEFAULT_PLAN) =>
      store.createAccount({ name, email, plan, now: system.now() }),
    setPlan: (accountId, plan) => store.setPlan({ accountId, plan }),
    setTimeZone: (accountId, timeZone) => store.setTimeZone({ accountId, timeZone }),
    zoneOf: async (accountId) => (await store.findAccount(accountId))?.timeZone ?? DEFAULT_ZONE,
    list: () => store.listAccounts(),
    find: (accountId) => store.findAccount(accountId),
    createKey: createNewKey({ store, system, bus }),
    listKeys: (accountId) => store.listKeys(accountId),
    revokeKey: async (accountId, keyId, by = BY_OPERATOR) => {
      const isRevoked = await store.revokeKey({ accountId, keyId, by, now: system.now() });
      if (isRevoked) publishNoted(bus, accountId);
      return isRevoked;
    },
    authenticate: async (token) => {
      const parts = splitToken(token);
      const key = parts && await store.findKey(parts.keyId);
      if (!parts || !key) return "unknown";
      const given = Buffer.from(hashSecret(parts.secret), "hex");
      if (!timingSafeEqual(given, Buffer.from(key.secretHash, "hex"))) return "unknown";
      if (key.revokedAt !== null) return "revoked";
      if (!inForce(key)) return "expired";
      uses.set(key.id, { accountId: key.accountId, keyId: key.id, at: system.now() });
      return identity(key);
    },
    identityOf: async (keyId) => {
      const key = await store.findKey(keyId);
      return inForce(key) ? identity(key) : null;
    },
    authorOf: (identity) => authorOf(store, identity),
    findAuthor: async (accountId, id) => {
      const keyId = Number(/^key:(\d{1,15})$/.exec(id)?.[1] ?? 0);
      const key = await store.findKey(keyId);
      if (!inForce(key) || key.accountId !== accountId) return null;
      if (!may(key.role, "answer") || !key.scopes.includes("write")) return null;
      return authorOf(store, { accountId, keyId });
    },
    isInForce: (keyId) => {
      const known = askedFor.get(keyId);
      if (known) return known;
      const answer = store.findKey(keyId).then(inForce);
      askedFor.set(keyId, answer);
      setImmediate(() => askedFor.delete(keyId));
      return answer;
    },
    credit: async (accountId, amountMicros, reference = `credit:${system.uuid()}`) => {
      const outcome = await store.credit({ accountId, amountMicros, reference, now: system.now() });
      if (outcome.kind === "entered") bus.publishCommitted(outcome.events);
      return outcome;
    },
    flushKeyUses: async () => {
      const flushed = uses;
      uses = new Map();
      await store.touchKeys(flushed.values());
    },
  };
}
