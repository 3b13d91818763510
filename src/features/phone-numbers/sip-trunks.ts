// SIP trunks: numbers of the account's own telephone system. Records, store port, use cases of
// their owner, and the port for the SIP carrier. A trunk and its number are one: they share an id,
// and releasing the number (phone-numbers.ts) deletes the trunk.
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
  /** E.164, or the telephone system's name of an extension. */
  phoneNumber: string;
  nickname: string | null;
  /** Two letters. */
  countryCode: string;
  username: string;
  /** Sealed at rest, opened only for the carrier. */
  password: string;
  /** Host name in lower case, or IP address without brackets. */
  address: string;
  /** Null: what DNS says (SRV), else 5060, with TLS 5061. */
  port: number | null;
  transport: Transport;
  callingFormat: CallingFormat;
  /** `auth`: callers need username and password; `ip`: they must come from an allowed address. */
  inboundAuth: InboundAuth;
  /** Addresses and networks (CIDR); null unless `inboundAuth` is `ip`. */
  allowedNetworks: string[] | null;
  /** Inbound calls without encrypted media are refused, and outbound ones are not placed. */
  requireSrtp: boolean;
  /** Best first; the first determines the audio bandwidth of an outbound call. */
  codecs: readonly SipCodec[];
  /**
   * `address` is a proxy in front of the telephone system: requests are sent there with it as the
   * Route header, and their URIs keep the domain of a `username` like user@domain.
   */
  outboundProxy: boolean;
}

interface SipTrunk extends SipTrunkFields {
  /** The phone number's id. */
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
  /** The living node that is registered for it; null: none. */
  ownerId: number | null;
}

export type CreateTrunkOutcome =
  | { kind: "created"; trunk: StoredSipTrunk }
  /** The account has a trunk with the same number, username and address. */
  | { kind: "exists" }
  /** Another account claims the number at the same carrier, and the operator has not decided. */
  | { kind: "claimed" }
  | { kind: "too_many" };

/** Each write is one transaction, of number and trunk together. */
export interface SipTrunkStore {
  create(trunk: Omit<StoredSipTrunk, "id" | "ownerId">, trunksMax: number): Promise<CreateTrunkOutcome>;
  /** `changed`: the row is no longer the one that was read. */
  update(
    trunk: StoredSipTrunk & { expectedUpdatedAt: Instant },
  ): Promise<"updated" | "changed" | "exists" | "claimed" | "not_found">;
  /** Assigns the number to the account, replacing any earlier one; false: no such account. */
  approve(args: { phoneNumber: string; accountId: number; now: Instant }): Promise<boolean>;
  /** The account that the operator assigned the number to; null: none. */
  approvedAccount(phoneNumber: string): Promise<number | null>;
  find(accountId: number, id: number): Promise<StoredSipTrunk | null>;
  /** Oldest first. */
  list(accountId: number): Promise<StoredSipTrunk[]>;
  /** The trunks of all accounts, oldest first. */
  all(): Promise<StoredSipTrunk[]>;
  /** Makes this node the owner of those that are free; resolves to how many. */
  take(ids: number[]): Promise<number>;
  /** Those without a call of this node on their number, in the given order. */
  quiet(ids: number[]): Promise<number[]>;
  /** Ends this node's ownership of these; null: of all. */
  giveBack(ids: number[] | null): Promise<void>;
}

