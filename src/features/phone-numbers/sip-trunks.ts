// SIP trunks: numbers of the account's own telephone system. Records, store port, what their owner
// does with them, and what the SIP carrier asks. A trunk is one with its number: it has its id, and
// giving the number up (phone-numbers.ts) is deleting the trunk.
import { changing } from "#core/changing.ts";
import { Fault, StorageFailure, type FieldErrors } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { SecretBox } from "#core/secrets.ts";
import type { Instant, System } from "#core/system.ts";
import type { SipCodec } from "#providers/carriers/sip/trunks/trunk.ts";
import type { CallingFormat } from "./dialled.ts";
import {
  findErrors, settled, type InboundAuth, type Transport, type TrunkType,
} from "./sip-rules.ts";
import { createTrunkOwners, type TrunkNodes } from "./trunk-owners.ts";

export interface SipTrunkFields {
  trunkType: TrunkType;
  /** E.164, or of an extension what the telephone system calls it. */
  phoneNumber: string;
  nickname: string | null;
  /** Two letters. */
  countryCode: string;
  username: string;
  /** Sealed at rest, opened for the carrier alone. */
  password: string;
  /** Host name in lower case, or IP address without brackets. */
  address: string;
  /** Null: what DNS says (SRV), else 5060, with TLS 5061. */
  port: number | null;
  transport: Transport;
  callingFormat: CallingFormat;
  /** `auth`: who calls in has to know name and password; `ip`: has to be at an allowed address. */
  inboundAuth: InboundAuth;
  /** Addresses and networks (CIDR); null unless `inboundAuth` is `ip`. */
  allowedNetworks: string[] | null;
  /** Calls whose sound is not encrypted are refused, and none is placed. */
  requireSrtp: boolean;
  /** Best first; the first decides how wide the sound of a call that is placed is. */
  codecs: readonly SipCodec[];
  /**
   * `address` is a proxy in front of the telephone system: requests are sent there with it as their
   * Route, and their URIs keep the domain of a `username` like user@domain.
   */
  outboundProxy: boolean;
}

interface SipTrunk extends SipTrunkFields {
  /** The phone number's. */
  id: number;
  accountId: number;
  inboundTrunkId: string;
  outboundTrunkId: string;
  createdAt: Instant;
  updatedAt: Instant;
}

/** Everything but the secret. */
export type SipTrunkRecord = Omit<SipTrunk, "password">;

/** As it is stored: the password is sealed, bound to the row by its uuid. */
export interface StoredSipTrunk extends SipTrunkRecord {
  uuid: string;
  sealedPassword: string;
  /** The node that is registered for it; null: none that lives. */
  ownerId: number | null;
}

export type CreateTrunkOutcome =
  | { kind: "created"; trunk: StoredSipTrunk }
  /** The account has one of the same number, name and address. */
  | { kind: "exists" }
  /** Another account has the number at the same carrier, and the operator has not decided. */
  | { kind: "claimed" }
  | { kind: "too_many" };

/** Each write is one transaction, of number and trunk together. */
export interface SipTrunkStore {
  create(trunk: Omit<StoredSipTrunk, "id" | "ownerId">, trunksMax: number): Promise<CreateTrunkOutcome>;
  /** `changed`: it is not the one that was read any more. */
  update(
    trunk: StoredSipTrunk & { expectedUpdatedAt: Instant },
  ): Promise<"updated" | "changed" | "exists" | "claimed" | "not_found">;
  /** Says whose the number is, in place of whoever's it was; false: there is no such account. */
  approve(args: { phoneNumber: string; accountId: number; now: Instant }): Promise<boolean>;
  /** The account the operator has given the number to; null: none. */
  approvedAccount(phoneNumber: string): Promise<number | null>;
  find(accountId: number, id: number): Promise<StoredSipTrunk | null>;
  /** Oldest first. */
  list(accountId: number): Promise<StoredSipTrunk[]>;
  /** The trunks of all accounts, oldest first. */
  all(): Promise<StoredSipTrunk[]>;
  /** This node is registered for those that are free of them; resolves to how many. */
  take(ids: number[]): Promise<number>;
  /** Those among them on whose number this node has no call, in their order. */
  quiet(ids: number[]): Promise<number[]>;
  /** This node is registered for these no more; null: for none. */
  giveBack(ids: number[] | null): Promise<void>;
}

