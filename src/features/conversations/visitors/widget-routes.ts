// What the chat widget needs to know about an assistant before a conversation begins. Public like
// the conversations themselves, and like them restricted to the origins that the assistant allows.
import { Type, type Static } from "@sinclair/typebox";
import type { Assistant, Assistants } from "#features/assistants/assistants.ts";
import { AvatarImage, WidgetBeginning } from "#features/assistants/widget-settings.ts";
import { personaOf } from "#features/assistants/turn-context.ts";
import { about } from "#core/schema.ts";
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import { allVariables } from "#engine/prompt.ts";
import { fillTemplate } from "#engine/template.ts";
import { IdOf, Uuid } from "#http/answers.ts";
import { originFault } from "#http/api.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, publicRoute, type Route } from "#http/route.ts";
import type { Access } from "#features/conversations/access.ts";
import { AwaySchema } from "#features/conversations/desk/wire.ts";
import { DRAFT_SETTINGS, draftOf } from "#features/conversations/draft-wire.ts";
import { awayOf } from "#features/conversations/desk/office-hours.ts";
import type { Transcripts } from "./transcripts.ts";
import type { WidgetTexts } from "./widget-texts.ts";

interface WidgetRouteOptions {
  access: Access;
  assistants: Pick<Assistants, "draft" | "getByUuid">;
  /** Why calls are impossible: no engine speaks the language, or hears it (nor does `words`). */
  whyCannotTalk(assistant: Assistant, words: "browser" | null): string | null;
  /** ISO 639-1. */
  languageOf(assistant: Assistant): string;
  texts: WidgetTexts;
  transcripts: Pick<Transcripts, "isOffered">;
  system: System;
}

const SETTINGS = Type.Object({
  status: Type.Literal(true, about("Always true.")),
  name: Type.String(about("The assistant's name.", "Front desk")),
  widget_settings: Type.Object({
    theme: Type.Optional(Type.String(about("Look of the widget.", "modern"))),
    color: Type.Optional(Type.String(about("Its colour.", "#2563eb"))),
    position: Type.Optional(Type.String(about("The position of its button.", "bottom-right"))),
    remember_days: Type.Integer({
      description: "Days the browser keeps the conversation; 0: each tab keeps its own",
      examples: [7],
    }),
    enabled: Type.Optional(Type.Boolean(about(
      "If false, the widget shows nothing. Default: true.", true))),
    ratings: Type.Optional(Type.Boolean(about("Whether visitors can rate replies. Default: "
      + "true."))),
    avatar: Type.Optional(AvatarImage),
    transcripts: Type.Optional(Type.Boolean(about("As set by the assistant's owner. Default: "
      + "false."))),
    attachments: Type.Optional(Type.Boolean(about("Whether visitors can attach files. Default: "
      + "false."))),
    satisfaction: Type.Optional(Type.Boolean(about(
      "Whether visitors are asked to rate the chat. Default: true."))),
    ...WidgetBeginning,
  }, about("The look and opening of the widget.")),
  initial_message: Type.String(about("The assistant's first message; empty if none.", "Hello!")),
  calls: Type.Boolean(about("Whether visitors can make a web call to the assistant.")),
  hears: Type.Boolean({
    description: "Whether this server recognises speech. If not, the page must send the words, "
      + "from the browser's speech recognition or typed.",
    examples: [true],
  }),
  person: Type.Boolean(about("Whether visitors can ask for a person.")),
  transcripts: Type.Boolean(about("Whether visitors can have the chat sent by e-mail.")),
  away: AwaySchema,
  language: Type.String({ description: "The assistant's language (ISO 639-1)", examples: ["en"] }),
  texts: Type.Record(Type.String(), Type.String(), about(
    "The widget's texts, by name.", { send: "Send" })),
  texts_language: Type.String(about("The language of the texts.", "en")),
});

const LANGUAGE_CHARS_MAX = 35;
const Language = (description: string) =>
  Type.Optional(Type.String({ maxLength: LANGUAGE_CHARS_MAX, ...about(description, "pt-BR") }));
const QUERY = Type.Object({
  language: Language("The language the page asks for first."),
  page: Language("The page's or browser's language, used if the settings name none."),
});

export function widgetRoutes(options: WidgetRouteOptions): Route[] {
  const { access, assistants } = options;
  return [
    publicRoute({
      method: "GET",
      path: "/widget/{uuid}",
      params: { uuid: Uuid("The assistant's `uuid`.") },
      query: QUERY,
      tag: "Conversations",
      summary: "Get the look and opening of an assistant's chat widget",
      errorShape: "conversation",
      notFound: "Assistant not found",
      responses: { 200: { description: "The widget's settings", schema: SETTINGS } },
      handle: async ({ uuid, query, http }) => {
        const assistant = await options.assistants.getByUuid(uuid);
        if (!access.originAllowed(assistant, http)) throw originFault();
        return json(200, shownOf(options, assistant, query));
      },
    }),
    keyRoute({
      method: "POST",
      path: "/user/assistant/{id}/widget-preview",
      params: { id: IdOf("assistant", "GET /user/assistants/get") },
      body: Type.Object({ settings: DRAFT_SETTINGS, ...QUERY.properties }),
      tag: "Assistants",
      summary: "Preview the chat widget with unsaved settings",
      description: "Validates `settings` as a change of the assistant. Nothing is stored.",
      errorShape: "message",
      notFound: "Assistant not found",
      responses: { 200: { description: "The widget's settings", schema: SETTINGS } },
      handle: async ({ caller, id, body: { settings, ...query } }) =>
        json(200, shownOf(
          options, await draftOf(assistants, { ...caller, assistantId: id }, settings), query)),
    }),
  ];
}

/** What the widget shows of an assistant, saved or not. */
function shownOf(
  { texts, system, transcripts, whyCannotTalk, ...options }: WidgetRouteOptions,
  assistant: Assistant, query: Static<typeof QUERY>,
): Static<typeof SETTINGS> {
  const { initial_message: initial, widget_settings: widget, desk } = assistant.settings;
  const { language: fixed, texts: own = {}, ...look } = widget;
  const spoken = options.languageOf(assistant);
  const words = texts.choose([query.language, fixed, query.page, spoken], own);
  const variables = allVariables(personaOf(assistant), {}, system.now());
  return {
    status: true,
    name: assistant.name,
    widget_settings: { remember_days: LIMITS.widgetRememberDays, ...look },
    initial_message: fillTemplate(initial, variables),
    calls: whyCannotTalk(assistant, "browser") === null,
    hears: whyCannotTalk(assistant, null) === null,
    person: desk.visitor_may_ask === true,
    transcripts: transcripts.isOffered(assistant),
    away: awayOf(assistant, system.now()),
    language: spoken,
    texts: words.texts,
    texts_language: words.language,
  };
}
