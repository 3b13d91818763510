// Documents: adding, reading, changing and removing them, with their chunks and the chunks' index
// entries. Called by knowledgebases.ts.
import type { Chunk } from "#features/knowledgebases/extraction.ts";
import {
  filesOf, type ChangedDocument, type Document, type DocumentSource, type KnowledgebaseStore,
  type NewDocument,
} from "#features/knowledgebases/knowledgebases.ts";
import type { Instant } from "#core/system.ts";
import { MINUTE_MICROS } from "#core/zones.ts";
import type { CommittedEvent } from "#events/events.ts";
import { createAccountAppender } from "#storage/events.ts";
import {
  documentFromRow, statusOf, type DocumentRow, type KnowledgebaseRow,
} from "./rows.ts";
import { isFree, NOBODY, type AsNode } from "#storage/nodes/nodes.ts";
import { createUnwanted } from "#storage/removals.ts";
import { bytesOf, type IndexedChunk, type SearchCommands } from "#storage/search/search.ts";
import type { Sql, Statement } from "#storage/sql.ts";

type Args<Name extends keyof KnowledgebaseStore> = Parameters<KnowledgebaseStore[Name]>[0];

type ChunkWrites = ReturnType<typeof createChunkWrites>;

interface ChunkRow {
  position: number;
  headings: string;
  text: string;
  page: number | null;
  url: string | null;
}

const HOUR_MICROS = 60 * MINUTE_MICROS;

/** When a document read or changed now is due for its next reading. */
const nextReading = (hours: number | null, now: Instant): Instant | null =>
  (hours === null ? null : now + hours * HOUR_MICROS);

/** Due, or due later than any timetable puts it: then written before the clock was set back. */
export const IS_DUE = `next_read_at IS NOT NULL AND (next_read_at <= @now
  OR next_read_at > CAST(@now AS BIGINT) + reread_hours * CAST(${HOUR_MICROS} AS BIGINT))`;

const isDue = ({ next_read_at: nextAt, reread_hours: hours }: DocumentRow, now: Instant): boolean =>
  nextAt !== null && (nextAt <= now || nextAt > (nextReading(hours, now) ?? Infinity));

const POSITION_MAX = Number.MAX_SAFE_INTEGER;

/** Writes a document's chunks and their index entries, always together. */
export function createChunkWrites(sql: Sql, search: SearchCommands) {
  const insert = sql.prepare(`
    INSERT INTO chunks (knowledgebase_id, document_id, position, headings, text, page, url)
    VALUES (@knowledgebaseId, @documentId, @position, @headings, @text, @page, @url)`);
  const SOME = "document_id = @documentId AND position >= @first AND position < @end";
  const unvector = sql.prepare(`
    DELETE FROM chunk_vectors WHERE chunk_id IN (SELECT id FROM chunks WHERE ${SOME})`);
  const remove = sql.prepare(`DELETE FROM chunks WHERE ${SOME}`);
  const ofPage = sql.prepare<object, ChunkRow>(`
    SELECT position, headings, text, page, url FROM chunks
    WHERE document_id = @documentId AND position < @foundUntil AND url = @url ORDER BY position`);
  const copyVector = sql.prepare(`
    INSERT INTO chunk_vectors (chunk_id, knowledgebase_id, model, vector)
    SELECT fresh.id, known.knowledgebase_id, known.model, known.vector
    FROM chunk_vectors known
    JOIN chunks old ON old.id = known.chunk_id
    JOIN chunks fresh ON fresh.document_id = old.document_id AND fresh.position = @to
    WHERE old.document_id = @documentId AND old.position = @from`);
  const next = sql.prepare<object, { position: number }>(`
    SELECT coalesce(max(position), -1) + 1 AS position FROM chunks
    WHERE document_id = @documentId`);
  const writes = {
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
    remove: async (documentId: number, first: number, end = POSITION_MAX): Promise<void> => {
      const some = { documentId, first, end };
      await search.forget(some);
      await unvector.run(some);
      await remove.run(some);
    },
    /**
     * Copies the chunks of an unchanged page, with their vectors, to `first` on; resolves to how
     * many.
     */
    repeat: async (document: DocumentRow, url: string, first: number): Promise<number> => {
      const { id: documentId, found_until: foundUntil } = document;
      const rows = await ofPage.all({ documentId, foundUntil, url });
      const chunks = rows.map(({ headings, text, page, url }) =>
        ({ headings: JSON.parse(headings) as string[], text, page, url }));
      await writes.add(document, chunks, first);
      for (const [offset, { position: from }] of rows.entries()) {
        await copyVector.run({ documentId, from, to: first + offset });
      }
      return rows.length;
    },
    /** The position of the document's next chunk. */
    next: async (documentId: number): Promise<number> => (await next.one({ documentId })).position,
  };
  return writes;
}

