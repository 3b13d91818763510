// The wire of documents: adding, reading and changing them, and the text extracted from them.
import { Type, type Static } from "@sinclair/typebox";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, HttpUrl, named, Nullable, OneOf, prepared } from "#core/schema.ts";
import { dataOf, IdOf, listOf, MessageSchema, savedOf } from "#http/answers.ts";
import { STORAGE_RETRY_S, storageTrouble } from "#http/errors.ts";
import { json, type HttpRequest } from "#http/exchange.ts";
import { pageEnvelope, pageQuery, PageSchema, PER_PAGE_DEFAULT } from "#http/pagination.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { tooLargeFile } from "#http/server.ts";
import {
  DOCUMENT_TYPES, documentNotFound, type Knowledgebases, type WebsiteSource, type Written,
} from "./knowledgebases.ts";
import {
  ChangedDocumentSchema, ChunkSchema, Description, DocumentSchema, IgnoreRobots, Name,
  NewDocumentSchema, Questions, RereadHours, Text, wireChangedDocument, wireChunk, wireDocument,
  wireNewDocument,
  wireWrittenDocument, WrittenDocumentSchema,
} from "./wire.ts";

const LINKS_MAX = 50;
const LINKS_FOLLOWED_DEFAULT = 10;
const SITEMAP_PAGES_MAX = 500;
const SITEMAP_PAGES_DEFAULT = 100;
/** Enough for the longest text, however it is written as JSON. */
const WRITTEN_BYTES_MAX = 1024 * 1024;

/** Some clients send plain addresses instead of `{link}`. */
const Link = Type.Object(
  {
    link: {
      ...HttpUrl("The link must be a valid URL."), ...about("A page.", "https://example.com/prices"),
    },
  },
  {
    ...named("Link", "A single page to read."),
    ...prepared((value) => (typeof value === "string" ? { link: value } : value)),
  },
);
const DocumentBody = Type.Object({
  name: Name,
  description: Description,
  type: OneOf(DOCUMENT_TYPES, about(
    "The type: a website to fetch, the type of the uploaded file, or typed-in content (`text` or "
    + "`faq`).")),
  url: Type.Optional(Nullable({
    ...HttpUrl("The url must be a valid URL."),
    ...about("For a website: the page to start from. Links within the site are followed.",
      "https://example.com"),
  })),
  links: Type.Optional(Nullable(Type.Array(Link, {
    maxItems: LINKS_MAX, ...about("For a website: pages to read, without following links."),
  }))),
  relative_links_limit: Type.Optional(Type.Integer({
    minimum: 1, maximum: 50, default: LINKS_FOLLOWED_DEFAULT,
    ...about("How many links from `url` to follow."),
  })),
  sitemap_url: Type.Optional(Nullable({
    ...HttpUrl("The sitemap url must be a valid URL."),
    ...about("For a website: a sitemap or sitemap index; the pages of its site are read.",
      "https://example.com/sitemap.xml"),
  })),
  sitemap_pages_limit: Type.Optional(Type.Integer({
    minimum: 1, maximum: SITEMAP_PAGES_MAX, default: SITEMAP_PAGES_DEFAULT,
    ...about("How many pages of `sitemap_url` to read."),
  })),
  read_again_every_hours: Type.Optional(RereadHours),
  ignore_robots: Type.Optional(IgnoreRobots),
  text: Type.Optional(Nullable(Text)),
  questions: Type.Optional(Nullable(Questions)),
});
const ChangeBody = Type.Object({
  name: Type.Optional(Name), description: Description,
  text: Type.Optional(Text), questions: Type.Optional(Questions),
  read_again_every_hours: Type.Optional(RereadHours), ignore_robots: Type.Optional(IgnoreRobots),
  // Each type of document takes some of these only.
}, { examples: [{ name: "Prices 2026", text: "# Hours\n\nWe open at nine." }] });

