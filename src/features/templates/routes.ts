// The wire of templates: the gallery, creating everything from one, and removing it again.
import { Type } from "@sinclair/typebox";
import { about, HttpUrl, named, NonBlank, Nullable, OneOf, TimeZone } from "#core/schema.ts";
import { isoMicros } from "#core/system.ts";
import { dataOf, IdOf, listOf, MessageSchema, Moment, savedOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { TEMPLATE_NAMES, TEMPLATES, type TemplateName } from "./gallery.ts";
import type { Templates, TemplateSet } from "./templates.ts";

const Name = OneOf(TEMPLATE_NAMES, about("The template's id.", "support"));
const Part = (what: string) => Nullable(Type.Integer(about(`${what}; null if it has none.`, 3)));
const Has = (what: string) => Type.Boolean(about(what, true));

const TemplateSchema = Type.Object({
  name: Name,
  title: Type.String(about("The name.", "Customer support")),
  description: Type.String(about("What its assistant does.", "Answers questions.")),
  type: Type.String(about("inbound: takes calls. outbound: makes calls.", "inbound")),
  knowledge: Has("Whether it creates a knowledgebase."),
  tool: Has("Whether it creates a tool, whose `endpoint` you provide."),
  website: Has("Whether it takes a `website`."),
  lines: Type.Array(Type.String(), about(
    "What the caller says in its test call.", ["Where is my order?", "Thank you, goodbye."])),
}, named("Template", "A template."));
const SetSchema = Type.Object({
  id: Type.Integer(about("Its number.", 1)),
  template: Name,
  assistant_id: Type.Integer(about("The assistant.", 7)),
  knowledgebase_id: Part("The knowledgebase"),
  tool_id: Part("The tool"),
  call_id: Part("The test call"),
  created_at: Moment("When it was created, in UTC."),
}, named("TemplateSet", "A set made from a template."));
const MadeSchema = Type.Object({
  ...SetSchema.properties,
  call_problem: Nullable(Type.String(about(
    "Why there is no test call; null if there is one or none was requested.",
    "The server has no voice for the language."))),
}, named("NewTemplateSet", "A new set made from a template."));

const Url = (description: string, example: string) => Type.Optional(Type.String({
  ...HttpUrl("This must be an http or https address."), ...about(description, example),
}));

const COMPANY_CHARS_MAX = 100;
const CreateBody = Type.Object({
  template: Name,
  company: Type.Optional(NonBlank(COMPANY_CHARS_MAX, {
    default: "our company",
    ...about("The company the assistant speaks for: `{{company}}` in its texts.", "Harbour Bikes"),
  })),
  website: Url(
    "The website to read; required for `website_faq`.", "https://www.example.com"),
  endpoint: Url(
    "The tool's endpoint. Defaults to an example, to be changed later.",
    "https://shop.example.com/orders"),
  language_id: Type.Optional(Type.Integer(about(
    "The language it speaks: an `id` of `GET /user/assistants/languages`.", 1))),
  timezone: Type.Optional({
    ...TimeZone("The timezone must be a valid time zone."),
    ...about("The assistant's IANA time zone.", "Europe/Berlin"),
  }),
  test_call: Type.Optional(Type.Boolean({
    default: true, ...about("Whether the server makes a test call to it at once."),
  })),
});

const templateItem = (name: TemplateName) => {
  const { title, description, settings, questions, tool, needsWebsite, lines } = TEMPLATES[name];
  return {
    name, title, description, type: settings.type ?? "inbound",
    knowledge: questions.length > 0 || needsWebsite, tool: tool !== null, website: needsWebsite,
    lines: [...lines],
  };
};

const setItem = (set: TemplateSet) => ({
  id: set.id,
  template: set.template,
  assistant_id: set.assistantId,
  knowledgebase_id: set.knowledgebaseId,
  tool_id: set.toolId,
  call_id: set.callId,
  created_at: isoMicros(set.createdAt),
});

const common = { tag: "Assistants", errorShape: "message" } as const;

export function templateRoutes(templates: Templates): Route[] {
  return [
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/templates",
      summary: "List templates",
      responses: { 200: { description: "The list",
        schema: dataOf(listOf(TemplateSchema, "All.")) } },
      handle: () => Promise.resolve(json(200, { data: TEMPLATE_NAMES.map(templateItem) })),
    }),
    createRoute(templates),
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/template-sets",
      summary: "List sets made from templates",
      responses: { 200: { description: "The sets that still exist",
        schema: dataOf(listOf(SetSchema, "Newest first.")) } },
      handle: async ({ caller }) =>
        json(200, { data: (await templates.list(caller.accountId)).map(setItem) }),
    }),
    keyRoute({
      ...common,
      method: "DELETE",
      path: "/user/template-sets/{id}",
      summary: "Delete a set made from a template",
      description: "Deletes its assistant, knowledgebase, tool and test call. Parts that no longer "
        + "exist are skipped.",
      notFound: "Template set not found",
      params: { id: IdOf("set", "GET /user/template-sets") },
      responses: {
        200: { description: "The set was deleted", schema: MessageSchema },
        409: { description: "The test call has not ended yet" },
      },
      handle: async ({ caller, id }) => {
        await templates.remove(caller.accountId, id);
        return json(200, { message: "Template set deleted successfully" });
      },
    }),
  ];
}

function createRoute(templates: Templates): Route {
  return keyRoute({
    ...common,
    method: "POST",
    path: "/user/template-sets",
    summary: "Create an assistant and its parts from a template",
    description: "Creates the assistant, knowledgebase, tool and test call the template defines. "
      + "Creates all of them or nothing.",
    body: CreateBody,
    responses: { 201: { description: "Created", schema: savedOf(MadeSchema) } },
    handle: async ({ caller, body }) => {
      const made = await templates.create(caller.accountId, {
        template: body.template, company: (body.company ?? "our company").trim(),
        website: body.website ?? null, endpoint: body.endpoint ?? null,
        languageId: body.language_id ?? null, timezone: body.timezone ?? null,
        withCall: body.test_call ?? true,
      });
      return json(201, {
        message: "Created from the template successfully",
        data: { ...setItem(made), call_problem: made.callProblem },
      });
    },
  });
}
