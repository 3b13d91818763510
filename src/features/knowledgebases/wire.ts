// Wire shapes of knowledgebases, documents and their chunks.
import { Type, type Static } from "@sinclair/typebox";
import { about, named, NonBlank, Nullable, OneOf } from "#core/schema.ts";
import { isoMicros, isoOrNull } from "#core/system.ts";
import { CREATED, Moment, TIMES, UPDATED } from "#http/answers.ts";
import {
  DOCUMENT_TYPES, type Document, type DocumentType, type Knowledgebase, type Passage, type Written,
} from "./knowledgebases.ts";

const NAME_CHARS_MAX = 255;

export const Name = NonBlank(NAME_CHARS_MAX, about("The name.", "Prices 2026"));
export const Description = Type.Optional(Nullable(Type.String({
  maxLength: NAME_CHARS_MAX, ...about("Description of its content; null if none.",
    "Prices of all goods"),
})));

const STATUS_LABELS = {
  empty: "Empty", processing: "Processing", active: "Active", failed: "Failed",
} as const;
const TYPE_LABELS: Record<DocumentType, string> = {
  website: "Website", pdf: "PDF", txt: "TXT", docx: "DOCX",
  md: "Markdown", html: "HTML", csv: "CSV", text: "Text",
  xlsx: "XLSX", pptx: "PPTX", faq: "Questions and answers",
};

const KNOWLEDGEBASE = {
  id: Type.Integer(about("The knowledgebase's number.", 1)),
  name: Type.String(about("The name.", "Price lists")),
  description: Nullable(Type.String(about("Description of its content; null if none.",
    "Everything we sell"))),
  status: OneOf(["empty", "processing", "active", "failed"], about(
    "Whether documents are still being read; failed: no document could be read, so nothing can be "
    + "found.")),
  status_label: Type.String(about("The status in words.", "Active")),
};

export const KnowledgebaseSchema = Type.Object({
  ...KNOWLEDGEBASE,
  documents_count: Type.Integer(about("The number of documents.", 3)),
  assistants_count: Type.Integer(about("The number of assistants that use it.", 1)),
  ...TIMES,
}, named("Knowledgebase", "A knowledgebase: documents an assistant can look things up in."));
export const NewKnowledgebaseSchema = Type.Object(
  { ...KNOWLEDGEBASE, ...TIMES }, named("NewKnowledgebase", "A new knowledgebase."));
export const ChangedKnowledgebaseSchema = Type.Object(
  { ...KNOWLEDGEBASE, updated_at: Moment(UPDATED) },
  named("ChangedKnowledgebase", "A changed knowledgebase."));

const DOCUMENT = {
  id: Type.Integer(about("The document's number.", 1)),
  name: Type.String(about("The name.", "Prices 2026")),
  description: Nullable(Type.String(about("Description of its content; null if none.",
    "Prices of all goods"))),
  type: OneOf(DOCUMENT_TYPES, about(
    "The type: a website, a type of file, or typed-in content (a text, or questions and "
    + "answers).")),
  type_label: Type.String(about("The type in words.", "PDF")),
  status: OneOf(["processing", "active", "failed"], about("The status of reading it.")),
  status_label: Type.String(about("The status in words.", "Active")),
};
const READ = {
  failure_reason: Nullable(Type.String(about(
    "Why reading failed; null if it did not. With status active: why the last reading again "
    + "failed; the old content is still found.",
    "The file is protected by a password."))),
  pages: Type.Integer(about("The number of pages read.", 12)),
  characters: Type.Integer(about("The number of characters read.", 24_310)),
};

const REREAD_HOURS_MAX = 24 * 365;

export const RereadHours = Nullable(Type.Integer({
  minimum: 1, maximum: REREAD_HOURS_MAX,
  ...about("Hours after which a website is read again, changed pages only; null for never.", 24),
}));
export const IgnoreRobots = Type.Boolean(about(
  "For a website of your own: ignores its robots.txt. The audit log records who set this.",
  false));
const SITE = {
  read_again_every_hours: RereadHours,
  ignore_robots: IgnoreRobots,
  sitemap_url: Nullable(Type.String(about(
    "The sitemap that lists a website's pages; null if none.", "https://example.com/sitemap.xml"))),
  read_at: Nullable(Moment("When it was last read; null if never.")),
  next_read_at: Nullable(Moment("When it will be read again; null if not automatically.")),
};
export const DocumentSchema = Type.Object(
  { ...DOCUMENT, ...READ, ...SITE, ...TIMES }, named("Document", "A document: a file, a website or "
    + "typed-in content."));
const QUESTION_CHARS_MAX = 500;
const ANSWER_CHARS_MAX = 3000;
const QUESTIONS_MAX = 500;
const TEXT_CHARS_MAX = 200_000;