const DOCUMENTS = "/user/knowledgebases/{id}/documents";
const DOCUMENT = `${DOCUMENTS}/{document_id}`;
const COMMON = {
  tag: "Knowledgebases", errorShape: "error", notFound: "Knowledgebase not found.",
} as const;
const ofBase = { id: IdOf("knowledgebase", "GET /user/knowledgebases") };
const ofDocument = { ...ofBase, document_id: IdOf("document", `GET ${DOCUMENTS}`) };

interface DocumentRoutesOptions {
  knowledgebases: Knowledgebases;
  /** The folder for uploads in progress. */
  uploadsDir: string;
}

export function documentRoutes(options: DocumentRoutesOptions): Route[] {
  const { knowledgebases } = options;
  return [
    ...documentReads(knowledgebases),
    chunksRoute(knowledgebases),
    createDocumentRoute(options),
    readAgainRoute(knowledgebases),
    ...documentWrites(knowledgebases),
  ];
}

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
      summary: "List a knowledgebase's documents",
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
      summary: "Read a document",
      responses: { 200: { description: "The document", schema: dataOf(WrittenDocumentSchema) } },
      handle: async ({ caller, id, http }) => {
        const document = await knowledgebases.getDocument(caller.accountId, id, documentIdOf(http));
        const written = await knowledgebases.written(document);
        return json(200, { data: wireWrittenDocument(document, written) });
      },
    }),
  ];
}

function chunksRoute(knowledgebases: Knowledgebases): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: `${DOCUMENT}/chunks`,
    params: ofDocument,
    summary: "List a document's chunks, in pages",
    description: "Lists the pieces that searches find, in document order, each with its page or "
      + "URL.",
    query: Type.Object(pageQuery()),
    responses: { 200: { description: "A page", schema: PageSchema(ChunkSchema) } },
    handle: async ({ caller, id, query, http, baseUrl }) => {
      const { page = 1, per_page: perPage = PER_PAGE_DEFAULT } = query;
      const document = await knowledgebases.getDocument(caller.accountId, id, documentIdOf(http));
      const { items, total } = await knowledgebases.chunks(document, (page - 1) * perPage, perPage);
      const path = `${baseUrl}/user/knowledgebases/${id}/documents/${document.id}/chunks`;
      return json(200, pageEnvelope(
        { items: items.map(wireChunk), total }, { path, query: http.query, page, perPage }));
    },
  });
}

type Body = Static<typeof DocumentBody>;

function websiteSource(body: Body): WebsiteSource {
  const { url, sitemap_url: sitemap, ignore_robots: ignoreRobots = false } = body;
  const named = (body.links ?? []).map(({ link }) => link);
  if (!url && !sitemap && named.length === 0) {
    throw fieldFault("url", "The url field is required when links is not present.");
  }
  const { relative_links_limit: follow = LINKS_FOLLOWED_DEFAULT } = body;
  return {
    // Pages listed in `links` are read without following links; only a main address is followed.
    urls: url ? [url, ...named] : named,
    follow: url ? follow : 0,
    ...(sitemap ? {
      sitemap, pagesMax: body.sitemap_pages_limit ?? SITEMAP_PAGES_DEFAULT,
    } : {}),
    ...(ignoreRobots ? { ignoreRobots } : {}),
  };
}

/** The rereading interval; refuses it and `ignore_robots` for anything but a website. */
function rereadHoursOf(
  { type, read_again_every_hours: hours = null, ignore_robots: robots }: Body,
): number | null {
  if (type === "website") return hours;
  if (hours !== null) throw fieldFault("read_again_every_hours", "Only websites are read again.");
  if (robots) throw fieldFault("ignore_robots", "Only websites have a robots.txt.");
  return null;
}

function fileSource({ form }: HttpRequest): { upload: string } {
  if (!form?.file || form.file.bytes === 0) {
    throw fieldFault("file", "A file is required for this document type.");
  }
  if (form.file.tooLarge) throw tooLargeFile(LIMITS.uploadBytesMax);
  return { upload: form.file.path };
}

type WrittenBody = { text?: string | null; questions?: Static<typeof Questions> | null };