export interface SipTrunks {
  /** Oldest first. */
  list(accountId: number): Promise<SipTrunkRecord[]>;
  /** Fault 404. */
  get(accountId: number, id: number): Promise<SipTrunkRecord>;
  /**
   * `errors`: what the schema found wrong with what is not among the fields. Fault 422 with these
   * and all that the rules find; Fault 409; Fault 500 when it could not be stored.
   */
  create(
    accountId: number, fields: Partial<SipTrunkFields>, errors: FieldErrors,
  ): Promise<SipTrunkRecord>;
  /** Absent members stay as they are. Faults as `create`, and 404. */
  update(
    accountId: number, id: number, changes: Partial<SipTrunkFields>, errors: FieldErrors,
  ): Promise<SipTrunkRecord>;
  /** The number was given up, and the trunk is gone with it. */
  removed(id: number): Promise<void>;
  /** The trunks of all accounts, oldest first, without secrets; kept in memory. */
  all(): Promise<readonly SipTrunkRecord[]>;
  approvedAccount: SipTrunkStore["approvedAccount"];
  /**
   * The other node that places the calls of a number: telephone systems take those of an extension
   * from whoever is registered. Null: whichever has the call.
   */
  placedBy(accountId: number, phoneNumber: string | null): Promise<number | null>;
  /** Sees what other nodes have changed, and registers this node for what is its share. */
  look(): Promise<void>;
  /** The other node has fewer than this one may have: it receives some. */
  give(askerId: number): Promise<void>;
  /** Leaves its registrations to other nodes. Idempotent. */
  leave(): Promise<void>;
  carrier: SipTrunkPort;
}

/** `registerS`: for how long this node asks the registrar to know it; null: another node does. */
type ActiveTrunk = SipTrunk & { registerS: number | null };

/** For the carrier and nobody else: it sees passwords, which it neither logs nor sends on. */
interface SipTrunkPort {
  /** All accounts' trunks; one whose password cannot be opened is left out and logged. */
  listActive(): Promise<ActiveTrunk[]>;
  /**
   * The handler receives the ids of trunks after a commit that changed or deleted them; it never
   * rejects, and whoever made the change waits for it.
   */
  onChange(handler: (ids: number[]) => Promise<void>): () => void;
}

interface SipTrunkOptions {
  store: SipTrunkStore;
  box: SecretBox;
  system: System;
  log: Logger;
  mayReach(address: string): boolean;
  /** Most that one account may have. */
  trunksMax: number;
  /** Null: no other node serves them. */
  nodes: TrunkNodes | null;
}

const notFound = (): Fault => new Fault(404, "SIP trunk not found.");
const exists = (): Fault => new Fault(
  409, "A SIP trunk with the same phone number, username, and address already exists.");
const claimed = (): Fault => new Fault(
  409, "Another account has this phone number at the same carrier. If it is yours, ask the operator of this server to approve it for your account.");
/** A failure nobody expected, in the contract's words. */
const failing = (log: Logger, what: "create" | "update") => (error: unknown): never => {
  if (error instanceof StorageFailure) throw error;
  log.error({ err: error }, "a SIP trunk could not be stored");
  throw new Fault(500, `Failed to ${what} SIP trunk. Please try again or contact support.`);
};
const refusal = (errors: FieldErrors): Fault =>
  new Fault(422, "The given data was invalid.", { errors });

const withoutSecrets = (
  { uuid: _uuid, sealedPassword: _sealed, ownerId: _owner, ...trunk }: StoredSipTrunk,
): SipTrunkRecord => trunk;

/** What a trunk's password is bound to. */
export const passwordPlace = (accountId: number, uuid: string): string =>
  `sip_trunks:${accountId}:${uuid}:password`;

/** Passwords of the account's trunk, sealed and opened. */
function createVault(box: SecretBox) {
  const seal = (accountId: number, uuid: string, password: string): string =>
    box.seal(password, passwordPlace(accountId, uuid));
  return {
    seal,
    changed: (
      stored: StoredSipTrunk, { password, ...rest }: Partial<SipTrunkFields>,
    ): StoredSipTrunk => {
      const sealedPassword = password === undefined
        ? stored.sealedPassword
        : seal(stored.accountId, stored.uuid, password);
      return { ...stored, ...rest, sealedPassword };
    },
    open: ({ uuid, sealedPassword, ownerId: _, ...trunk }: StoredSipTrunk): SipTrunk =>
      ({ ...trunk, password: box.open(sealedPassword, passwordPlace(trunk.accountId, uuid)) }),
  };
}