export interface SipTrunks {
  /** Oldest first. */
  list(accountId: number): Promise<SipTrunkRecord[]>;
  /** Fault 404. */
  get(accountId: number, id: number): Promise<SipTrunkRecord>;
  /**
   * `errors`: the schema's errors, whose fields are absent from the input. Throws Fault 422 with
   * these and the rules' errors; Fault 409; Fault 500 when it cannot be stored.
   */
  create(
    accountId: number, fields: Partial<SipTrunkFields>, errors: FieldErrors,
  ): Promise<SipTrunkRecord>;
  /** Absent members stay unchanged. Throws as `create`, and Fault 404. */
  update(
    accountId: number, id: number, changes: Partial<SipTrunkFields>, errors: FieldErrors,
  ): Promise<SipTrunkRecord>;
  /** Called after the number was released and the trunk deleted with it. */
  removed(id: number): Promise<void>;
  /** The trunks of all accounts, oldest first, without secrets; kept in memory. */
  all(): Promise<readonly SipTrunkRecord[]>;
  approvedAccount: SipTrunkStore["approvedAccount"];
  /**
   * The other node that must place a number's calls, because a telephone system accepts an
   * extension's calls only from the registered node. Null: any node may place them.
   */
  placedBy(accountId: number, phoneNumber: string | null): Promise<number | null>;
  /** Polls for other nodes' changes, and takes this node's share of the trunks. */
  look(): Promise<void>;
  /** Another node owns fewer trunks than this one: gives it some. */
  give(askerId: number): Promise<void>;
  /** Hands its registrations over to other nodes. Idempotent. */
  leave(): Promise<void>;
  carrier: SipTrunkPort;
}

/** `registerS`: the expiry that this node registers with; null: another node registers. */
type ActiveTrunk = SipTrunk & { registerS: number | null };

/** Only for the carrier: it sees passwords, which it must neither log nor pass on. */
interface SipTrunkPort {
  /** The trunks of all accounts; one whose password cannot be opened is logged and left out. */
  listActive(): Promise<ActiveTrunk[]>;
  /**
   * The handler receives the ids of trunks after a commit that changed or deleted them; it must
   * never reject, and the change's caller waits for it.
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
/** Reports an unexpected failure in the contract's words. */
const failing = (log: Logger, what: "create" | "update") => (error: unknown): never => {
  if (error instanceof StorageFailure) throw error;
  log.error({ err: error }, "could not store a SIP trunk");
  throw new Fault(500, `Failed to ${what} SIP trunk. Please try again or contact support.`);
};
const refusal = (errors: FieldErrors): Fault =>
  new Fault(422, "The given data was invalid.", { errors });

const withoutSecrets = (
  { uuid: _uuid, sealedPassword: _sealed, ownerId: _owner, ...trunk }: StoredSipTrunk,
): SipTrunkRecord => trunk;

/** The context that a trunk's sealed password is bound to. */
export const passwordPlace = (accountId: number, uuid: string): string =>
  `sip_trunks:${accountId}:${uuid}:password`;

/** Seals and opens the passwords of trunks. */
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

/** The trunks of all accounts, cached until one changes, and the carrier's view of them. */
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
        "could not decrypt a SIP trunk's password: enter it again, or set the PARLEY_SECRET it was stored with");
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
  /** Resolves once all handlers of this node have processed the change; never rejects. */
  const changed = async (id: number): Promise<void> => {
    // A read in progress may be stale: later callers read again.
    known = null;
    changes += 1;
    // Read now, so that the poll reports only further changes, and not every trunk.
    if (nodes) void all().catch(() => undefined);
    await tell([id]);
    nodes?.announce();
    look().catch((error: unknown) => log.error({ err: error }, "could not check the SIP trunks"));
  };
  const look = async (): Promise<void> => {
    if (!nodes) return;
    const before = known === null ? [] : await known;
    const at = changes;
    const found = await owners.look();
    const ids = differing(before, found);
    // A concurrent change makes this result stale, and causes a poll of its own.
    if (ids.length === 0 || changes !== at) return;
    known = Promise.resolve(found);
    await tell(ids);
  };
  const give = async (askerId: number): Promise<void> => {
    try {
      await owners.give(askerId, tell);
    } finally {
      // Whichever node owns them now, the carrier has to update its registrations.
      known = null;
      changes += 1;
      await tell((await all()).map(({ id }) => id));
    }
  };
  const leave = (): Promise<void> =>
    owners.leave(async () => tell((await all()).map(({ id }) => id)));
  return { all, changed, look, give, leave, carrier };
}

/** The ids of trunks that differ between the two. */
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
      // There were no errors, so no field is missing.
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
