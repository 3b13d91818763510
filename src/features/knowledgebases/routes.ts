// The wire of knowledgebases; that of their documents is in document-routes.ts. Records are sent
// under `data`.
import { Type } from "@sinclair/typebox";
import { dataOf, IdOf, listOf, MessageSchema, savedOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import type { Knowledgebases } from "./knowledgebases.ts";
import {
  ChangedKnowledgebaseSchema, Description, KnowledgebaseSchema, Name, NewKnowledgebaseSchema,
  wireChangedKnowledgebase, wireKnowledgebase, wireNewKnowledgebase,
} from "./wire.ts";

const CreateBody = Type.Object({ name: Name, description: Description });
const ChangeBody = Type.Object({ name: Type.Optional(Name), description: Description });

const COMMON = {
  tag: "Knowledgebases", errorShape: "error", notFound: "Knowledgebase not found.",
} as const;
const ofBase = { id: IdOf("knowledgebase", "GET /user/knowledgebases") };

export function knowledgebaseRoutes(
  { knowledgebases }: { knowledgebases: Knowledgebases },
): Route[] {
  return [...collectionRoutes(knowledgebases), ...itemRoutes(knowledgebases)];
}

function collectionRoutes(knowledgebases: Knowledgebases): Route[] {
  const path = "/user/knowledgebases";
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path,
      summary: "List knowledgebases",
      responses: { 200: { description: "All", schema: dataOf(listOf(KnowledgebaseSchema, "All.")) } },
      handle: async ({ caller }) =>
        json(200, { data: (await knowledgebases.list(caller.accountId)).map(wireKnowledgebase) }),
    }),
    keyRoute({
      ...COMMON,
      method: "POST",
      path,
      summary: "Create a knowledgebase",
      body: CreateBody,
      responses: { 201: { description: "Created", schema: savedOf(NewKnowledgebaseSchema) } },
      handle: async ({ caller, body: { name, description = null } }) => {
        const created = await knowledgebases.create(caller.accountId, { name, description });
        return json(201, {
          message: "Knowledgebase created successfully.", data: wireNewKnowledgebase(created),
        });
      },
    }),
  ];
}

function itemRoutes(knowledgebases: Knowledgebases): Route[] {
  const path = "/user/knowledgebases/{id}";
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path,
      params: ofBase,
      summary: "Read a knowledgebase",
      responses: { 200: { description: "The knowledgebase", schema: dataOf(KnowledgebaseSchema) } },
      handle: async ({ caller, id }) =>
        json(200, { data: wireKnowledgebase(await knowledgebases.get(caller.accountId, id)) }),
    }),
    ...(["PUT", "PATCH"] as const).map((method) =>
      keyRoute({
        ...COMMON,
        method,
        path,
        params: ofBase,
        summary: "Update a knowledgebase",
        body: ChangeBody,
        responses: {
          200: { description: "Changed", schema: savedOf(ChangedKnowledgebaseSchema) },
        },
        handle: async ({ caller, id, body }) => {
          const changed = await knowledgebases.update(caller.accountId, id, body);
          return json(200, {
            message: "Knowledgebase updated successfully.", data: wireChangedKnowledgebase(changed),
          });
        },
      })),
    keyRoute({
      ...COMMON,
      method: "DELETE",
      path,
      params: ofBase,
      summary: "Delete a knowledgebase with its documents; assistants continue without it",
      responses: { 200: { description: "Deleted", schema: MessageSchema } },
      handle: async ({ caller, id }) => {
        await knowledgebases.remove(caller.accountId, id);
        return json(200, { message: "Knowledgebase deleted successfully." });
      },
    }),
  ];
}