/**
 * Removes up to `rows` chunks of a document, last first, and returns how many it removed; when
 * there were fewer, removes the document too.
 */
export function createDocumentRemoval(sql: Sql, chunks: ChunkWrites) {
  const parts = ["document_texts", "document_sites"].map((table) =>
    sql.prepare(`DELETE FROM ${table} WHERE document_id = @documentId`));
  const remove = sql.prepare("DELETE FROM documents WHERE id = @documentId");
  const unwanted = createUnwanted(sql);
  return async (row: DocumentRow, rows: number, now: Instant): Promise<number> => {
    const { id: documentId } = row;
    const end = await chunks.next(documentId);
    await chunks.remove(documentId, Math.max(0, end - rows));
    if (end >= rows) return rows;
    for (const part of [...parts, remove]) await part.run({ documentId });
    await unwanted.note(filesOf(documentFromRow(row).source), now);
    return end;
  };
}

type Finder = Statement<object, KnowledgebaseRow>;

/** Rows and steps the commands of documents share. */
function createDocumentSteps(sql: Sql, findKnowledgebase: Finder) {
  const append = createAccountAppender(sql);
  const unwanted = createUnwanted(sql);
  const touch = sql.prepare("UPDATE knowledgebases SET version = version + 1 WHERE id = @id");
  const again = sql.prepare(`
    UPDATE documents SET status = 'processing', reason = NULL, node_id = @nodeId, updated_at = @now
    WHERE id = @documentId`);
  const steps = {
    find: sql.prepare<object, DocumentRow>(
      "SELECT * FROM documents WHERE id = @documentId AND account_id = @accountId"),
    /** The document refers to the file from now on, so the file is no longer to be removed. */
    keepFile: (source: DocumentSource): Promise<void> => unwanted.forget(filesOf(source)),
    letGoOfFile: (row: DocumentRow, now: Instant): Promise<void> =>
      unwanted.note(filesOf(documentFromRow(row).source), now),
    /** Bumps the version: search results in the knowledgebase have changed. */
    touch: async (row: DocumentRow): Promise<void> =>
      void await touch.run({ id: row.knowledgebase_id }),
    publish: async (row: DocumentRow, now: Instant): Promise<CommittedEvent> => {
      const { account_id: accountId, knowledgebase_id: knowledgebaseId } = row;
      const knowledgebase = await findKnowledgebase.get({ accountId, knowledgebaseId });
      return append(accountId, {
        type: "document_status_changed", knowledgebase_id: knowledgebaseId, document_id: row.id,
        name: row.name, status: row.status, reason: row.reason,
        knowledgebase_status: knowledgebase ? statusOf(knowledgebase) : "empty",
      }, now);
    },
    /** Marks the document to be read again; until then, searches find its previous contents. */
    readAgain: async (
      row: DocumentRow, { nodeId, now }: AsNode<{ now: Instant }>,
    ): Promise<{ document: Document; events: CommittedEvent[] }> => {
      const changed: DocumentRow = { ...row, status: "processing", reason: null, updated_at: now };
      await again.run({ documentId: row.id, nodeId, now });
      return { document: documentFromRow(changed), events: [await steps.publish(changed, now)] };
    },
  };
  return steps;
}

type DocumentSteps = ReturnType<typeof createDocumentSteps>;

/** Fields not given stay as they are; a timetable that is given starts now. */
function changedRow(row: DocumentRow, args: ChangedDocument): DocumentRow {
  const { name = row.name, description = row.description, rereadHours, ignoreRobots, now } = args;
  return {
    ...row, name, description, updated_at: now,
    ignore_robots: ignoreRobots === undefined ? row.ignore_robots : Number(ignoreRobots),
    reread_hours: rereadHours === undefined ? row.reread_hours : rereadHours,
    next_read_at: rereadHours === undefined ? row.next_read_at : nextReading(rereadHours, now),
  };
}

const columnsOf = (row: DocumentRow) => ({
  name: row.name, description: row.description, ignoreRobots: row.ignore_robots,
  rereadHours: row.reread_hours, nextReadAt: row.next_read_at,
});

