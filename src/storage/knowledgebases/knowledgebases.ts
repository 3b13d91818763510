// Knowledgebases in the database, and the reads of their documents. The documents' commands are in
// documents.ts, their searchable chunks in passages.ts.
import type { KnownPage } from "#features/knowledgebases/extraction.ts";
import type {
  Document, Knowledgebase, KnowledgebaseStore, RemoveOutcome,
} from "#features/knowledgebases/knowledgebases.ts";
import { LIMITS } from "#core/limits.ts";
import type { Instant } from "#core/system.ts";
import { createDetacher } from "#storage/assistants/assistants.ts";
import {
  createChunkWrites, createDocumentRemoval, documentCommands, IS_DUE, namingCommand,
} from "./documents.ts";
import {
  documentFromRow, knowledgebaseFromRow, type DocumentRow, type KnowledgebaseRow,
} from "./rows.ts";
import { isFree } from "#storage/nodes/nodes.ts";
import { createPassages } from "./passages.ts";
import type { SearchCommands, SearchIndex } from "#storage/search/search.ts";
import { orNull, type Reader, type Sql } from "#storage/sql.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

type Args<Name extends keyof KnowledgebaseStore> = Parameters<KnowledgebaseStore[Name]>[0];
type NamingArgs = { name?: string; description?: string | null; accountId: number; now: Instant };

const KNOWLEDGEBASE = `SELECT k.*,
  (SELECT count(*) FROM documents d WHERE d.knowledgebase_id = k.id) AS documents,
  (SELECT count(*) FROM documents d
    WHERE d.knowledgebase_id = k.id AND d.status = 'processing') AS processing,
  (SELECT count(*) FROM documents d
    WHERE d.knowledgebase_id = k.id AND d.status = 'failed') AS failed,
  (SELECT count(*) FROM assistants a
    WHERE a.knowledgebase_id = k.id AND a.deleted_at IS NULL) AS assistants
  FROM knowledgebases k`;

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
  const firstDocument = sql.prepare<object, DocumentRow>(`
    SELECT * FROM documents WHERE knowledgebase_id = @knowledgebaseId AND account_id = @accountId
    ORDER BY id LIMIT 1`);
  const chunks = createChunkWrites(sql, search);
  const removeDocument = createDocumentRemoval(sql, chunks);
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
    "knowledgebases.remove": async (args: Args<"remove">): Promise<RemoveOutcome | null> => {
      if (!await find.get(args)) return null;
      await detach.knowledgebase(args.accountId, args.knowledgebaseId, args.now);
      const gone: Document[] = [];
      let left = args.rows;
      for (let row = await firstDocument.get(args); row; row = await firstDocument.get(args)) {
        left -= await removeDocument(row, left, args.now);
        if (left <= 0) return { isGone: false, gone };
        gone.push(documentFromRow(row));
      }
      await remove.run(args);
      return { isGone: true, gone };
    },
    ...documentCommands(sql, chunks, find),
    ...namingCommand(sql, search),
  };
}

export function createKnowledgebaseStore(
  reader: Reader, writer: WriterOf<typeof knowledgebaseCommands>, index: SearchIndex,
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
  const due = reader.prepare<object, DocumentRow>(`
    SELECT * FROM documents WHERE ${IS_DUE} AND status <> 'processing'
    ORDER BY next_read_at LIMIT (@rows + 0)`);
  const pages = reader.prepare<object, { pages: string }>(
    "SELECT pages FROM document_sites WHERE document_id = @documentId");
  return {
    ...writes(writer, "knowledgebases", "create", "update", "remove"),
    find: async (accountId, knowledgebaseId) =>
      orNull(await find.get({ accountId, knowledgebaseId }), knowledgebaseFromRow),
    list: async (accountId) => (await list.all({ accountId })).map(knowledgebaseFromRow),
    createDocument: (args) => writer.write("documents.create", args),
    updateDocument: async (args) => {
      const outcome = await writer.write("documents.update", args);
      if (outcome.kind === "saved" && args.name !== undefined) {
        const rows = LIMITS.chunksPerWrite;
        for (let first: number | null = 0; first !== null;) {
          first = await writer.write("documents.nameChunks", { ...args, first, rows });
        }
      }
      return outcome;
    },
    ...writes(writer, "documents", "readAgain", "keepChunks", "beginReading", "addChunks",
      "addVectors", "finishReading"),
    removeDocument: (args) => writer.write("documents.remove", args),
    findDocument: async (accountId, knowledgebaseId, documentId) =>
      orNull(await findDocument.get({ accountId, knowledgebaseId, documentId }), documentFromRow),
    documents: async (knowledgebaseId) =>
      (await documents.all({ knowledgebaseId })).map(documentFromRow),
    unread: async () => (await unread.all({})).map(documentFromRow),
    due: async (now, rows) => (await due.all({ now, rows })).map(documentFromRow),
    knownPages: async (documentId) => {
      const row = await pages.get({ documentId });
      return row ? JSON.parse(row.pages) as KnownPage[] : [];
    },
    ...createPassages(reader, index),
  };
}
