// SIP trunks in the database. A trunk is two rows with one id: the phone number, which assistants
// and campaigns refer to and which commands.ts deletes, and the way it is reached.
import { collide } from "#features/phone-numbers/claims.ts";
import type {
  CreateTrunkOutcome, SipTrunkStore, StoredSipTrunk,
} from "#features/phone-numbers/sip-trunks.ts";
import type { Instant } from "#core/system.ts";
import { IS_LIVE } from "#storage/calls/rows.ts";
import { isFree, type AsNode } from "#storage/nodes/nodes.ts";
import { orNull, type Exists, type Reader, type Sql } from "#storage/sql.ts";
import type { WriterOf } from "#storage/writer.ts";

interface SipTrunkRow {
  id: number;
  account_id: number;
  phone_number: string;
  nickname: string | null;
  country_code: string;
  created_at: number;
  uuid: string;
  trunk_type: StoredSipTrunk["trunkType"];
  username: string;
  password: string;
  address: string;
  port: number | null;
  transport: StoredSipTrunk["transport"];
  calling_format: StoredSipTrunk["callingFormat"];
  inbound_auth: StoredSipTrunk["inboundAuth"];
  allowed_networks: string | null;
  outbound_proxy: number;
  require_srtp: number;
  codecs: string;
  inbound_trunk_id: string;
  outbound_trunk_id: string;
  updated_at: number;
  owner_id: number | null;
}

function trunkFromRow(row: SipTrunkRow): StoredSipTrunk {
  return {
    id: row.id,
    accountId: row.account_id,
    phoneNumber: row.phone_number,
    nickname: row.nickname,
    countryCode: row.country_code,
    createdAt: row.created_at,
    uuid: row.uuid,
    trunkType: row.trunk_type,
    username: row.username,
    sealedPassword: row.password,
    address: row.address,
    port: row.port,
    transport: row.transport,
    callingFormat: row.calling_format,
    inboundAuth: row.inbound_auth,
    allowedNetworks:
      row.allowed_networks === null ? null : JSON.parse(row.allowed_networks) as string[],
    outboundProxy: row.outbound_proxy === 1,
    requireSrtp: row.require_srtp === 1,
    codecs: row.codecs.split(",") as StoredSipTrunk["codecs"][number][],
    inboundTrunkId: row.inbound_trunk_id,
    outboundTrunkId: row.outbound_trunk_id,
    updatedAt: row.updated_at,
    ownerId: row.owner_id,
  };
}

const columnsOf = (trunk: Omit<StoredSipTrunk, "id" | "ownerId">) => ({
  ...trunk,
  allowedNetworks: trunk.allowedNetworks === null ? null : JSON.stringify(trunk.allowedNetworks),
  outboundProxy: trunk.outboundProxy ? 1 : 0,
  requireSrtp: trunk.requireSrtp ? 1 : 0,
  codecs: trunk.codecs.join(","),
});

const TRUNK = `SELECT n.id, n.account_id, n.phone_number, n.nickname, n.country_code, n.created_at,
    t.uuid, t.trunk_type, t.username, t.password, t.address, t.port, t.transport, t.calling_format,
    t.inbound_auth, t.allowed_networks, t.outbound_proxy, t.require_srtp, t.codecs,
    t.inbound_trunk_id, t.outbound_trunk_id, t.updated_at,
    (SELECT nodes.id FROM nodes WHERE nodes.id = t.node_id AND nodes.state <> 'gone') AS owner_id
  FROM sip_trunks t JOIN phone_numbers n ON n.id = t.phone_number_id`;