/** Null: the body contains no hand-written content. */
function writtenIn({ text, questions }: WrittenBody): Written | null {
  if (typeof text === "string") return { type: "text", text };
  return questions ? { type: "faq", questions } : null;
}

function writtenSource(type: Written["type"], body: WrittenBody): { written: Written } {
  const field = type === "text" ? "text" : "questions";
  const written = writtenIn({ [field]: body[field] });
  if (!written) throw fieldFault(field, `The ${field} field is required for this document type.`);
  return { written };
}

function sourceOf(body: Body, http: HttpRequest) {
  switch (body.type) {
    case "website":
      return websiteSource(body);
    case "text":
    case "faq":
      return writtenSource(body.type, body);
    default:
      return fileSource(http);
  }
}

/** In the contract's words, with the reason added when it is the server's disk. */
function notCreated(cause: unknown): Fault {
  const reason = storageTrouble(cause);
  return new Fault(500, "Failed to create document. Please try again.", {
    cause, ...reason === null ? {} : { retryAfterS: STORAGE_RETRY_S, extra: { reason } },
  });
}

function createDocumentRoute(options: DocumentRoutesOptions): Route {
  const { knowledgebases, uploadsDir } = options;
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: DOCUMENTS,
    params: ofBase,
    summary: "Create a document",
    description: "Send a website or typed-in content as JSON, or a file as multipart/form-data. "
      + "The document is read in the background; its `status` and the `document_status_changed` "
      + "event show when it is done.",
    body: DocumentBody,
    bodyBytesMax: WRITTEN_BYTES_MAX,
    upload: { folder: uploadsDir, fileBytesMax: LIMITS.uploadBytesMax, isOptional: true },
    responses: {
      201: { description: "Created; the document is read in the background",
        schema: savedOf(NewDocumentSchema) },
    },
    handle: async ({ caller, id, body, http }) => {
      const { accountId } = caller;
      await knowledgebases.get(accountId, id);
      const { name, description = null, type } = body;
      const rereadHours = rereadHoursOf(body);
      const source = sourceOf(body, http);
      const document = await knowledgebases.createDocument({
        accountId, knowledgebaseId: id, name, description, type, source, rereadHours,
      }).catch((error: unknown) => {
        if (error instanceof Fault) throw error;
        throw notCreated(error);
      });
      return json(201, {
        message: "Document created successfully. Processing will begin shortly.",
        data: wireNewDocument(document),
      });
    },
  });
}

function readAgainRoute(knowledgebases: Knowledgebases): Route {
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: `${DOCUMENT}/read`,
    params: ofDocument,
    summary: "Read a failed document or a website again",
    description: "Searches find the old content until reading is done; if it fails, the old "
      + "content stays.",
    responses: {
      200: { description: "The document is read in the background",
        schema: savedOf(ChangedDocumentSchema) },
      409: { description: "The document is already being read" },
      422: { description: "The document was read successfully and is not a website" },
    },
    handle: async ({ caller, id, http }) => {
      const document = await knowledgebases.readAgain(caller.accountId, id, documentIdOf(http));
      return json(200, {
        message: "The document will be read again shortly.", data: wireChangedDocument(document),
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
        summary: "Update a document",
        description: "Changes the name, description, typed-in content or website options. Changed "
          + "content is read again at once; until then searches find the old content.",
        body: ChangeBody,
        bodyBytesMax: WRITTEN_BYTES_MAX,
        responses: {
          200: { description: "Changed", schema: savedOf(ChangedDocumentSchema) },
          409: { description: "The document is being read; try again in a moment" },
        },
        handle: async ({ caller, id, body, http }) => {
          const {
            text, questions, read_again_every_hours: rereadHours, ignore_robots: ignoreRobots,
            ...naming
          } = body;
          const written = writtenIn(body);
          const changes = {
            ...naming, ...(written ? { written } : {}),
            ...(rereadHours === undefined ? {} : { rereadHours }),
            ...(ignoreRobots === undefined ? {} : { ignoreRobots }),
          };
          const changed = await knowledgebases.updateDocument(
            caller.accountId, id, documentIdOf(http), changes);
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