export const Text = NonBlank(TEXT_CHARS_MAX, about(
  "The text; lines that begin with `#` are headings.", "# Hours\n\nWe open at nine."));
export const Questions = Type.Array(Type.Object({
  question: NonBlank(
    QUESTION_CHARS_MAX, about("The question, as people ask it.", "When do you open?")),
  answer: NonBlank(ANSWER_CHARS_MAX, about("The answer.", "At nine, every day.")),
}, named("QuestionAndAnswer", "A question and its answer.")), {
  minItems: 1, maxItems: QUESTIONS_MAX,
  ...about("Questions with answers; each pair is searched on its own."),
});
export const WrittenDocumentSchema = Type.Object({
  ...DOCUMENT, ...READ, ...SITE, ...TIMES,
  text: Nullable(Text), questions: Nullable(Questions),
}, named("WrittenDocument", "A document, with its content if typed in."));

export const ChunkSchema = Type.Object({
  chunk: Type.Integer(about("Its position in the document, as in search results.", 3)),
  headings: Type.Array(Type.String(), about("The headings above it, outermost first.", ["Bikes"])),
  page: Nullable(Type.Integer(about("The page it is on; null if the format has no pages.", 2))),
  url: Nullable(Type.String(about("The web page it is from; null for a file.",
    "https://example.com/"))),
  text: Type.String(about("What was read.", "A city bike costs 20 dollars a day.")),
}, named("DocumentChunk", "A chunk of a document, as searches find it."));

export const NewDocumentSchema = Type.Object(
  { ...DOCUMENT, created_at: Moment(CREATED) },
  named("NewDocument", "A new document, to be read in the background."));
export const ChangedDocumentSchema = Type.Object(
  { ...DOCUMENT, updated_at: Moment(UPDATED) },
  named("ChangedDocument", "A changed document."));

const headOf = ({ id, name, description, status }: Knowledgebase) => ({
  id, name, description, status, status_label: STATUS_LABELS[status],
});

export function wireKnowledgebase(
  knowledgebase: Knowledgebase,
): Static<typeof KnowledgebaseSchema> {
  return {
    ...headOf(knowledgebase),
    documents_count: knowledgebase.documentsCount,
    assistants_count: knowledgebase.assistantsCount,
    created_at: isoMicros(knowledgebase.createdAt),
    updated_at: isoMicros(knowledgebase.updatedAt),
  };
}

export function wireNewKnowledgebase(
  knowledgebase: Knowledgebase,
): Static<typeof NewKnowledgebaseSchema> {
  const { documents_count, assistants_count, ...rest } = wireKnowledgebase(knowledgebase);
  return rest;
}

export function wireChangedKnowledgebase(
  knowledgebase: Knowledgebase,
): Static<typeof ChangedKnowledgebaseSchema> {
  return { ...headOf(knowledgebase), updated_at: isoMicros(knowledgebase.updatedAt) };
}

const documentHead = ({ id, name, description, type, status }: Document) => ({
  id, name, description, type, type_label: TYPE_LABELS[type],
  status, status_label: STATUS_LABELS[status],
});

function wireSite({ source, rereadHours, readAt, nextReadAt }: Document) {
  const site = "urls" in source ? source : null;
  return {
    read_again_every_hours: rereadHours,
    ignore_robots: site?.ignoreRobots === true,
    sitemap_url: site?.sitemap ?? null,
    read_at: isoOrNull(readAt),
    next_read_at: isoOrNull(nextReadAt),
  };
}

export function wireDocument(document: Document): Static<typeof DocumentSchema> {
  return {
    ...documentHead(document),
    failure_reason: document.reason,
    pages: document.pages,
    characters: document.characters,
    ...wireSite(document),
    created_at: isoMicros(document.createdAt),
    updated_at: isoMicros(document.updatedAt),
  };
}

export const wireWrittenDocument = (
  document: Document, written: Written | null,
): Static<typeof WrittenDocumentSchema> => ({
  ...wireDocument(document),
  text: written?.type === "text" ? written.text : null,
  questions: written?.type === "faq" ? written.questions : null,
});

export const wireChunk = (
  { chunk, headings, page, url, text }: Passage,
): Static<typeof ChunkSchema> => ({ chunk, headings, page, url, text });

export const wireNewDocument = (document: Document): Static<typeof NewDocumentSchema> => ({
  ...documentHead(document), created_at: isoMicros(document.createdAt),
});

export const wireChangedDocument = (document: Document): Static<typeof ChangedDocumentSchema> => ({
  ...documentHead(document), updated_at: isoMicros(document.updatedAt),
});