export function sipTrunkCommands(sql: Sql) {
  const same = sql.prepare<object, { id: number }>(`
    ${TRUNK} WHERE n.account_id = @accountId AND n.phone_number = @phoneNumber
      AND t.username = @username AND t.address = @address`);
  const count = sql.prepare<object, { count: number }>(`
    SELECT count(*) AS count FROM phone_numbers n JOIN sip_trunks t ON t.phone_number_id = n.id
    WHERE n.account_id = @accountId`);
  const insertNumber = sql.prepare(`
    INSERT INTO phone_numbers (account_id, phone_number, country_code, type, nickname, created_at)
    VALUES (@accountId, @phoneNumber, @countryCode, 'sip', @nickname, @createdAt)`);
  const insert = sql.prepare(`
    INSERT INTO sip_trunks (phone_number_id, uuid, trunk_type, username, password, address, port,
      transport, calling_format, inbound_auth, allowed_networks, outbound_proxy, require_srtp, codecs,
      inbound_trunk_id, outbound_trunk_id, updated_at)
    VALUES (@id, @uuid, @trunkType, @username, @sealedPassword, @address, @port, @transport,
      @callingFormat, @inboundAuth, @allowedNetworks, @outboundProxy, @requireSrtp, @codecs,
      @inboundTrunkId, @outboundTrunkId, @updatedAt)`);
  const changeNumber = sql.prepare(`
    UPDATE phone_numbers SET phone_number = @phoneNumber, country_code = @countryCode,
      nickname = @nickname
    WHERE id = @id AND account_id = @accountId AND type = 'sip'`);
  const change = sql.prepare(`
    UPDATE sip_trunks SET trunk_type = @trunkType, username = @username,
      password = @sealedPassword, address = @address, port = @port, transport = @transport,
      calling_format = @callingFormat, inbound_auth = @inboundAuth,
      allowed_networks = @allowedNetworks, outbound_proxy = @outboundProxy,
      require_srtp = @requireSrtp, codecs = @codecs,
      updated_at = @updatedAt
    WHERE phone_number_id = @id`);
  const byId = sql.prepare<object, SipTrunkRow>(
    `${TRUNK} WHERE n.id = @id AND n.account_id = @accountId`);
  const others = sql.prepare<object, SipTrunkRow>(`${TRUNK} WHERE n.account_id <> @accountId`);
  const approval = createApprovals(sql);
  const isClaimed = async (trunk: Omit<StoredSipTrunk, "id" | "ownerId">): Promise<boolean> =>
    await approval.of(trunk.phoneNumber) !== trunk.accountId
    && (await others.all({ accountId: trunk.accountId }))
      .some((row) => collide(trunkFromRow(row), trunk));
  return {
    "sipTrunks.approve": approval.set,
    "sipTrunks.create": async (
      { trunk, trunksMax }: { trunk: Omit<StoredSipTrunk, "id" | "ownerId">; trunksMax: number },
    ): Promise<CreateTrunkOutcome> => {
      const columns = columnsOf(trunk);
      if (await same.get(columns)) return { kind: "exists" };
      if (await isClaimed(trunk)) return { kind: "claimed" };
      if (((await count.get(columns))?.count ?? 0) >= trunksMax) return { kind: "too_many" };
      const id = await insertNumber.insert(columns);
      await insert.run({ ...columns, id });
      return { kind: "created", trunk: { ...trunk, id, ownerId: null } };
    },
    "sipTrunks.update": async (
      { expectedUpdatedAt, ...trunk }: StoredSipTrunk & { expectedUpdatedAt: Instant },
    ): Promise<"updated" | "changed" | "exists" | "claimed" | "not_found"> => {
      const columns = { ...columnsOf(trunk), id: trunk.id };
      const before = await byId.get(columns);
      if (before && trunkFromRow(before).updatedAt !== expectedUpdatedAt) return "changed";
      if ((await same.all(columns)).some(({ id }) => id !== trunk.id)) return "exists";
      // A trunk stored before another account claimed its number can still be renamed.
      if (before && isOtherClaim(trunkFromRow(before), trunk) && await isClaimed(trunk)) {
        return "claimed";
      }
      if ((await changeNumber.run(columns)).changes === 0) return "not_found";
      await change.run(columns);
      return "updated";
    },
    ...ownerCommands(sql),
  };
}

