// Rows of knowledgebases and documents, and the records made from them. Used by knowledgebases.ts
// and documents.ts.
import type {
  Document, DocumentSource, Knowledgebase, KnowledgebaseStatus,
} from "#features/knowledgebases/knowledgebases.ts";

export interface KnowledgebaseRow {
  id: number;
  account_id: number;
  name: string;
  description: string | null;
  version: number;
  created_at: number;
  updated_at: number;
  documents: number;
  processing: number;
  failed: number;
  assistants: number;
}

export interface DocumentRow {
  id: number;
  account_id: number;
  knowledgebase_id: number;
  name: string;
  description: string | null;
  type: Document["type"];
  source: string;
  status: Document["status"];
  reason: string | null;
  pages: number;
  characters: number;
  /** Chunks from this position on belong to a reading under way. */
  found_until: number;
  reread_hours: number | null;
  ignore_robots: number;
  read_at: number | null;
  next_read_at: number | null;
  created_at: number;
  updated_at: number;
}

/**
 * One failed document does not fail the knowledgebase: it shows its own failure, and the rest is
 * searched as usual.
 */
export function statusOf({ documents, processing, failed }: KnowledgebaseRow): KnowledgebaseStatus {
  if (documents === 0) return "empty";
  if (processing > 0) return "processing";
  return failed === documents ? "failed" : "active";
}

export function knowledgebaseFromRow(row: KnowledgebaseRow): Knowledgebase {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    description: row.description,
    status: statusOf(row),
    documentsCount: row.documents,
    assistantsCount: row.assistants,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

function sourceFromRow({ source, ignore_robots: ignoreRobots }: DocumentRow): DocumentSource {
  const parsed = JSON.parse(source) as DocumentSource;
  return "urls" in parsed && ignoreRobots === 1 ? { ...parsed, ignoreRobots: true } : parsed;
}

export function documentFromRow(row: DocumentRow): Document {
  return {
    id: row.id,
    accountId: row.account_id,
    knowledgebaseId: row.knowledgebase_id,
    name: row.name,
    description: row.description,
    type: row.type,
    source: sourceFromRow(row),
    status: row.status,
    reason: row.reason,
    pages: row.pages,
    characters: row.characters,
    rereadHours: row.reread_hours,
    readAt: row.read_at,
    nextReadAt: row.next_read_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
