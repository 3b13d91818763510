// Knowledgebases, documents and their searchable chunks in SQLite.
import type { Chunk } from "#features/knowledgebases/extraction.ts";
import type {
  Document,
  DocumentSource,
  Knowledgebase,
  KnowledgebaseStatus,
  KnowledgebaseStore,
  NewDocument,
  ReadOutcome,
} from "#features/knowledgebases/knowledgebases.ts";
import type { Instant } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import { createDetacher } from "./assistants.ts";
import { bytesOf, createSearch, indexable, scopeOf } from "./engines/sqlite/search.ts";
import type { Db } from "./engines/sqlite/database.ts";
import { createAccountSequence, createEventAppender } from "./events.ts";
import type { Writer } from "./writer.ts";

interface KnowledgebaseRow {
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

interface DocumentRow {
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
  created_at: number;
  updated_at: number;
}

const KNOWLEDGEBASE = `SELECT k.*,
  (SELECT count(*) FROM documents d WHERE d.knowledgebase_id = k.id) AS documents,
  (SELECT count(*) FROM documents d
    WHERE d.knowledgebase_id = k.id AND d.status = 'processing') AS processing,
  (SELECT count(*) FROM documents d
    WHERE d.knowledgebase_id = k.id AND d.status = 'failed') AS failed,
  (SELECT count(*) FROM assistants a
    WHERE a.knowledgebase_id = k.id AND a.deleted_at IS NULL) AS assistants
  FROM knowledgebases k`;

function statusOf({ documents, processing, failed }: KnowledgebaseRow): KnowledgebaseStatus {
  if (documents === 0) return "empty";
  if (processing > 0) return "processing";
  return failed > 0 ? "failed" : "active";
}

function knowledgebaseFromRow(row: KnowledgebaseRow): Knowledgebase {
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

function documentFromRow(row: DocumentRow): Document {
  return {
    id: row.id,
    accountId: row.account_id,
    knowledgebaseId: row.knowledgebase_id,
    name: row.name,
    description: row.description,
    type: row.type,
    source: JSON.parse(row.source) as DocumentSource,
    status: row.status,
    reason: row.reason,
    pages: row.pages,
    characters: row.characters,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

type NamingArgs = { name?: string; description?: string | null; accountId: number; now: Instant };

export function knowledgebaseCommands(db: Db) {
  const find = db.prepare<[object], KnowledgebaseRow>(
    `${KNOWLEDGEBASE} WHERE k.id = @knowledgebaseId AND k.account_id = @accountId`);
  const insert = db.prepare(`
    INSERT INTO knowledgebases (account_id, name, description, created_at, updated_at)
    VALUES (@accountId, @name, @description, @now, @now)`);
  const change = db.prepare(`
    UPDATE knowledgebases SET name = @name, description = @description, updated_at = @now
    WHERE id = @knowledgebaseId AND account_id = @accountId`);
  const remove = db.prepare(
    "DELETE FROM knowledgebases WHERE id = @knowledgebaseId AND account_id = @accountId");
  const documents = db.prepare<[object], DocumentRow>(
    "SELECT * FROM documents WHERE knowledgebase_id = @knowledgebaseId ORDER BY id");
  const removeDocuments = db.prepare(
    "DELETE FROM documents WHERE knowledgebase_id = @knowledgebaseId AND account_id = @accountId");
  const chunks = createChunkWrites(db);
  const detach = createDetacher(db);
  const saved = (args: { accountId: number; knowledgebaseId: number }): Knowledgebase | null => {
    const row = find.get(args);
    return row ? knowledgebaseFromRow(row) : null;
  };
  return {
    "knowledgebases.create": (args: Required<NamingArgs>): Knowledgebase => {
      const knowledgebaseId = Number(insert.run(args).lastInsertRowid);
      const created = saved({ accountId: args.accountId, knowledgebaseId });
      if (!created) throw new Error("an insert returned no row");
      return created;
    },
    "knowledgebases.update": (args: NamingArgs & { knowledgebaseId: number }) => {
      const row = find.get(args);
      if (!row) return null;
      const { name = row.name, description = row.description } = args;
      change.run({ ...args, name, description });
      return saved(args);
    },
    "knowledgebases.remove": (
      args: { accountId: number; knowledgebaseId: number; now: Instant },
    ): Document[] | null => {
      if (!find.get(args)) return null;
      const gone = documents.all(args).map(documentFromRow);
      for (const { id } of gone) chunks.remove(id);
      removeDocuments.run(args);
      detach.knowledgebase(args.accountId, args.knowledgebaseId, args.now);
      remove.run(args);
      return gone;
    },
    ...documentCommands(db, chunks, find),
  };
}

type ChunkWrites = ReturnType<typeof createChunkWrites>;

/** The rows of a document's chunks and their entries in the index, always together. */
function createChunkWrites(db: Db) {
  const insert = db.prepare(`
    INSERT INTO chunks (knowledgebase_id, document_id, position, headings, text, page, url)
    VALUES (@knowledgebaseId, @documentId, @position, @headings, @text, @page, @url)`);
  const index = db.prepare(
    "INSERT INTO chunk_index (rowid, scope, headings, text) VALUES (@id, @scope, @headings, @text)");
  const unindex = db.prepare(`
    DELETE FROM chunk_index WHERE rowid IN (SELECT id FROM chunks WHERE document_id = @documentId)`);
  const unvector = db.prepare(`
    DELETE FROM chunk_vectors WHERE chunk_id IN (
      SELECT id FROM chunks WHERE document_id = @documentId)`);
  const remove = db.prepare("DELETE FROM chunks WHERE document_id = @documentId");
  return {
    add: (document: DocumentRow, chunks: Chunk[], first: number): void => {
      const { id: documentId, knowledgebase_id: knowledgebaseId } = document;
      chunks.forEach((chunk, offset) => {
        const position = first + offset;
        const headings = JSON.stringify(chunk.headings);
        const { lastInsertRowid } = insert.run({
          ...chunk, headings, knowledgebaseId, documentId, position,
        });
        index.run({
          id: lastInsertRowid,
          scope: scopeOf(knowledgebaseId),
          headings: indexable([document.name, ...chunk.headings].join("\n")),
          text: indexable(chunk.text),
        });
      });
    },
    remove: (documentId: number): void => {
      unindex.run({ documentId });
      unvector.run({ documentId });
      remove.run({ documentId });
    },
  };
}

interface Finder {
  get(args: object): KnowledgebaseRow | undefined;
}

/** Rows and steps the commands of documents share. */
function createDocumentSteps(db: Db, findKnowledgebase: Finder) {
  const append = createEventAppender(db);
  const nextSequence = createAccountSequence(db);
  const touch = db.prepare("UPDATE knowledgebases SET version = version + 1 WHERE id = @id");
  return {
    find: db.prepare<[object], DocumentRow>("SELECT * FROM documents WHERE id = @documentId"),
    /** What can be found in the knowledgebase has changed. */
    touch: (row: DocumentRow): void => void touch.run({ id: row.knowledgebase_id }),
    tell: (row: DocumentRow, now: Instant): CommittedEvent => {
      const { account_id: accountId, knowledgebase_id: knowledgebaseId } = row;
      const knowledgebase = findKnowledgebase.get({ accountId, knowledgebaseId });
      return append({
        accountId,
        accountSequence: nextSequence(accountId, 1),
        conversation: null,
        data: {
          type: "document_status_changed", knowledgebase_id: knowledgebaseId, document_id: row.id,
          name: row.name, status: row.status, reason: row.reason,
          knowledgebase_status: knowledgebase ? statusOf(knowledgebase) : "empty",
        },
        now,
      });
    },
  };
}

type DocumentSteps = ReturnType<typeof createDocumentSteps>;

function documentCommands(db: Db, chunks: ChunkWrites, findKnowledgebase: Finder) {
  const steps = createDocumentSteps(db, findKnowledgebase);
  const insert = db.prepare(`
    INSERT INTO documents (account_id, knowledgebase_id, name, description, type, source, status,
      created_at, updated_at)
    VALUES (@accountId, @knowledgebaseId, @name, @description, @type, @source, 'processing',
      @now, @now)`);
  const change = db.prepare(`
    UPDATE documents SET name = @name, description = @description, updated_at = @now
    WHERE id = @documentId AND account_id = @accountId`);
  const remove = db.prepare("DELETE FROM documents WHERE id = @documentId");
  const owned = ({ documentId, accountId }: { documentId: number; accountId: number }) => {
    const row = steps.find.get({ documentId });
    return row?.account_id === accountId ? row : undefined;
  };
  return {
    "documents.create": (args: NewDocument) => {
      const knowledgebase = findKnowledgebase.get(args);
      if (!knowledgebase) return { kind: "not_found" as const };
      if (knowledgebase.documents >= args.documentsMax) return { kind: "too_many" as const };
      const source = JSON.stringify(args.source);
      const documentId = Number(insert.run({ ...args, source }).lastInsertRowid);
      const row = steps.find.get({ documentId });
      if (!row) throw new Error("an insert returned no row");
      const events = [steps.tell(row, args.now)];
      return { kind: "created" as const, document: documentFromRow(row), events };
    },
    "documents.update": (args: NamingArgs & { documentId: number }): Document | null => {
      const row = owned(args);
      if (!row) return null;
      const { name = row.name, description = row.description } = args;
      change.run({ ...args, name, description });
      return documentFromRow({ ...row, name, description, updated_at: args.now });
    },
    "documents.remove": (
      args: { accountId: number; documentId: number; now: Instant },
    ): Document | null => {
      const row = owned(args);
      if (!row) return null;
      chunks.remove(row.id);
      remove.run({ documentId: row.id });
      steps.touch(row);
      return documentFromRow(row);
    },
    ...readingCommands(db, chunks, steps),
  };
}

function readingCommands(db: Db, chunks: ChunkWrites, { find, touch, tell }: DocumentSteps) {
  const insertVector = db.prepare(`
    INSERT INTO chunk_vectors (chunk_id, knowledgebase_id, model, vector)
    SELECT id, knowledgebase_id, @model, @vector FROM chunks
    WHERE document_id = @documentId AND position = @position`);
  const finish = db.prepare(`
    UPDATE documents SET status = @status, reason = @reason, pages = @pages,
      characters = @characters, updated_at = @now WHERE id = @documentId`);
  return {
    "documents.beginReading": ({ documentId }: { documentId: number }): boolean => {
      const isUnread = find.get({ documentId })?.status === "processing";
      if (isUnread) chunks.remove(documentId);
      return isUnread;
    },
    "documents.addChunks": (
      args: { documentId: number; position: number; chunks: Chunk[] },
    ): void => {
      const row = find.get({ documentId: args.documentId });
      if (row?.status === "processing") chunks.add(row, args.chunks, args.position);
    },
    "documents.addVectors": (args: Parameters<KnowledgebaseStore["addVectors"]>[0]): void => {
      const { documentId, model } = args;
      args.vectors.forEach((vector, offset) => insertVector.run({
        documentId, model, position: args.position + offset, vector: bytesOf(vector),
      }));
    },
    "documents.finishReading": (
      args: { documentId: number; outcome: ReadOutcome; now: Instant },
    ): CommittedEvent[] => {
      const { documentId, outcome, now } = args;
      const row = find.get({ documentId });
      if (row?.status !== "processing") return [];
      const isRead = outcome.kind === "active";
      const result = {
        status: outcome.kind,
        reason: isRead ? null : outcome.reason,
        pages: isRead ? outcome.pages : 0,
        characters: isRead ? outcome.characters : 0,
      };
      if (!isRead) chunks.remove(documentId);
      finish.run({ ...result, documentId, now });
      touch(row);
      return [tell({ ...row, ...result }, now)];
    },
  };
}

export function createKnowledgebaseStore(db: Db, writer: Writer): KnowledgebaseStore {
  const find = db.prepare<[object], KnowledgebaseRow>(
    `${KNOWLEDGEBASE} WHERE k.id = @knowledgebaseId AND k.account_id = @accountId`);
  const list = db.prepare<[object], KnowledgebaseRow>(
    `${KNOWLEDGEBASE} WHERE k.account_id = @accountId ORDER BY k.id`);
  const findDocument = db.prepare<[object], DocumentRow>(`
    SELECT * FROM documents WHERE id = @documentId AND account_id = @accountId
      AND knowledgebase_id = @knowledgebaseId`);
  const documents = db.prepare<[object], DocumentRow>(
    "SELECT * FROM documents WHERE knowledgebase_id = @knowledgebaseId ORDER BY id");
  const unread = db.prepare<[], DocumentRow>(
    "SELECT * FROM documents WHERE status = 'processing' ORDER BY id");
  return {
    create: (args) => writer.write("knowledgebases.create", args),
    update: (args) => writer.write("knowledgebases.update", args),
    remove: (args) => writer.write("knowledgebases.remove", args),
    find: (accountId, knowledgebaseId) => {
      const row = find.get({ accountId, knowledgebaseId });
      return row ? knowledgebaseFromRow(row) : null;
    },
    list: (accountId) => list.all({ accountId }).map(knowledgebaseFromRow),
    createDocument: (args) => writer.write("documents.create", args),
    updateDocument: (args) => writer.write("documents.update", args),
    removeDocument: (args) => writer.write("documents.remove", args),
    findDocument: (accountId, knowledgebaseId, documentId) => {
      const row = findDocument.get({ accountId, knowledgebaseId, documentId });
      return row ? documentFromRow(row) : null;
    },
    documents: (knowledgebaseId) => documents.all({ knowledgebaseId }).map(documentFromRow),
    unread: () => unread.all().map(documentFromRow),
    beginReading: (documentId) => writer.write("documents.beginReading", { documentId }),
    addChunks: (args) => writer.write("documents.addChunks", args),
    addVectors: (args) => writer.write("documents.addVectors", args),
    finishReading: (args) => writer.write("documents.finishReading", args),
    ...createSearch(db),
  };
}
