// Reads documents in the background, a few at a time, each at the node it was added at; the node
// that takes over from a dead one reads its documents too. Every document ends active or failed
// with a reason, whatever dies in between.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Files } from "#files/files.ts";
import type { Removals } from "#files/removals.ts";
import { hasNoRoom } from "#core/disk.ts";
import { Fault, StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { timeLimit, type System } from "#core/system.ts";
import { createTurns } from "#core/turns.ts";
import type { EventBus } from "#events/bus.ts";
import type { Embedder } from "#providers/embeddings/port.ts";
import type { Chunk, Extractor, ExtractionResult, SitePage } from "./extraction.ts";
import {
  fileNameOf, filesOf, writtenFrom, type Document, type FileType, type KnowledgebaseStore,
  type ReadOutcome,
} from "./knowledgebases.ts";

interface DocumentProcessor {
  /** Queues documents that dead processes left unread; may run again. */
  start(): Promise<void>;
  enqueue(document: Document): void;
  /** Gives up reading it and removes its file. */
  forget(document: Document): void;
  /** Documents waiting or being read. */
  unread(): number;
  /** Stops; unread documents are resumed at the next start. Idempotent. */
  close(): Promise<void>;
}

interface DocumentProcessorOptions {
  store: KnowledgebaseStore;
  extractor: Extractor;
  /** Null: documents are found by words only. */
  embedder: Embedder | null;
  files: Pick<Files, "fetch">;
  removals: Pick<Removals, "remove">;
  /** The folder that a file is copied to while it is read. */
  folder: string;
  /** Documents read at a time. */
  documentsMax: number;
  bus: EventBus;
  system: System;
  log: Logger;
}

export function createDocumentProcessor(options: DocumentProcessorOptions): DocumentProcessor {
  const { store, extractor, removals, bus, system, log } = options;
  const waiting: Document[] = [];
  const reading = new Map<
    number, { document: Document; abort: AbortController; done: Promise<void> }
  >();
  const choose = createChoice(options.documentsMax);
  let isClosed = false;

  const read = async (document: Document, signal: AbortSignal): Promise<void> => {
    try {
      const outcome = await readDocument(options, document, signal);
      if (signal.aborted || !outcome) return;
      const events = await store.finishReading({
        ...named(document), outcome, now: system.now(),
      });
      bus.publishCommitted(events);
      // The file of a failed document is kept, so that it can be read again.
      if (outcome.kind !== "failed") await removals.remove(...filesOf(document.source));
    } catch (error) {
      if (signal.aborted) return;
      log.error({ err: error, document_id: document.id }, "could not read a document");
      if (mayPass(error)) system.after(LIMITS.filesRetryMs, () => enqueue(document));
    }
  };
  const take = (): Document | undefined => {
    const free = waiting.filter(({ id }) => !reading.has(id));
    const document = choose(free, [...reading.values()].map((one) => one.document));
    if (document) waiting.splice(waiting.indexOf(document), 1);
    return document;
  };
  const next = (): void => {
    while (!isClosed && reading.size < options.documentsMax) {
      const document = take();
      if (!document) return;
      const abort = new AbortController();
      const done = read(document, abort.signal).finally(() => {
        reading.delete(document.id);
        next();
      });
      reading.set(document.id, { document, abort, done });
    }
  };
  const enqueue = (document: Document): void => {
    waiting.push(document);
    next();
  };
  return {
    start: async () => {
      for (const document of await store.unread()) {
        // The document may have been queued while `unread` ran.
        const isKnown = reading.has(document.id) || waiting.some(({ id }) => id === document.id);
        if (!isKnown) enqueue(document);
      }
    },
    enqueue,
    forget: (document) => {
      const index = waiting.findIndex(({ id }) => id === document.id);
      if (index >= 0) waiting.splice(index, 1);
      reading.get(document.id)?.abort.abort(new Error("the document was deleted"));
      void removals.remove(...filesOf(document.source));
    },
    unread: () => waiting.length + reading.size,
    close: async () => {
      isClosed = true;
      for (const { abort } of reading.values()) abort.abort(new Error("the server is stopping"));
      await extractor.close();
      await Promise.all([...reading.values()].map(({ done }) => done));
    },
  };
}

/** The failure may be temporary: the file is unreachable, or there is no room for the content. */
const mayPass = (error: unknown): boolean =>
  error instanceof Fault || error instanceof StorageFailure || hasNoRoom(error);

const isSite = ({ source }: Document): boolean => "urls" in source;

/**
 * Chooses the next document, by accounts in turn. Websites get only some of the places, and one per
 * account, so that slow ones delay nobody else.
 */
function createChoice(placesMax: number) {
  // Reading a site is mostly waiting for the network, so one place is kept for files.
  const sitesMax = Math.max(1, placesMax - 1);
  const choose = createTurns();
  return (waiting: readonly Document[], reading: readonly Document[]): Document | undefined => {
    const sites = reading.filter(isSite);
    return choose(waiting.filter((document) => !isSite(document)
      || (sites.length < sitesMax
        && sites.every(({ accountId }) => accountId !== document.accountId))));
  };
}

const FILE_GONE = "The file is no longer stored: delete the document and add it again.";

/** Null when what was written is gone, and the document with it. */
async function extract(
  { store, extractor, files, folder }: DocumentProcessorOptions,
  { id, type, source }: Document,
  signal: AbortSignal,
): Promise<ExtractionResult | null> {
  if ("urls" in source) {
    const known = await store.knownPages(id);
    return extractor.extract({ type: "website", ...source, known }, signal);
  }
  if ("written" in source) {
    const text = await store.textOf(id);
    return text === null ? null : extractor.extract(writtenFrom(source.written, text), signal);
  }
  const path = join(folder, source.file);
  try {
    if (!await files.fetch(fileNameOf(source.file), path)) {
      return { kind: "failed", reason: FILE_GONE };
    }
    return await extractor.extract({ type: type as FileType, path }, signal);
  } finally {
    await rm(path, { force: true });
  }
}

const named = ({ id, accountId }: Document) => ({ documentId: id, accountId });

/** Null when the document is gone. */
async function readDocument(
  options: DocumentProcessorOptions,
  document: Document,
  signal: AbortSignal,
): Promise<ReadOutcome | null> {
  const { store } = options;
  if (!await store.beginReading(named(document))) return null;
  const result = await extract(options, document, signal);
  if (result === null || result.kind === "failed") return result;
  const { pages, site } = result;
  if (site && await isUnchanged(store, document.id, site)) return { kind: "unchanged", site };
  let position = 0;
  let characters = 0;
  for (const part of partsOf(result)) {
    if (signal.aborted) return null;
    if ("kept" in part) {
      position += await store.keepChunks({ ...named(document), position, urls: [part.kept.url] });
      characters += part.kept.characters;
      continue;
    }
    await addChunks(options, document, part.chunks, position, signal);
    position += part.chunks.length;
    characters += part.chunks.reduce((sum, { text }) => sum + text.length, 0);
  }
  return signal.aborted
    ? null
    : { kind: "active", pages, characters, ...(site ? { site } : {}) };
}

/** A part of the content, in order: new chunks, or a page whose chunks are stored already. */
type Part = { chunks: Chunk[] } | { kept: SitePage };

function partsOf({ chunks, site }: Extract<ExtractionResult, { kind: "extracted" }>): Part[] {
  if (!site) return [{ chunks }];
  const byPage = Map.groupBy(chunks, ({ url }) => url);
  return site.map((page) =>
    (page.isKept ? { kept: page } : { chunks: byPage.get(page.url) ?? [] }));
}

/** The same pages with the same texts, so that nothing need be written. */
async function isUnchanged(
  store: KnowledgebaseStore, documentId: number, site: SitePage[],
): Promise<boolean> {
  if (!site.every(({ isKept }) => isKept)) return false;
  const known = await store.knownPages(documentId);
  return known.length === site.length && known.every(({ url }, at) => site[at]?.url === url);
}

/** In parts, so that no charge waits behind a whole book. */
async function addChunks(
  options: DocumentProcessorOptions, document: Document, chunks: Chunk[], first: number,
  signal: AbortSignal,
): Promise<void> {
  for (let at = 0; at < chunks.length; at += LIMITS.chunksPerWrite) {
    const part = chunks.slice(at, at + LIMITS.chunksPerWrite);
    await options.store.addChunks({ ...named(document), position: first + at, chunks: part });
    if (signal.aborted) return;
  }
  await addVectors(options, document, chunks, first, signal);
}

/** Errors are only logged: a document without vectors is still found by its words. */
async function addVectors(
  { store, embedder, log }: DocumentProcessorOptions,
  document: Document,
  chunks: Chunk[],
  first: number,
  signal: AbortSignal,
): Promise<void> {
  if (!embedder) return;
  const { embeddingsPerRequestMax: most, embeddingsMs } = LIMITS;
  try {
    for (let at = 0; at < chunks.length; at += most) {
      const position = first + at;
      const texts = chunks.slice(at, at + most).map(({ headings, text }) =>
        [document.name, ...headings, text].join("\n"));
      const bounded = AbortSignal.any([signal, timeLimit(embeddingsMs).signal]);
      const vectors = await embedder.embed(texts, bounded);
      const { model } = embedder;
      await store.addVectors({ ...named(document), position, model, vectors });
    }
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error, document_id: document.id }, "no embeddings");
  }
}