export function documentCommands(sql: Sql, chunks: ChunkWrites, findKnowledgebase: Finder) {
  const steps = createDocumentSteps(sql, findKnowledgebase);
  const insert = sql.prepare(`
    INSERT INTO documents (account_id, knowledgebase_id, name, description, type, source, status,
      node_id, reread_hours, ignore_robots, created_at, updated_at)
    VALUES (@accountId, @knowledgebaseId, @name, @description, @type, @source, 'processing',
      @nodeId, @rereadHours, @ignoreRobots, @now, @now)`);
  const change = sql.prepare(`
    UPDATE documents SET name = @name, description = @description,
      ignore_robots = @ignoreRobots, reread_hours = @rereadHours, next_read_at = @nextReadAt, updated_at = @now
    WHERE id = @documentId AND account_id = @accountId`);
  const forgetSite = sql.prepare("DELETE FROM document_sites WHERE document_id = @documentId");
  const remove = createDocumentRemoval(sql, chunks);
  const putText = sql.prepare(`
    INSERT INTO document_texts (document_id, text) VALUES (@documentId, @text)
    ON CONFLICT (document_id) DO UPDATE SET text = excluded.text`);
  return {
    "documents.create": async (args: AsNode<NewDocument>) => {
      const knowledgebase = await findKnowledgebase.get(args);
      if (!knowledgebase) return { kind: "not_found" as const };
      if (knowledgebase.documents >= args.documentsMax) return { kind: "too_many" as const };
      const { ignoreRobots, ...given } = { ignoreRobots: false, ...args.source };
      const documentId = await insert.insert({
        ...args, source: JSON.stringify(given), ignoreRobots: Number(ignoreRobots),
      });
      await steps.keepFile(args.source);
      const row = await steps.find.one({ accountId: args.accountId, documentId });
      if (args.text !== undefined) await putText.run({ documentId, text: args.text });
      const events = [await steps.publish(row, args.now)];
      return { kind: "created" as const, document: documentFromRow(row), events };
    },
    "documents.update": async (args: AsNode<ChangedDocument>) => {
      const row = await steps.find.get(args);
      if (!row) return { kind: "not_found" as const };
      if (args.text !== undefined && row.status === "processing") return { kind: "busy" as const };
      const { text } = args;
      const named = changedRow(row, args);
      await change.run({ ...args, ...columnsOf(named) });
      if (text === undefined) {
        return { kind: "saved" as const, document: documentFromRow(named), events: [] };
      }
      await putText.run({ documentId: row.id, text });
      return { kind: "saved" as const, ...await steps.readAgain(named, args) };
    },
    "documents.readAgain": async (args: AsNode<Args<"readAgain">>) => {
      const row = await steps.find.get(args);
      if (!row) return { kind: "not_found" as const };
      if (row.status === "processing") return { kind: "busy" as const };
      if (args.isDue && !isDue(row, args.now)) return { kind: "busy" as const };
      if (!args.isDue) await forgetSite.run({ documentId: row.id });
      return { kind: "saved" as const, ...await steps.readAgain(row, args) };
    },
    "documents.remove": async (args: Args<"removeDocument">) => {
      const row = await steps.find.get(args);
      if (!row) return null;
      await steps.touch(row);
      const isGone = await remove(row, args.rows, args.now) < args.rows;
      return { isGone, gone: isGone ? [documentFromRow(row)] : [] };
    },
    ...readingCommands(sql, chunks, steps),
  };
}

function readingCommands(sql: Sql, chunks: ChunkWrites, steps: DocumentSteps) {
  const take = sql.prepare(`
    UPDATE documents SET node_id = @nodeId
    WHERE id = @documentId AND account_id = @accountId AND status = 'processing'
      AND (node_id = @nodeId OR ${isFree("documents.node_id")})`);
  /** The document, if this node is reading it; a node that took it over owns it alone. */
  const find = sql.prepare<object, DocumentRow>(`
    SELECT * FROM documents WHERE id = @documentId AND account_id = @accountId
      AND coalesce(node_id, ${NOBODY}) = @nodeId`);
  const insertVector = sql.prepare(`
    INSERT INTO chunk_vectors (chunk_id, knowledgebase_id, model, vector)
    SELECT id, knowledgebase_id, @model, @vector FROM chunks
    WHERE document_id = @documentId AND position = @position`);
  return {
    "documents.beginReading": async (args: AsNode<Args<"beginReading">>): Promise<boolean> => {
      const isUnread = (await take.run(args)).changes > 0;
      const row = isUnread ? await find.get(args) : undefined;
      if (row) await chunks.remove(row.id, row.found_until);
      return isUnread;
    },
    "documents.addChunks": async (args: AsNode<Args<"addChunks">>): Promise<void> => {
      const row = await find.get(args);
      if (row?.status !== "processing") return;
      await chunks.add(row, args.chunks, row.found_until + args.position);
    },
    "documents.keepChunks": async (args: AsNode<Args<"keepChunks">>): Promise<number> => {
      const row = await find.get(args);
      if (row?.status !== "processing") return 0;
      let kept = 0;
      for (const url of args.urls) {
        kept += await chunks.repeat(row, url, row.found_until + args.position + kept);
      }
      return kept;
    },
    "documents.addVectors": async (args: AsNode<Args<"addVectors">>): Promise<void> => {
      const { documentId, model } = args;
      const row = await find.get(args);
      if (!row) return;
      const first = row.found_until + args.position;
      for (const [offset, vector] of args.vectors.entries()) {
        await insertVector.run({
          documentId, model, position: first + offset, vector: bytesOf(vector),
        });
      }
    },
    ...finishingCommand(sql, chunks, steps, find),
  };
}

