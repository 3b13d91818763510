// Knowledgebases, documents and their searchable chunks in SQLite.
import type { Chunk } from "#features/knowledgebases/extraction.ts";
import type {
  Document,
  DocumentSource,
  Knowledgebase,
  KnowledgebaseStatus,
  KnowledgebaseStore,
  NewDocument,
} from "#features/knowledgebases/knowledgebases.ts";
import type { Instant } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import { createDetacher } from "./assistants.ts";
import { createAccountSequence, createEventAppender } from "./events.ts";
import { isFree, NOBODY, type AsNode } from "./nodes.ts";
import { createPassages } from "./passages.ts";
import { bytesOf, type IndexedChunk, type SearchCommands, type SearchIndex } from "./search.ts";
import type { Reader, Sql, Statement } from "./sql.ts";
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

type Args<Name extends keyof KnowledgebaseStore> = Parameters<KnowledgebaseStore[Name]>[0];
type NamingArgs = { name?: string; description?: string | null; accountId: number; now: Instant };

export function knowledgebaseCommands(sql: Sql, search: SearchCommands) {
  const find = sql.prepare<object, KnowledgebaseRow>(
    `${KNOWLEDGEBASE} WHERE k.id = @knowledgebaseId AND k.account_id = @accountId`);
  const insert = sql.prepare(`
    INSERT INTO knowledgebases (account_id, name, description, created_at, updated_at)
    VALUES (@accountId, @name, @description, @now, @now)`);
  const change = sql.prepare(`
    UPDATE knowledgebases SET name = @name, description = @description, updated_at = @now
    WHERE id = @knowledgebaseId AND account_id = @accountId`);
  const remove = sql.prepare(
    "DELETE FROM knowledgebases WHERE id = @knowledgebaseId AND account_id = @accountId");
  const documents = sql.prepare<object, DocumentRow>(
    "SELECT * FROM documents WHERE knowledgebase_id = @knowledgebaseId ORDER BY id");
  const removeDocuments = sql.prepare(
    "DELETE FROM documents WHERE knowledgebase_id = @knowledgebaseId AND account_id = @accountId");
  const chunks = createChunkWrites(sql, search);
  const detach = createDetacher(sql);
  return {
    "knowledgebases.create": async (args: Required<NamingArgs>): Promise<Knowledgebase> => {
      const knowledgebaseId = await insert.insert(args);
      return knowledgebaseFromRow(await find.one({ accountId: args.accountId, knowledgebaseId }));
    },
    "knowledgebases.update": async (args: NamingArgs & { knowledgebaseId: number }) => {
      const row = await find.get(args);
      if (!row) return null;
      const { name = row.name, description = row.description } = args;
      await change.run({ ...args, name, description });
      return knowledgebaseFromRow(await find.one(args));
    },
    "knowledgebases.remove": async (
      args: { accountId: number; knowledgebaseId: number; now: Instant },
    ): Promise<Document[] | null> => {
      if (!await find.get(args)) return null;
      const gone = (await documents.all(args)).map(documentFromRow);
      for (const { id } of gone) await chunks.remove(id);
      await removeDocuments.run(args);
      await detach.knowledgebase(args.accountId, args.knowledgebaseId, args.now);
      await remove.run(args);
      return gone;
    },
    ...documentCommands(sql, chunks, find),
  };
}

type ChunkWrites = ReturnType<typeof createChunkWrites>;

/** The rows of a document's chunks and their entries in the index, always together. */
function createChunkWrites(sql: Sql, search: SearchCommands) {
  const insert = sql.prepare(`
    INSERT INTO chunks (knowledgebase_id, document_id, position, headings, text, page, url)
    VALUES (@knowledgebaseId, @documentId, @position, @headings, @text, @page, @url)`);
  const unvector = sql.prepare(`
    DELETE FROM chunk_vectors WHERE chunk_id IN (
      SELECT id FROM chunks WHERE document_id = @documentId)`);
  const remove = sql.prepare("DELETE FROM chunks WHERE document_id = @documentId");
  return {
    add: async (document: DocumentRow, chunks: Chunk[], first: number): Promise<void> => {
      const { id: documentId, knowledgebase_id: knowledgebaseId } = document;
      const added: IndexedChunk[] = [];
      for (const [offset, chunk] of chunks.entries()) {
        const headings = JSON.stringify(chunk.headings);
        const id = await insert.insert({
          ...chunk, headings, knowledgebaseId, documentId, position: first + offset,
        });
        added.push({
          id, knowledgebaseId, headings: [document.name, ...chunk.headings], text: chunk.text,
        });
      }
      await search.index(added);
    },
    remove: async (documentId: number): Promise<void> => {
      await search.forget(documentId);
      await unvector.run({ documentId });
      await remove.run({ documentId });
    },
  };
}

