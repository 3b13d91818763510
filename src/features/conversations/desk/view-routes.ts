// Where a visitor's page reads its place in the queue and who answers, and people set their
// picture.
import { Type } from "@sinclair/typebox";
import { AvatarImage } from "#features/assistants/widget-settings.ts";
import { about, Nullable } from "#core/schema.ts";
import type { Author } from "#events/events.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, publicRoute, type Caller, type Route } from "#http/route.ts";
import type { Conversations } from "#features/conversations/conversations.ts";
import { OF_VISITOR } from "#features/conversations/wire.ts";
import type { DeskView } from "./view.ts";
import { DeskState } from "./wire.ts";

interface DeskViewRouteOptions {
  deskView: DeskView;
  conversations: Pick<Conversations, "get">;
  authorOf(caller: Caller): Promise<Author>;
}

const Avatar = Nullable(AvatarImage, about("The picture as a data URL; null if none."));
const Own = Type.Object({ avatar: Avatar });

export function deskViewRoutes(
  { deskView, conversations, authorOf }: DeskViewRouteOptions,
): Route[] {
  const own = { tag: "Conversations", errorShape: "message", path: "/user/avatar" } as const;
  return [
    publicRoute({
      ...OF_VISITOR,
      method: "GET",
      path: "/conversations/{uuid}/desk",
      summary: "Get who answers, and a waiting visitor's place in the queue",
      responses: {
        200: {
          description: "As it is now",
          schema: Type.Object({
            status: Type.Literal(true, about("Always true.")),
            desk: DeskState,
            place: Nullable(Type.Integer(about(
              "Place in the queue, from 1; null if this conversation is not waiting.", 2))),
            holder: Nullable(Type.Object({
              id: Type.String(about("Who it is.", "user:5")),
              name: Type.String(about("Their name.", "Ana")), avatar: Avatar,
            }), about("The person who answers; null if nobody, or nobody in particular.")),
          }),
        },
        404: { description: "No such conversation" },
      },
      handle: async ({ uuid }) => {
        const conversation = await conversations.get(uuid);
        const seen = await deskView.of(conversation);
        return json(200, { status: true, desk: conversation.desk.state, ...seen });
      },
    }),
    keyRoute({
      ...own,
      method: "GET",
      summary: "Get your picture, as visitors see it",
      responses: { 200: { description: "Your picture", schema: Own } },
      handle: async ({ caller }) => {
        const { id } = await authorOf(caller);
        return json(200, { avatar: await deskView.avatarOf(caller.accountId, id) });
      },
    }),
    keyRoute({
      ...own,
      method: "PUT",
      summary: "Set the picture visitors see of you; null shows your initials",
      body: Type.Object({ avatar: Type.Optional(Avatar) }),
      responses: { 200: { description: "The picture was set", schema: Own } },
      handle: async ({ caller, body: { avatar = null } }) => {
        const { id: person } = await authorOf(caller);
        await deskView.setAvatar({ accountId: caller.accountId, person, image: avatar });
        return json(200, { avatar });
      },
    }),
  ];
}
