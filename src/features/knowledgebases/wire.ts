// Wire shapes of knowledgebases, documents and their chunks.
import { Type, type Static } from "@sinclair/typebox";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { isoMicros, isoOrNull } from "#core/system.ts";
import { CREATED, Moment, TIMES, UPDATED } from "#http/answers.ts";
import {
  DOCUMENT_TYPES, type Document, type DocumentType, type Knowledgebase, type Passage, type Written,
} from "./knowledgebases.ts";

const NAME_CHARS_MAX = 255;

export const Name = Type.String({
  pattern: "\\S", maxLength: NAME_CHARS_MAX, ...about("What it is called.", "Prices 2026"),
});
export const Description = Type.Optional(Nullable(Type.String({
  maxLength: NAME_CHARS_MAX, ...about("What is in it; null: not said.", "Prices of all goods"),
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
  name: Type.String(about("What it is called.", "Price lists")),
  description: Nullable(Type.String(about("What is in it; null: not said.", "Everything we sell"))),
  status: OneOf(["empty", "processing", "active", "failed"], about(
    "Whether documents are still read; failed: none could be, so that there is nothing to find.")),
  status_label: Type.String(about("The status in words.", "Active")),
};

export const KnowledgebaseSchema = Type.Object({
  ...KNOWLEDGEBASE,
  documents_count: Type.Integer(about("How many documents it has.", 3)),
  assistants_count: Type.Integer(about("How many assistants look things up in it.", 1)),
  ...TIMES,
}, named("Knowledgebase", "Documents an assistant can look things up in."));
export const NewKnowledgebaseSchema = Type.Object(
  { ...KNOWLEDGEBASE, ...TIMES }, named("NewKnowledgebase", "A knowledgebase that was made."));
export const ChangedKnowledgebaseSchema = Type.Object(
  { ...KNOWLEDGEBASE, updated_at: Moment(UPDATED) },
  named("ChangedKnowledgebase", "A knowledgebase that was changed."));

const DOCUMENT = {
  id: Type.Integer(about("The document's number.", 1)),
  name: Type.String(about("What it is called.", "Prices 2026")),
  description: Nullable(Type.String(about("What is in it; null: not said.", "Prices of all goods"))),
  type: OneOf(DOCUMENT_TYPES, about(
    "A website, the kind of the file, or what is written by hand: a text, questions and answers.")),
  type_label: Type.String(about("The type in words.", "PDF")),
  status: OneOf(["processing", "active", "failed"], about("Whether it is still read.")),
  status_label: Type.String(about("The status in words.", "Active")),
};
const READ = {
  failure_reason: Nullable(Type.String(about(
    "Why it could not be read, in words; null: it could, or is still read. With the status active: "
      + "why it could not be read again; what was read before is still found.",
    "The file is protected by a password."))),
  pages: Type.Integer(about("Pages read.", 12)),
  characters: Type.Integer(about("Characters read.", 24_310)),
};

const REREAD_HOURS_MAX = 24 * 365;

export const RereadHours = Nullable(Type.Integer({
  minimum: 1, maximum: REREAD_HOURS_MAX,
  ...about("A website is read again after so many hours, and only what has changed; null: never "
    + "by itself.", 24),
}));
export const IgnoreRobots = Type.Boolean(about(
  "Of a website that is one's own: its robots.txt is not obeyed. Who says so stands in the audit log.",
  false));
const SITE = {
  read_again_every_hours: RereadHours,
  ignore_robots: IgnoreRobots,
  sitemap_url: Nullable(Type.String(about(
    "The sitemap that names a website's pages; null: it has none.", "https://example.com/sitemap.xml"))),
  read_at: Nullable(Moment("When it was read last; null: never.")),
  next_read_at: Nullable(Moment("When it is read again; null: not by itself.")),
};
export const DocumentSchema = Type.Object(
  { ...DOCUMENT, ...READ, ...SITE, ...TIMES }, named("Document", "A file or a website that was read."));
const QUESTION_CHARS_MAX = 500;
const ANSWER_CHARS_MAX = 3000;
const QUESTIONS_MAX = 500;
const TEXT_CHARS_MAX = 200_000;

export const Text = Type.String({
  pattern: "\\S", maxLength: TEXT_CHARS_MAX,
  ...about("What it says; lines that begin with `#` are headings.", "# Hours\n\nWe open at nine."),
});
export const Questions = Type.Array(Type.Object({
  question: Type.String({
    pattern: "\\S", maxLength: QUESTION_CHARS_MAX, ...about("As people ask it.", "When do you open?"),
  }),
  answer: Type.String({
    pattern: "\\S", maxLength: ANSWER_CHARS_MAX, ...about("What is right.", "At nine, every day."),
  }),
}, named("QuestionAndAnswer", "A question with its answer.")), {
  minItems: 1, maxItems: QUESTIONS_MAX,
  ...about("Questions with their answers, each found by itself."),
});
export const WrittenDocumentSchema = Type.Object({
  ...DOCUMENT, ...READ, ...SITE, ...TIMES,
  text: Nullable(Text), questions: Nullable(Questions),
}, named("WrittenDocument", "A document, with what was written by hand where it was."));

export const ChunkSchema = Type.Object({
  chunk: Type.Integer(about("Its place in the document, as searches name it.", 3)),
  headings: Type.Array(Type.String(), about("The headings above it, outermost first.", ["Bikes"])),
  page: Nullable(Type.Integer(about("The page it is on; null: the format has none.", 2))),
  url: Nullable(Type.String(about("The web page it is of; null: a file.", "https://example.com/"))),
  text: Type.String(about("What was read.", "A city bike costs 20 dollars a day.")),
}, named("DocumentChunk", "A piece of a document, as searches find it."));

export const NewDocumentSchema = Type.Object(
  { ...DOCUMENT, created_at: Moment(CREATED) },
  named("NewDocument", "A document that will be read in the background."));
export const ChangedDocumentSchema = Type.Object(
  { ...DOCUMENT, updated_at: Moment(UPDATED) },
  named("ChangedDocument", "A document that was changed."));

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
