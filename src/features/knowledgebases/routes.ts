// The wire of knowledgebases and their documents. Records travel under `data`.
import { Type, type Static } from "@sinclair/typebox";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, HttpUrl, named, Nullable, prepared } from "#core/schema.ts";
import { dataOf, IdOf, listOf, MessageSchema, savedOf } from "#http/answers.ts";
import { json, type HttpRequest } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { tooLargeFile } from "#http/server.ts";
import {
  DOCUMENT_TYPES, documentNotFound, type Knowledgebases,
} from "./knowledgebases.ts";
import {
  ChangedDocumentSchema, ChangedKnowledgebaseSchema, DocumentSchema, KnowledgebaseSchema,
  NewDocumentSchema, NewKnowledgebaseSchema, wireChangedDocument, wireChangedKnowledgebase,
  wireDocument, wireKnowledgebase, wireNewDocument, wireNewKnowledgebase,
} from "./wire.ts";

const NAME_CHARS_MAX = 255;
const LINKS_MAX = 50;
const LINKS_FOLLOWED_DEFAULT = 10;

const Name = Type.String({
  pattern: "\\S", maxLength: NAME_CHARS_MAX, ...about("What it is called.", "Prices 2026"),
});
const Description = Type.Optional(Nullable(Type.String({
  maxLength: NAME_CHARS_MAX, ...about("What is in it; null: not said.", "Prices of all goods"),
})));
const CreateBody = Type.Object({ name: Name, description: Description });
const ChangeBody = Type.Object({ name: Type.Optional(Name), description: Description });

/** Some clients send plain addresses instead of `{link}`. */
const Link = Type.Object(
  {
    link: {
      ...HttpUrl("The link must be a valid URL."), ...about("A page.", "https://example.com/prices"),
    },
  },
  {
    ...named("Link", "A page that is read as it is."),
    ...prepared((value) => (typeof value === "string" ? { link: value } : value)),
  },
);
const DocumentBody = Type.Object({
  name: Name,
  description: Description,
  type: Type.Union(
    DOCUMENT_TYPES.map((type) => Type.Literal(type)),
    about("A website, which is fetched, or the kind of the file that is sent.")),
  url: Type.Optional(Nullable({
    ...HttpUrl("The url must be a valid URL."),
    ...about("Of a website: where reading begins; links within it are followed.",
      "https://example.com"),
  })),
  links: Type.Optional(Nullable(Type.Array(Link, {
    maxItems: LINKS_MAX, ...about("Of a website: pages that are read as they are."),
  }))),
  relative_links_limit: Type.Optional(Type.Integer({
    minimum: 1, maximum: 50, default: LINKS_FOLLOWED_DEFAULT,
    ...about("How many links of `url` are followed."),
  })),
});

const COMMON = {
  tag: "Knowledgebases", errorShape: "error", notFound: "Knowledgebase not found.",
} as const;
const ofBase = { id: IdOf("knowledgebase", "GET /user/knowledgebases") };
const ofDocument = {
  ...ofBase, document_id: IdOf("document", "GET /user/knowledgebases/{id}/documents"),
};

interface KnowledgebaseRoutesOptions {
  knowledgebases: Knowledgebases;
  /** Where uploads are put while they arrive. */
  uploadsDir: string;
}

export function knowledgebaseRoutes(options: KnowledgebaseRoutesOptions): Route[] {
  const { knowledgebases } = options;
  return [
    ...collectionRoutes(knowledgebases),
    ...itemRoutes(knowledgebases),
    ...documentReads(knowledgebases),
    createDocumentRoute(options),
    ...documentWrites(knowledgebases),
  ];
}

function collectionRoutes(knowledgebases: Knowledgebases): Route[] {
  const path = "/user/knowledgebases";
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path,
      summary: "List the knowledgebases",
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
      summary: "Read one knowledgebase",
      responses: { 200: { description: "It", schema: dataOf(KnowledgebaseSchema) } },
      handle: async ({ caller, id }) =>
        json(200, { data: wireKnowledgebase(await knowledgebases.get(caller.accountId, id)) }),
    }),
    ...(["PUT", "PATCH"] as const).map((method) =>
      keyRoute({
        ...COMMON,
        method,
        path,
        params: ofBase,
        summary: "Change name or description",
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
      summary: "Delete a knowledgebase with its documents; assistants go on without it",
      responses: { 200: { description: "Deleted", schema: MessageSchema } },
      handle: async ({ caller, id }) => {
        await knowledgebases.remove(caller.accountId, id);
        return json(200, { message: "Knowledgebase deleted successfully." });
      },
    }),
  ];
}