function finishingCommand(
  sql: Sql, chunks: ChunkWrites, { letGoOfFile, touch, publish }: DocumentSteps,
  find: Statement<object, DocumentRow>,
) {
  const finish = sql.prepare(`
    UPDATE documents SET status = @status, reason = @reason, pages = @pages,
      characters = @characters, found_until = @foundUntil, read_at = @now,
      next_read_at = @nextReadAt, updated_at = @now
    WHERE id = @documentId`);
  const putSite = sql.prepare(`
    INSERT INTO document_sites (document_id, pages) VALUES (@documentId, @pages)
    ON CONFLICT (document_id) DO UPDATE SET pages = excluded.pages`);
  return {
    "documents.finishReading": async (
      args: AsNode<Args<"finishReading">>,
    ): Promise<CommittedEvent[]> => {
      const { documentId, outcome, now } = args;
      const row = await find.get(args);
      if (row?.status !== "processing") return [];
      const isNew = outcome.kind === "active";
      // If reading failed or found nothing new, the contents of the last reading remain.
      const isFound = outcome.kind !== "failed" || row.found_until > 0;
      if (isNew) await chunks.remove(documentId, 0, row.found_until);
      else await chunks.remove(documentId, row.found_until);
      if (outcome.kind !== "failed" && outcome.site) {
        await putSite.run({ documentId, pages: JSON.stringify(outcome.site) });
      }
      const nextReadAt = nextReading(row.reread_hours, now);
      const result = {
        status: isFound ? "active" as const : "failed" as const,
        reason: outcome.kind === "failed" ? outcome.reason : null,
        pages: isNew ? outcome.pages : row.pages,
        characters: isNew ? outcome.characters : row.characters,
        found_until: isNew ? await chunks.next(documentId) : row.found_until,
      };
      await finish.run({
        ...result, foundUntil: result.found_until, nextReadAt, documentId, now,
      });
      // The file is kept after a failure, so that it can be read again.
      if (outcome.kind !== "failed") await letGoOfFile(row, now);
      if (outcome.kind === "unchanged") return [await publish({ ...row, ...result }, now)];
      await touch(row);
      return [await publish({ ...row, ...result }, now)];
    },
  };
}

/** Indexes chunks by the present name of their document. */
export function namingCommand(sql: Sql, search: SearchCommands) {
  const find = sql.prepare<object, DocumentRow>(
    "SELECT * FROM documents WHERE id = @documentId AND account_id = @accountId");
  const some = sql.prepare<object, ChunkRow & { id: number }>(`
    SELECT id, position, headings, text, page, url FROM chunks
    WHERE document_id = @documentId AND position >= @first ORDER BY position LIMIT (@rows + 0)`);
  return {
    /**
     * At most `rows` from position `first` on, so that no charge waits behind a whole book.
     * Resolves to where to continue; null at the end.
     */
    "documents.nameChunks": async (args: {
      accountId: number; documentId: number; first: number; rows: number;
    }): Promise<number | null> => {
      const { documentId, first } = args;
      const document = await find.get(args);
      const found = document ? await some.all(args) : [];
      const last = found.at(-1);
      if (!document || !last) return null;
      const end = last.position + 1;
      await search.forget({ documentId, first, end });
      await search.index(found.map(({ id, headings, text }) => ({
        id, knowledgebaseId: document.knowledgebase_id, text,
        headings: [document.name, ...JSON.parse(headings) as string[]],
      })));
      return end;
    },
  };
}
