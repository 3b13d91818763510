// The version numbers of the secrets that sign visitors' identities. Rules:
// features/conversations/visitors/identity.ts.
import type { IdentityState, IdentityStore } from "#features/conversations/visitors/identity.ts";
import type { Instant } from "#core/system.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import type { WriterOf } from "#storage/writer.ts";

interface Row {
  number: number;
  changed_at: number | null;
}

const STATE = "identity_number AS number, identity_changed_at AS changed_at";

const stateOf = (row: Row | undefined): IdentityState | null =>
  (row ? { number: row.number, changedAt: row.changed_at } : null);

export function createIdentityStore(
  reader: Reader, writer: WriterOf<typeof identityCommands>,
): IdentityStore {
  const find = reader.prepare<object, Row>(
    `SELECT ${STATE} FROM assistants WHERE id = @assistantId`);
  return {
    state: async (assistantId) => stateOf(await find.get({ assistantId })),
    rotate: (args) => writer.write("identity.rotate", args),
  };
}

export function identityCommands(sql: Sql) {
  const rotate = sql.prepare<object, Row>(`
    UPDATE assistants SET identity_number = identity_number + 1, identity_changed_at = @now
    WHERE id = @assistantId AND account_id = @accountId AND deleted_at IS NULL
    RETURNING ${STATE}`);
  return {
    "identity.rotate": async (
      args: { accountId: number; assistantId: number; now: Instant },
    ): Promise<IdentityState | null> => stateOf(await rotate.get(args)),
  };
}