const DOCUMENTS = "/user/knowledgebases/{id}/documents";
const DOCUMENT = `${DOCUMENTS}/{document_id}`;

function documentIdOf(http: HttpRequest): number {
  const text = http.params[1] ?? "";
  if (!/^\d{1,15}$/.test(text)) throw documentNotFound();
  return Number(text);
}

function documentReads(knowledgebases: Knowledgebases): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path: DOCUMENTS,
      params: ofBase,
      summary: "List the documents of a knowledgebase",
      responses: {
        200: { description: "All", schema: dataOf(listOf(DocumentSchema, "All.")) },
      },
      handle: async ({ caller, id }) => {
        const documents = await knowledgebases.documents(caller.accountId, id);
        return json(200, { data: documents.map(wireDocument) });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: DOCUMENT,
      params: ofDocument,
      summary: "Read one document's state",
      responses: { 200: { description: "It", schema: dataOf(DocumentSchema) } },
      handle: async ({ caller, id, http }) => {
        const document = await knowledgebases.getDocument(caller.accountId, id, documentIdOf(http));
        return json(200, { data: wireDocument(document) });
      },
    }),
  ];
}

function websiteSource({ url, links, ...body }: Static<typeof DocumentBody>) {
  const { relative_links_limit: limit = LINKS_FOLLOWED_DEFAULT } = body;
  const named = (links ?? []).map(({ link }) => link);
  if (!url && named.length === 0) {
    throw fieldFault("url", "The url field is required when links is not present.");
  }
  // What is named one by one is read as it is; only a main address is followed.
  return url ? { urls: [url, ...named], follow: limit } : { urls: named, follow: 0 };
}

function fileSource({ form }: HttpRequest): { upload: string } {
  if (!form?.file || form.file.bytes === 0) {
    throw fieldFault("file", "A file is required for this document type.");
  }
  if (form.file.tooLarge) throw tooLargeFile(LIMITS.uploadBytesMax);
  return { upload: form.file.path };
}

function createDocumentRoute(options: KnowledgebaseRoutesOptions): Route {
  const { knowledgebases, uploadsDir } = options;
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: DOCUMENTS,
    params: ofBase,
    summary: "Create a document",
    description: "A website as JSON, a file as multipart/form-data. It is read in the background: "
      + "its `status` and the event `document_status_changed` say when.",
    body: DocumentBody,
    upload: { folder: uploadsDir, fileBytesMax: LIMITS.uploadBytesMax },
    responses: {
      201: { description: "Created; it is read in the background", schema: savedOf(NewDocumentSchema) },
    },
    handle: async ({ caller, id, body, http }) => {
      const { accountId } = caller;
      await knowledgebases.get(accountId, id);
      const { name, description = null, type } = body;
      const source = type === "website" ? websiteSource(body) : fileSource(http);
      const document = await knowledgebases.createDocument({
        accountId, knowledgebaseId: id, name, description, type, source,
      }).catch((error: unknown) => {
        if (error instanceof Fault) throw error;
        throw new Fault(500, "Failed to create document. Please try again.", { cause: error });
      });
      return json(201, {
        message: "Document created successfully. Processing will begin shortly.",
        data: wireNewDocument(document),
      });
    },
  });
}

function documentWrites(knowledgebases: Knowledgebases): Route[] {
  return [
    ...(["PUT", "PATCH"] as const).map((method) =>
      keyRoute({
        ...COMMON,
        method,
        path: DOCUMENT,
        params: ofDocument,
        summary: "Change name or description",
        body: ChangeBody,
        responses: {
          200: { description: "Changed", schema: savedOf(ChangedDocumentSchema) },
        },
        handle: async ({ caller, id, body, http }) => {
          const documentId = documentIdOf(http);
          const changed = await knowledgebases.updateDocument(
            caller.accountId, id, documentId, body);
          return json(200, {
            message: "Document updated successfully.", data: wireChangedDocument(changed),
          });
        },
      })),
    keyRoute({
      ...COMMON,
      method: "DELETE",
      path: DOCUMENT,
      params: ofDocument,
      summary: "Delete a document",
      responses: { 200: { description: "Deleted", schema: MessageSchema } },
      handle: async ({ caller, id, http }) => {
        await knowledgebases.removeDocument(caller.accountId, id, documentIdOf(http));
        return json(200, { message: "Document deleted successfully." });
      },
    }),
  ];
}
