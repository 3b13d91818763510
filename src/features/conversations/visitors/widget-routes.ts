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
  status: Type.Literal(true, about("Always true: there is such an assistant.")),
  name: Type.String(about("The assistant's name.", "Front desk")),
  widget_settings: Type.Object({
    theme: Type.Optional(Type.String(about("Look of the widget.", "modern"))),
    color: Type.Optional(Type.String(about("Its colour.", "#2563eb"))),
    position: Type.Optional(Type.String(about("Where its button is.", "bottom-right"))),
    remember_days: Type.Integer({
      description: "For how many days the browser keeps the conversation; 0: each tab keeps its own",
      examples: [7],
    }),
    ratings: Type.Optional(Type.Boolean(about("Whether replies can be rated; left out: yes."))),
    avatar: Type.Optional(AvatarImage),
    transcripts: Type.Optional(Type.Boolean(about("As the owner has set it; left out: no."))),
    attachments: Type.Optional(Type.Boolean(about("Whether files can be attached; left out: no."))),
    satisfaction: Type.Optional(Type.Boolean(about(
      "Whether it is asked how the chat was; left out: yes."))),
    ...WidgetBeginning,
  }, about("How the widget looks and begins.")),
  initial_message: Type.String(about("What the assistant says first; empty: nothing.", "Hello!")),
  calls: Type.Boolean(about("Whether a web call with the assistant is possible.")),
  hears: Type.Boolean({
    description: "Whether this server understands what is spoken; if not, a page gives it the words: "
      + "by the browser's own speech recognition, or typed",
    examples: [true],
  }),
  person: Type.Boolean(about("Whether visitors can ask for a person.")),
  transcripts: Type.Boolean(about("Whether the chat can be sent by e-mail.")),
  away: AwaySchema,
  language: Type.String({ description: "The assistant's language (ISO 639-1)", examples: ["en"] }),
  texts: Type.Record(Type.String(), Type.String(), about(
    "The widget's words, by name.", { send: "Send" })),
  texts_language: Type.String(about("The language they are in.", "en")),
});

const LANGUAGE_CHARS_MAX = 35;
const Language = (description: string) =>
  Type.Optional(Type.String({ maxLength: LANGUAGE_CHARS_MAX, ...about(description, "pt-BR") }));
const QUERY = Type.Object({
  language: Language("The language the page asks for before all others."),
  page: Language("The page's own, or the browser's; taken where the settings name none."),
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
      summary: "Read how an assistant's chat widget looks and begins",
      errorShape: "conversation",
      notFound: "Assistant not found",
      responses: { 200: { description: "What the widget shows", schema: SETTINGS } },
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
      summary: "Read how the chat widget would look with settings that are not saved",
      description: "`settings` are judged as a change of the assistant and stored nowhere.",
      errorShape: "message",
      notFound: "Assistant not found",
      responses: { 200: { description: "What the widget would show", schema: SETTINGS } },
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