/** The trunks of all accounts, kept in memory until one changes, and the carrier's view of them. */
function createRoster(
  { store, log, nodes, system }: SipTrunkOptions, vault: ReturnType<typeof createVault>,
) {
  const handlers = new Set<(ids: number[]) => Promise<void>>();
  const owners = createTrunkOwners(store, nodes, system);
  let known: Promise<StoredSipTrunk[]> | null = null;
  let changes = 0;
  const all = (): Promise<StoredSipTrunk[]> => {
    if (known) return known;
    const asked = store.all();
    known = asked;
    asked.catch(() => {
      if (known === asked) known = null;
    });
    return asked;
  };
  const opened = (stored: StoredSipTrunk): ActiveTrunk | null => {
    try {
      return { ...vault.open(stored), registerS: owners.registerS(stored) };
    } catch (error) {
      log.error({ err: error, phone_number_id: stored.id },
        "the password of a SIP trunk cannot be opened: was PARLEY_SECRET changed?");
      return null;
    }
  };
  const carrier: SipTrunkPort = {
    listActive: async () => (await all()).map(opened).filter((trunk) => trunk !== null),
    onChange: (handler) => {
      handlers.add(handler);
      return () => void handlers.delete(handler);
    },
  };
  const tell = async (ids: number[]): Promise<void> =>
    void await Promise.all([...handlers].map((handler) => handler(ids)));
  /** Resolves once everybody has seen the change; never rejects. */
  const changed = async (id: number): Promise<void> => {
    // What is being read may be from before: who asks from now on has it read anew.
    known = null;
    changes += 1;
    // Read now, so that the look tells of what else has changed, and not of all there is.
    if (nodes) void all().catch(() => undefined);
    await tell([id]);
    nodes?.announce();
    look().catch((error: unknown) => log.error({ err: error }, "the SIP trunks cannot be looked at"));
  };
  const look = async (): Promise<void> => {
    if (!nodes) return;
    const before = known === null ? [] : await known;
    const at = changes;
    const found = await owners.look();
    const ids = differing(before, found);
    // A change made meanwhile has everything read anew.
    if (ids.length === 0 || changes !== at) return;
    known = Promise.resolve(found);
    await tell(ids);
  };
  const give = async (askerId: number): Promise<void> => {
    try {
      await owners.give(askerId, tell);
    } finally {
      // Whoever has them by now, the carrier is told so.
      known = null;
      changes += 1;
      await tell((await all()).map(({ id }) => id));
    }
  };
  const leave = (): Promise<void> =>
    owners.leave(async () => tell((await all()).map(({ id }) => id)));
  return { all, changed, look, give, leave, carrier };
}

/** The ids of those that are not the same in both. */
function differing(one: StoredSipTrunk[], other: StoredSipTrunk[]): number[] {
  const texts = new Map(one.map((trunk) => [trunk.id, JSON.stringify(trunk)]));
  const changed = other.filter((trunk) => texts.get(trunk.id) !== JSON.stringify(trunk));
  const kept = new Set(other.map(({ id }) => id));
  return [...changed, ...one.filter(({ id }) => !kept.has(id))].map(({ id }) => id);
}

export function createSipTrunks(options: SipTrunkOptions): SipTrunks {
  const { store, box, system, log, mayReach, trunksMax } = options;
  const vault = createVault(box);
  const { all, changed, look, give, leave, carrier } = createRoster(options, vault);
  const find = async (accountId: number, id: number): Promise<StoredSipTrunk> => {
    const stored = await store.find(accountId, id);
    if (!stored) throw notFound();
    return stored;
  };
  const newId = (): string => `ST_${system.randomBytes(9).toString("hex")}`;
  return {
    list: async (accountId) => (await store.list(accountId)).map(withoutSecrets),
    get: async (accountId, id) => withoutSecrets(await find(accountId, id)),
    create: async (accountId, given, errors) => {
      const found = findErrors(given, given, errors, mayReach);
      if (Object.keys(found).length > 0) throw refusal(found);
      // Nothing was at fault, so nothing is missing.
      const { password, ...fields } = settled(given as SipTrunkFields);
      const uuid = system.uuid();
      const now = system.now();
      const outcome = await store.create({
        ...fields, accountId, uuid, sealedPassword: vault.seal(accountId, uuid, password),
        inboundTrunkId: newId(), outboundTrunkId: newId(), createdAt: now, updatedAt: now,
      }, trunksMax).catch(failing(log, "create"));
      if (outcome.kind === "exists") throw exists();
      if (outcome.kind === "claimed") throw claimed();
      if (outcome.kind === "too_many") {
        const message = `An account may not have more than ${trunksMax} SIP trunks.`;
        throw refusal({ phone_number: [message] });
      }
      await changed(outcome.trunk.id);
      return withoutSecrets(outcome.trunk);
    },
    update: (accountId, id, changes, errors) => changing("SIP trunk", async () => {
      const stored = await find(accountId, id);
      const found = findErrors({ ...stored, ...changes }, changes, errors, mayReach);
      if (Object.keys(found).length > 0) throw refusal(found);
      const { updatedAt: expectedUpdatedAt } = stored;
      const updatedAt = Math.max(system.now(), expectedUpdatedAt + 1);
      const next = settled({ ...vault.changed(stored, changes), updatedAt });
      const outcome = await store.update({ ...next, expectedUpdatedAt })
        .catch(failing(log, "update"));
      if (outcome === "not_found") throw notFound();
      if (outcome === "exists") throw exists();
      if (outcome === "claimed") throw claimed();
      if (outcome === "changed") return null;
      await changed(id);
      return withoutSecrets(next);
    }),
    removed: changed,
    all,
    approvedAccount: store.approvedAccount,
    placedBy: async (accountId, phoneNumber) => {
      const owner = (await all()).find((trunk) => trunk.trunkType === "extension"
        && trunk.accountId === accountId && trunk.phoneNumber === phoneNumber)?.ownerId ?? null;
      return owner === options.nodes?.nodeId ? null : owner;
    },
    look,
    give,
    leave,
    carrier,
  };
}
