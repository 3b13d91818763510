// A visitor's place in the queue for a person, and people's pictures. Rules:
// features/conversations/desk/view.ts.
import type { DeskViewStore } from "#features/conversations/desk/view.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import type { WriterOf } from "#storage/writer.ts";

type SetAvatar = Parameters<DeskViewStore["setAvatar"]>[0];

export function createDeskViewStore(
  reader: Reader, writer: WriterOf<typeof deskViewCommands>,
): DeskViewStore {
  const place = reader.prepare<object, { place: number }>(`
    SELECT count(*) AS place FROM conversations c, conversations own
    WHERE own.id = @id AND own.account_id = @accountId AND c.account_id = @accountId
      AND c.desk = 'waiting' AND (c.desk_at < own.desk_at OR (c.desk_at = own.desk_at AND c.id <= own.id))`);
  const avatar = reader.prepare<object, { image: string }>(
    "SELECT image FROM avatars WHERE account_id = @accountId AND person = @person");
  return {
    placeOf: async ({ id, accountId }) => (await place.get({ id, accountId }))?.place ?? 1,
    avatarOf: async (accountId, person) => (await avatar.get({ accountId, person }))?.image ?? null,
    setAvatar: (args) => writer.write("deskView.setAvatar", args),
  };
}

export function deskViewCommands(sql: Sql) {
  const remove = sql.prepare(
    "DELETE FROM avatars WHERE account_id = @accountId AND person = @person");
  const insert = sql.prepare(
    "INSERT INTO avatars (account_id, person, image) VALUES (@accountId, @person, @image)");
  return {
    "deskView.setAvatar": async ({ accountId, person, image }: SetAvatar): Promise<void> => {
      await remove.run({ accountId, person });
      if (image !== null) await insert.run({ accountId, person, image });
    },
  };
}
