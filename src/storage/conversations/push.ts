// Push subscriptions of browsers. Rules: features/conversations/desk/push.ts.
import type { PushStore, PushSubscription } from "#features/conversations/desk/push.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

/** More subscriptions than the people of any account have. */
const ROWS_MAX = 1000;

export function createPushStore(reader: Reader, writer: WriterOf<typeof pushCommands>): PushStore {
  const list = reader.prepare<object, {
    id: number; person: string; endpoint: string; public_key: string; auth: string;
  }>(`
    SELECT id, person, endpoint, public_key, auth FROM push_subscriptions
    WHERE account_id = @accountId ORDER BY id DESC LIMIT (@rows + 0)`);
  return {
    list: async (accountId): Promise<PushSubscription[]> =>
      (await list.all({ accountId, rows: ROWS_MAX }))
        .map(({ public_key: publicKey, ...row }) => ({ ...row, publicKey })),
    ...writes(writer, "push", "add", "remove"),
  };
}

export function pushCommands(sql: Sql) {
  const remove = sql.prepare(
    "DELETE FROM push_subscriptions WHERE account_id = @accountId AND endpoint = @endpoint");
  const insert = sql.prepare(`
    INSERT INTO push_subscriptions (account_id, person, endpoint, public_key, auth, created_at)
    VALUES (@accountId, @person, @endpoint, @publicKey, @auth, @now)`);
  const removeOldest = sql.prepare(`
    DELETE FROM push_subscriptions WHERE account_id = @accountId AND person = @person
      AND id NOT IN (
        SELECT id FROM push_subscriptions WHERE account_id = @accountId AND person = @person
        ORDER BY id DESC LIMIT (@max + 0))`);
  return {
    "push.add": async (args: Parameters<PushStore["add"]>[0]): Promise<void> => {
      const { accountId, person, endpoint, publicKey, auth, max, now } = args;
      await remove.run({ accountId, endpoint });
      await insert.run({ accountId, person, endpoint, publicKey, auth, now });
      await removeOldest.run({ accountId, person, max });
    },
    "push.remove": async (args: Parameters<PushStore["remove"]>[0]): Promise<void> => {
      await remove.run(args);
    },
  };
}
