// Wire shapes of knowledgebases and documents.
import { Type, type Static } from "@sinclair/typebox";
import { Nullable } from "../core/schema.ts";
import { isoMicros } from "../core/system.ts";
import {
  DOCUMENT_TYPES, type Document, type DocumentType, type Knowledgebase,
} from "./knowledgebases.ts";

const STATUS_LABELS = {
  empty: "Empty", processing: "Processing", active: "Active", failed: "Failed",
} as const;
const TYPE_LABELS: Record<DocumentType, string> = {
  website: "Website", pdf: "PDF", txt: "TXT", docx: "DOCX",
};

const oneOf = <T extends string>(values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)));

const KNOWLEDGEBASE = {
  id: Type.Integer(),
  name: Type.String(),
  description: Nullable(Type.String()),
  status: oneOf(["empty", "processing", "active", "failed"]),
  status_label: Type.String(),
};
const TIMES = { created_at: Type.String(), updated_at: Type.String() };

export const KnowledgebaseSchema = Type.Object({
  ...KNOWLEDGEBASE,
  documents_count: Type.Integer(),
  assistants_count: Type.Integer(),
  ...TIMES,
});
export const NewKnowledgebaseSchema = Type.Object({ ...KNOWLEDGEBASE, ...TIMES });
export const ChangedKnowledgebaseSchema = Type.Object({
  ...KNOWLEDGEBASE, updated_at: Type.String(),
});

const DOCUMENT = {
  id: Type.Integer(),
  name: Type.String(),
  description: Nullable(Type.String()),
  type: oneOf(DOCUMENT_TYPES),
  type_label: Type.String(),
  status: oneOf(["processing", "active", "failed"]),
  status_label: Type.String(),
};
const READ = {
  /** Why it failed; null otherwise. */
  failure_reason: Nullable(Type.String()),
  pages: Type.Integer(),
  characters: Type.Integer(),
};

export const DocumentSchema = Type.Object({ ...DOCUMENT, ...READ, ...TIMES });
export const NewDocumentSchema = Type.Object({ ...DOCUMENT, created_at: Type.String() });
export const ChangedDocumentSchema = Type.Object({ ...DOCUMENT, updated_at: Type.String() });

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

export function wireDocument(document: Document): Static<typeof DocumentSchema> {
  return {
    ...documentHead(document),
    failure_reason: document.reason,
    pages: document.pages,
    characters: document.characters,
    created_at: isoMicros(document.createdAt),
    updated_at: isoMicros(document.updatedAt),
  };
}

export const wireNewDocument = (document: Document): Static<typeof NewDocumentSchema> => ({
  ...documentHead(document), created_at: isoMicros(document.createdAt),
});

export const wireChangedDocument = (document: Document): Static<typeof ChangedDocumentSchema> => ({
  ...documentHead(document), updated_at: isoMicros(document.updatedAt),
});
