// Where a visitor requests the conversation by e-mail.
import { Type } from "@sinclair/typebox";
import type { Assistants } from "#features/assistants/assistants.ts";
import { addressKey } from "#core/networks.ts";
import { about } from "#core/schema.ts";
import { json } from "#http/exchange.ts";
import { publicRoute, type Route } from "#http/route.ts";
import type { Conversations } from "#features/conversations/conversations.ts";
import { OF_VISITOR } from "#features/conversations/wire.ts";
import type { Transcripts } from "./transcripts.ts";

interface TranscriptRouteOptions {
  transcripts: Transcripts;
  conversations: Pick<Conversations, "history">;
  getAssistant: Assistants["getById"];
}

const EMAIL_CHARS_MAX = 254;

export function transcriptRoutes(
  { transcripts, conversations, getAssistant }: TranscriptRouteOptions,
): Route[] {
  return [publicRoute({
    ...OF_VISITOR,
    method: "POST",
    path: "/conversations/{uuid}/transcript",
    summary: "Send a transcript by e-mail",
    description: "Available if the assistant allows it and the server can send mail.",
    body: Type.Object({
      email: Type.String({
        maxLength: EMAIL_CHARS_MAX, ...about("The address to send it to.", "ada@example.com"),
      }),
    }),
    responses: {
      202: {
        description: "The mail server accepted it, or is still being tried",
        schema: Type.Object({ status: Type.Literal(true, about("Always true.")) }),
      },
      403: { description: "The assistant does not offer transcripts, or this server cannot send "
        + "mail" },
      404: { description: "No such conversation" },
      429: { description: "Too many transcripts" },
      502: { description: "The mail server did not accept it" },
    },
    handle: async ({ uuid, body, http }) => {
      const { conversation, messages } = await conversations.history(uuid);
      const assistant = await getAssistant(conversation.assistantId);
      await transcripts.send({
        assistant, uuid, messages, from: addressKey(http.address), email: body.email.trim(),
      });
      return json(202, { status: true });
    },
  })];
}
