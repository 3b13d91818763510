// What the chat widget has to know of an assistant before anybody has said a word. Public like the
// conversations themselves, and like them only for the origins the assistant allows.
import { Type } from "@sinclair/typebox";
import type { Assistant } from "../assistants/assistants.ts";
import { Fault } from "../core/faults.ts";
import { LIMITS } from "../core/limits.ts";
import type { System } from "../core/system.ts";
import { allVariables } from "../engine/prompt.ts";
import { fillTemplate } from "../engine/template.ts";
import { originFault } from "../http/api.ts";
import { json } from "../http/exchange.ts";
import { publicRoute, type Route } from "../http/route.ts";
import type { Access } from "./access.ts";
import { personaOf } from "./answering.ts";
import { ErrorSchema } from "./wire.ts";

export interface WidgetRouteOptions {
  access: Access;
  findAssistantByUuid(uuid: string): Assistant | null;
  /** Throws Fault 422 when nothing can speak the assistant's language, or hear it but the words. */
  hearingOf(assistant: Assistant, words: "typed" | null): string;
  /** ISO 639-1. */
  languageOf(assistant: Assistant): string;
  system: System;
}

const SETTINGS = Type.Object({
  status: Type.Literal(true),
  name: Type.String(),
  widget_settings: Type.Object({
    theme: Type.Optional(Type.String()),
    color: Type.Optional(Type.String()),
    position: Type.Optional(Type.String()),
    remember_days: Type.Integer({
      description: "For how many days the browser keeps the conversation; 0: each tab keeps its own",
      examples: [7],
    }),
  }),
  initial_message: Type.String(),
  calls: Type.Boolean({
    description: "Whether a web call with the assistant is possible", examples: [true],
  }),
  hears: Type.Boolean({
    description: "Whether this server understands what is spoken; if not, a page gives it the words: "
      + "by the browser's own speech recognition, or typed",
    examples: [true],
  }),
  language: Type.String({ description: "The assistant's language (ISO 639-1)", examples: ["en"] }),
});

export function widgetRoutes(options: WidgetRouteOptions): Route[] {
  const { access, system } = options;
  const isPossible = (assistant: Assistant, words: "typed" | null): boolean => {
    try {
      options.hearingOf(assistant, words);
      return true;
    } catch (error) {
      if (error instanceof Fault) return false;
      throw error;
    }
  };
  return [publicRoute({
    method: "GET",
    path: "/conversations/widget/{uuid}",
    tag: "Conversations",
    summary: "Read how an assistant's chat widget looks and begins",
    errorShape: "conversation",
    notFound: "Assistant not found",
    responses: {
      200: { description: "What the widget shows", schema: SETTINGS },
      404: { description: "No such assistant", schema: ErrorSchema },
    },
    handle: ({ uuid, http }) => {
      const assistant = options.findAssistantByUuid(uuid);
      if (!assistant) throw new Fault(404, "Assistant not found");
      if (!access.originAllowed(assistant, http)) throw originFault();
      const { initial_message: initial, widget_settings: widget } = assistant.settings;
      const variables = allVariables(personaOf(assistant), {}, system.now());
      return json(200, {
        status: true,
        name: assistant.name,
        widget_settings: { remember_days: LIMITS.widgetRememberDays, ...widget },
        initial_message: fillTemplate(initial, variables),
        calls: isPossible(assistant, "typed"),
        hears: isPossible(assistant, null),
        language: options.languageOf(assistant),
      });
    },
  })];
}