/** Which node holds a trunk's registration. */
function ownerCommands(sql: Sql) {
  const take = sql.prepare(`
    UPDATE sip_trunks SET node_id = @nodeId
    WHERE phone_number_id = @id AND ${isFree("sip_trunks.node_id")}`);
  const giveBack = sql.prepare(`
    UPDATE sip_trunks SET node_id = NULL WHERE node_id = @nodeId AND phone_number_id = @id`);
  const giveBackAll = sql.prepare("UPDATE sip_trunks SET node_id = NULL WHERE node_id = @nodeId");
  return {
    "sipTrunks.take": async ({ ids, nodeId }: AsNode<{ ids: number[] }>): Promise<number> => {
      let taken = 0;
      for (const id of ids) taken += (await take.run({ id, nodeId })).changes;
      return taken;
    },
    "sipTrunks.giveBack": async (
      { ids, nodeId }: AsNode<{ ids: number[] | null }>,
    ): Promise<void> => {
      if (ids === null) await giveBackAll.run({ nodeId });
      else for (const id of ids) await giveBack.run({ id, nodeId });
    },
  };
}

const isOtherClaim = (one: StoredSipTrunk, other: StoredSipTrunk): boolean =>
  one.phoneNumber !== other.phoneNumber || one.countryCode !== other.countryCode
  || one.address !== other.address || one.inboundAuth !== other.inboundAuth
  || one.allowedNetworks?.join() !== other.allowedNetworks?.join();

/** The operator's approval of one account for a number, matched exactly as written. */
const APPROVAL = "SELECT account_id FROM number_approvals WHERE phone_number = @phoneNumber";

function createApprovals(sql: Sql) {
  const find = sql.prepare<object, { account_id: number }>(APPROVAL);
  const account = sql.prepare<object, Exists>("SELECT 1 FROM accounts WHERE id = @accountId");
  const approve = sql.prepare(`
    INSERT INTO number_approvals (phone_number, account_id, approved_at)
    VALUES (@phoneNumber, @accountId, @now)
    ON CONFLICT (phone_number) DO UPDATE
      SET account_id = excluded.account_id, approved_at = excluded.approved_at`);
  return {
    of: async (phoneNumber: string): Promise<number | null> =>
      (await find.get({ phoneNumber }))?.account_id ?? null,
    set: async (
      args: { phoneNumber: string; accountId: number; now: Instant },
    ): Promise<boolean> => {
      if (!await account.get(args)) return false;
      await approve.run(args);
      return true;
    },
  };
}

export function createSipTrunkStore(
  reader: Reader, writer: WriterOf<typeof sipTrunkCommands>,
): SipTrunkStore {
  const find = reader.prepare<object, SipTrunkRow>(
    `${TRUNK} WHERE n.id = @id AND n.account_id = @accountId`);
  const list = reader.prepare<object, SipTrunkRow>(
    `${TRUNK} WHERE n.account_id = @accountId ORDER BY n.id`);
  const all = reader.prepare<object, SipTrunkRow>(`${TRUNK} ORDER BY n.id`);
  const approval = reader.prepare<object, { account_id: number }>(APPROVAL);
  // Only asked for trunks this node owns, so `t.node_id` is this node.
  const quiet = reader.prepare<object, { id: number }>(`
    SELECT n.id FROM sip_trunks t JOIN phone_numbers n ON n.id = t.phone_number_id
    WHERE ${reader.dialect.among("n.id", "@ids")} AND NOT EXISTS (
      SELECT 1 FROM calls c WHERE c.account_id = n.account_id AND c.${IS_LIVE}
        AND c.assistant_phone = n.phone_number AND c.node_id = t.node_id)`);
  return {
    create: (trunk, trunksMax) => writer.write("sipTrunks.create", { trunk, trunksMax }),
    update: (trunk) => writer.write("sipTrunks.update", trunk),
    find: async (accountId, id) => orNull(await find.get({ accountId, id }), trunkFromRow),
    list: async (accountId) => (await list.all({ accountId })).map(trunkFromRow),
    all: async () => (await all.all({})).map(trunkFromRow),
    take: (ids) => writer.write("sipTrunks.take", { ids }),
    quiet: async (ids) => {
      const found = new Set((await quiet.all({ ids })).map(({ id }) => id));
      return ids.filter((id) => found.has(id));
    },
    giveBack: (ids) => writer.write("sipTrunks.giveBack", { ids }),
    approve: (args) => writer.write("sipTrunks.approve", args),
    approvedAccount: async (phoneNumber) =>
      (await approval.get({ phoneNumber }))?.account_id ?? null,
  };
}
