// The commands with which visitors rate a reply or a conversation. Rules:
// features/conversations/visitors/ratings.ts.
import type { RateConversation, RateReply, RatingStore } from "#features/conversations/visitors/ratings.ts";
import type { CommittedEvent } from "#events/events.ts";
import { createConversationAppender } from "./events.ts";
import type { Sql } from "#storage/sql.ts";
import type { WriterOf } from "#storage/writer.ts";

export const createRatingStore = (writer: WriterOf<typeof ratingCommands>): RatingStore => ({
  rateReply: (args) => writer.write("ratings.reply", args),
  rateConversation: (args) => writer.write("ratings.conversation", args),
});

export function ratingCommands(sql: Sql) {
  const append = createConversationAppender(sql);
  const find = sql.prepare<object, { id: number }>(
    "SELECT id FROM conversations WHERE uuid = @uuid AND account_id = @accountId");
  const findReply = sql.prepare<object, { id: number; rating: number | null }>(`
    SELECT m.id, m.rating FROM turns t JOIN messages m ON m.id = t.reply_message_id
    WHERE t.id = @turnId AND t.conversation_id = @conversationId`);
  const rate = sql.prepare("UPDATE messages SET rating = @rating WHERE id = @id");
  const score = sql.prepare(`
    UPDATE conversations SET score = @score, score_comment = @comment, scored_at = @now,
      updated_at = @now
    WHERE id = @id`);
  return {
    "ratings.reply": async (
      { accountId, uuid, turnId, rating, now }: RateReply,
    ): Promise<CommittedEvent[] | null> => {
      const row = await find.get({ uuid, accountId });
      const reply = row && await findReply.get({ turnId, conversationId: row.id });
      if (!row || !reply) return null;
      const value = rating === null ? null : rating === "up" ? 1 : -1;
      if (reply.rating === value) return [];
      await rate.run({ id: reply.id, rating: value });
      return [await append({ id: row.id, uuid, accountId }, {
        type: "reply_rated", conversation_id: uuid, turn_id: turnId, rating,
      }, now)];
    },
    "ratings.conversation": async (
      { accountId, uuid, score: value, comment, now }: RateConversation,
    ): Promise<CommittedEvent[] | null> => {
      const row = await find.get({ uuid, accountId });
      if (!row) return null;
      await score.run({ id: row.id, score: value, comment, now });
      return [await append({ id: row.id, uuid, accountId }, {
        type: "conversation_rated", conversation_id: uuid, score: value, comment,
      }, now)];
    },
  };
}
