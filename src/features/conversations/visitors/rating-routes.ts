// Where a visitor rates a reply and the whole conversation. The conversation's secret authorises
// it, as it does everything else in it.
import { Type } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import { about, Nullable, OneOf } from "#core/schema.ts";
import { json } from "#http/exchange.ts";
import { publicRoute, type Route } from "#http/route.ts";
import type { Access } from "#features/conversations/access.ts";
import type { Conversations } from "#features/conversations/conversations.ts";
import { OF_VISITOR } from "#features/conversations/wire.ts";
import { SCORE_MAX, type Ratings } from "./ratings.ts";

interface RatingRouteOptions {
  ratings: Ratings;
  conversations: Pick<Conversations, "get">;
  access: Access;
}

const DONE = Type.Object({ status: Type.Literal(true, about("Always true.")) });
const RESPONSES = {
  200: { description: "The rating was stored", schema: DONE },
  429: { description: "Too many requests" },
};

const RATE = Type.Object({
  turn_id: Type.Integer(about("The reply's turn id, as its events name it.", 12)),
  rating: Type.Optional(Nullable(OneOf(["up", "down"]), about(
    "up: it helped; down: it did not; null removes the rating.", "up"))),
});
const SCORE = Type.Object({
  score: Type.Integer({
    minimum: 1, maximum: SCORE_MAX, ...about("From 1 (bad) to 5 (very good).", 5),
  }),
  comment: Type.Optional(Type.String({
    maxLength: LIMITS.messageCharsMax, ...about("The visitor's comment.", "Quick and kind."),
  })),
});

export function ratingRoutes({ ratings, conversations, access }: RatingRouteOptions): Route[] {
  return [
    publicRoute({
      ...OF_VISITOR,
      method: "POST",
      path: "/conversations/{uuid}/ratings",
      summary: "Rate a reply",
      notFound: "Reply not found",
      body: RATE,
      responses: { ...RESPONSES, 404: { description: "No such conversation, or no such reply" } },
      handle: async ({ uuid, body }) => {
        const { accountId } = await conversations.get(uuid);
        await access.assertMaySend(uuid);
        await ratings.rateReply(
          { accountId, uuid, turnId: body.turn_id, rating: body.rating ?? null });
        return json(200, { status: true });
      },
    }),
    publicRoute({
      ...OF_VISITOR,
      method: "POST",
      path: "/conversations/{uuid}/satisfaction",
      summary: "Rate the conversation",
      description: "A new rating replaces the earlier one.",
      body: SCORE,
      responses: { ...RESPONSES, 404: { description: "No such conversation" } },
      handle: async ({ uuid, body }) => {
        const { accountId } = await conversations.get(uuid);
        await access.assertMaySend(uuid);
        const comment = body.comment?.trim() ?? "";
        await ratings.rateConversation({
          accountId, uuid, score: body.score, comment: comment === "" ? null : comment,
        });
        return json(200, { status: true });
      },
    }),
  ];
}