type Finder = Statement<object, KnowledgebaseRow>;

/** Rows and steps the commands of documents share. */
function createDocumentSteps(sql: Sql, findKnowledgebase: Finder) {
  const append = createEventAppender(sql);
  const nextSequence = createAccountSequence(sql);
  const touch = sql.prepare("UPDATE knowledgebases SET version = version + 1 WHERE id = @id");
  return {
    find: sql.prepare<object, DocumentRow>(
      "SELECT * FROM documents WHERE id = @documentId AND account_id = @accountId"),
    /** What can be found in the knowledgebase has changed. */
    touch: async (row: DocumentRow): Promise<void> =>
      void await touch.run({ id: row.knowledgebase_id }),
    publish: async (row: DocumentRow, now: Instant): Promise<CommittedEvent> => {
      const { account_id: accountId, knowledgebase_id: knowledgebaseId } = row;
      const knowledgebase = await findKnowledgebase.get({ accountId, knowledgebaseId });
      return append({
        accountId,
        accountSequence: await nextSequence(accountId, 1),
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

function documentCommands(sql: Sql, chunks: ChunkWrites, findKnowledgebase: Finder) {
  const steps = createDocumentSteps(sql, findKnowledgebase);
  const insert = sql.prepare(`
    INSERT INTO documents (account_id, knowledgebase_id, name, description, type, source, status,
      node_id, created_at, updated_at)
    VALUES (@accountId, @knowledgebaseId, @name, @description, @type, @source, 'processing',
      @nodeId, @now, @now)`);
  const change = sql.prepare(`
    UPDATE documents SET name = @name, description = @description, updated_at = @now
    WHERE id = @documentId AND account_id = @accountId`);
  const remove = sql.prepare("DELETE FROM documents WHERE id = @documentId");
  return {
    "documents.create": async (args: AsNode<NewDocument>) => {
      const knowledgebase = await findKnowledgebase.get(args);
      if (!knowledgebase) return { kind: "not_found" as const };
      if (knowledgebase.documents >= args.documentsMax) return { kind: "too_many" as const };
      const source = JSON.stringify(args.source);
      const documentId = await insert.insert({ ...args, source });
      const row = await steps.find.one({ accountId: args.accountId, documentId });
      const events = [await steps.publish(row, args.now)];
      return { kind: "created" as const, document: documentFromRow(row), events };
    },
    "documents.update": async (
      args: NamingArgs & { documentId: number },
    ): Promise<Document | null> => {
      const row = await steps.find.get(args);
      if (!row) return null;
      const { name = row.name, description = row.description } = args;
      await change.run({ ...args, name, description });
      return documentFromRow({ ...row, name, description, updated_at: args.now });
    },
    "documents.remove": async (
      args: { accountId: number; documentId: number; now: Instant },
    ): Promise<Document | null> => {
      const row = await steps.find.get(args);
      if (!row) return null;
      await chunks.remove(row.id);
      await remove.run({ documentId: row.id });
      await steps.touch(row);
      return documentFromRow(row);
    },
    ...readingCommands(sql, chunks, steps),
  };
}

function readingCommands(sql: Sql, chunks: ChunkWrites, { touch, publish }: DocumentSteps) {
  const take = sql.prepare(`
    UPDATE documents SET node_id = @nodeId
    WHERE id = @documentId AND account_id = @accountId AND status = 'processing'
      AND (node_id = @nodeId OR ${isFree("documents.node_id")})`);
  /** A document that is read here; another's belongs to whoever took it. */
  const find = sql.prepare<object, DocumentRow>(`
    SELECT * FROM documents WHERE id = @documentId AND account_id = @accountId
      AND coalesce(node_id, ${NOBODY}) = @nodeId`);
  const insertVector = sql.prepare(`
    INSERT INTO chunk_vectors (chunk_id, knowledgebase_id, model, vector)
    SELECT id, knowledgebase_id, @model, @vector FROM chunks
    WHERE document_id = @documentId AND position = @position`);
  const finish = sql.prepare(`
    UPDATE documents SET status = @status, reason = @reason, pages = @pages,
      characters = @characters, updated_at = @now WHERE id = @documentId`);
  return {
    "documents.beginReading": async (args: AsNode<Args<"beginReading">>): Promise<boolean> => {
      const isUnread = (await take.run(args)).changes > 0;
      if (isUnread) await chunks.remove(args.documentId);
      return isUnread;
    },
    "documents.addChunks": async (args: AsNode<Args<"addChunks">>): Promise<void> => {
      const row = await find.get(args);
      if (row?.status === "processing") await chunks.add(row, args.chunks, args.position);
    },
    "documents.addVectors": async (args: AsNode<Args<"addVectors">>): Promise<void> => {
      const { documentId, model } = args;
      if (!await find.get(args)) return;
      for (const [offset, vector] of args.vectors.entries()) {
        await insertVector.run({
          documentId, model, position: args.position + offset, vector: bytesOf(vector),
        });
      }
    },
    "documents.finishReading": async (
      args: AsNode<Args<"finishReading">>,
    ): Promise<CommittedEvent[]> => {
      const { documentId, outcome, now } = args;
      const row = await find.get(args);
      if (row?.status !== "processing") return [];
      const isRead = outcome.kind === "active";
      const result = {
        status: outcome.kind,
        reason: isRead ? null : outcome.reason,
        pages: isRead ? outcome.pages : 0,
        characters: isRead ? outcome.characters : 0,
      };
      if (!isRead) await chunks.remove(documentId);
      await finish.run({ ...result, documentId, now });
      await touch(row);
      return [await publish({ ...row, ...result }, now)];
    },
  };
}

export function createKnowledgebaseStore(
  reader: Reader, writer: Writer, index: SearchIndex,
): KnowledgebaseStore {
  const find = reader.prepare<object, KnowledgebaseRow>(
    `${KNOWLEDGEBASE} WHERE k.id = @knowledgebaseId AND k.account_id = @accountId`);
  const list = reader.prepare<object, KnowledgebaseRow>(
    `${KNOWLEDGEBASE} WHERE k.account_id = @accountId ORDER BY k.id`);
  const findDocument = reader.prepare<object, DocumentRow>(`
    SELECT * FROM documents WHERE id = @documentId AND account_id = @accountId
      AND knowledgebase_id = @knowledgebaseId`);
  const documents = reader.prepare<object, DocumentRow>(
    "SELECT * FROM documents WHERE knowledgebase_id = @knowledgebaseId ORDER BY id");
  const unread = reader.prepare<object, DocumentRow>(`
    SELECT * FROM documents
    WHERE status = 'processing' AND ${isFree("documents.node_id")} ORDER BY id`);
  return {
    create: (args) => writer.write("knowledgebases.create", args),
    update: (args) => writer.write("knowledgebases.update", args),
    remove: (args) => writer.write("knowledgebases.remove", args),
    find: async (accountId, knowledgebaseId) => {
      const row = await find.get({ accountId, knowledgebaseId });
      return row ? knowledgebaseFromRow(row) : null;
    },
    list: async (accountId) => (await list.all({ accountId })).map(knowledgebaseFromRow),
    createDocument: (args) => writer.write("documents.create", args),
    updateDocument: (args) => writer.write("documents.update", args),
    removeDocument: (args) => writer.write("documents.remove", args),
    findDocument: async (accountId, knowledgebaseId, documentId) => {
      const row = await findDocument.get({ accountId, knowledgebaseId, documentId });
      return row ? documentFromRow(row) : null;
    },
    documents: async (knowledgebaseId) =>
      (await documents.all({ knowledgebaseId })).map(documentFromRow),
    unread: async () => (await unread.all({})).map(documentFromRow),
    beginReading: (args) => writer.write("documents.beginReading", args),
    addChunks: (args) => writer.write("documents.addChunks", args),
    addVectors: (args) => writer.write("documents.addVectors", args),
    finishReading: (args) => writer.write("documents.finishReading", args),
    ...createPassages(reader, index),
  };
}
