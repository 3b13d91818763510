// Knowledgebases and their documents: records, store port, what can be done with them. Reading a
// document is in processing.ts, finding something again in retrieval.ts.
import type { Files } from "#files/files.ts";
import type { Removals } from "#files/removals.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent, DocumentStatus } from "#events/events.ts";
import type { Chunk, KnownPage } from "./extraction.ts";

/** Brought as a file. */
const FILE_TYPES = ["pdf", "txt", "docx", "md", "html", "csv", "xlsx", "pptx"] as const;
/** Written by hand, and changed by hand: a text, or questions with their answers. */
const WRITTEN_TYPES = ["text", "faq"] as const;
export const DOCUMENT_TYPES = ["website", ...FILE_TYPES, ...WRITTEN_TYPES] as const;
export type FileType = (typeof FILE_TYPES)[number];
type WrittenType = (typeof WRITTEN_TYPES)[number];
export type DocumentType = (typeof DOCUMENT_TYPES)[number];
export type KnowledgebaseStatus = "empty" | DocumentStatus;

export interface Knowledgebase {
  id: number;
  accountId: number;
  name: string;
  description: string | null;
  /** Processing until no document is, then failed when none could be read. */
  status: KnowledgebaseStatus;
  documentsCount: number;
  assistantsCount: number;
  /** Grows whenever what can be found changes. */
  version: number;
  createdAt: Instant;
  updatedAt: Instant;
}

/** Pages named one by one, links of theirs to follow, pages a sitemap names. */
export interface WebsiteSource {
  urls: string[];
  follow: number;
  sitemap?: string;
  /** How many pages of the sitemap are read. */
  pagesMax?: number;
  /** The owner says that the site is theirs, and robots.txt not meant for them. */
  ignoreRobots?: boolean;
}

/**
 * `file`: named by it among the files, until it is read. `written`: its text is kept beside it, a
 * list of questions as JSON.
 */
export type DocumentSource =
  | { file: string } | WebsiteSource | { written: WrittenType };

interface QuestionAndAnswer {
  question: string;
  answer: string;
}

/** Written by hand. */
export type Written =
  | { type: "text"; text: string } | { type: "faq"; questions: QuestionAndAnswer[] };

const textOf = (written: Written): string =>
  (written.type === "text" ? written.text : JSON.stringify(written.questions));

export const writtenFrom = (type: WrittenType, text: string): Written => (type === "text"
  ? { type, text }
  : { type, questions: JSON.parse(text) as QuestionAndAnswer[] });

export const fileNameOf = (file: string): string => `documents/${file}`;
/** Names of what lies outside the database: one or none. */
export const filesOf = (source: DocumentSource): string[] =>
  ("file" in source ? [fileNameOf(source.file)] : []);

export interface Document {
  id: number;
  accountId: number;
  knowledgebaseId: number;
  name: string;
  description: string | null;
  type: DocumentType;
  source: DocumentSource;
  status: DocumentStatus;
  /** Why it failed, for its owner; of an active one: why it could not be read again. */
  reason: string | null;
  pages: number;
  characters: number;
  /** A website is read again after so many hours; null: by hand alone. */
  rereadHours: number | null;
  /** When it was read last, with whatever outcome; null: never. */
  readAt: Instant | null;
  nextReadAt: Instant | null;
  createdAt: Instant;
  updatedAt: Instant;
}

/** A piece of a document as a search finds it, with everything needed to cite it. */
export interface Passage {
  documentId: number;
  document: string;
  /** Place of the chunk in its document. */
  chunk: number;
  headings: string[];
  page: number | null;
  url: string | null;
  text: string;
}

/** Its place in one ranking, from 1, and what that ranking made of it. */
interface Ranking {
  place: number;
  score: number;
}

export interface FoundPassage extends Passage {
  /** From 0 to 1: how near it is to being the first of every ranking. */
  score: number;
  /** Ranked by BM25; null: it has no word of the query. */
  words: Ranking | null;
  /** Ranked by the cosine; null: the query has no vector, or it is not among the nearest. */
  meaning: Ranking | null;
}

/** The query as a vector of the model. */
export interface Meaning {
  model: string;
  vector: Float32Array;
}

interface Naming {
  name: string;
  description: string | null;
}

export interface NewDocument extends Naming {
  accountId: number;
  knowledgebaseId: number;
  type: DocumentType;
  source: DocumentSource;
  documentsMax: number;
  /** Where it is written by hand. */
  text?: string;
  rereadHours: number | null;
  now: Instant;
}

/** How a website is read from now on. */
interface SiteChanges {
  rereadHours?: number | null;
  ignoreRobots?: boolean;
}

/** `text`: what is written by hand from now on, to be read again. */
export interface ChangedDocument extends Partial<Naming>, SiteChanges {
  accountId: number;
  documentId: number;
  text?: string;
  now: Instant;
}

/** `busy`: it is being read just now, and nothing was changed. */
type ChangeOutcome =
  | { kind: "saved"; document: Document; events: CommittedEvent[] }
  | { kind: "not_found" }
  | { kind: "busy" };

/** `site`: its pages, for the next reading. `unchanged`: what was found before is found on. */
export type ReadOutcome =
  | { kind: "active"; pages: number; characters: number; site?: KnownPage[] }
  | { kind: "unchanged"; site: KnownPage[] }
  | { kind: "failed"; reason: string };

interface DocumentRef {
  accountId: number;
  documentId: number;
}

/** Removes so many chunks; what they are of goes with the last of them. */
interface Step { accountId: number; rows: number; now: Instant }
/** Documents that are gone by this step; `isGone`: so is all of it, else it has chunks left. */
export interface RemoveOutcome { isGone: boolean; gone: Document[] }

export interface KnowledgebaseStore {
  create(args: Naming & { accountId: number; now: Instant }): Promise<Knowledgebase>;
  update(
    args: Partial<Naming> & { accountId: number; knowledgebaseId: number; now: Instant },
  ): Promise<Knowledgebase | null>;
  /** Also its documents, and the reference of every assistant. Null: no such knowledgebase. */
  remove(args: Step & { knowledgebaseId: number }): Promise<RemoveOutcome | null>;
  find(accountId: number, knowledgebaseId: number): Promise<Knowledgebase | null>;
  list(accountId: number): Promise<Knowledgebase[]>;

  createDocument(args: NewDocument): Promise<
    | { kind: "created"; document: Document; events: CommittedEvent[] }
    | { kind: "not_found" }
    | { kind: "too_many" }
  >;
  updateDocument(args: ChangedDocument): Promise<ChangeOutcome>;
  /**
   * It is to be read again; what was read before is found until then. `isDue`: by its timetable,
   * where its time has come, and only what has changed; else all of it.
   */
  readAgain(args: DocumentRef & { isDue: boolean; now: Instant }): Promise<ChangeOutcome>;
  /** Websites whose time to be read again has come, of all accounts. */
  due(now: Instant, rows: number): Promise<Document[]>;
  removeDocument(args: Step & { documentId: number }): Promise<RemoveOutcome | null>;
  findDocument(
    accountId: number, knowledgebaseId: number, documentId: number,
  ): Promise<Document | null>;
  documents(knowledgebaseId: number): Promise<Document[]>;

  /** Documents still to be read, oldest first, of all accounts. */
  unread(): Promise<Document[]>;
  /**
   * Removes what was stored by a server that ended while it read; false when the document is gone.
   * How often that happened does not count: a document can end an extractor, never the server.
   */
  beginReading(args: DocumentRef): Promise<boolean>;
  /** A part of what was read, from position 0 on; found by searches once reading is finished. */
  addChunks(args: DocumentRef & { position: number; chunks: Chunk[] }): Promise<void>;
  /** Pages of a website as they were read last. */
  knownPages(documentId: number): Promise<KnownPage[]>;
  /** Chunks of pages that have not changed stand in what is read from `position` on, too. */
  keepChunks(args: DocumentRef & { position: number; urls: string[] }): Promise<number>;
  /**
   * Stores how reading ended; nothing happens to a document that is gone or was read before. What
   * was read takes the place of what an earlier reading left; a failure leaves that as it is.
   */
  finishReading(
    args: DocumentRef & { outcome: ReadOutcome; now: Instant },
  ): Promise<CommittedEvent[]>;

  /** Vectors of chunks stored before, from `position` on. */
  addVectors(
    args: DocumentRef & { position: number; model: string; vectors: Float32Array[] },
  ): Promise<void>;

  /**
   * Best passages first, by words and, with a vector of the query, by meaning too. Takes any text;
   * one without words finds nothing by words.
   */
  search(
    knowledgebaseId: number, query: string, rows: number, meaning: Meaning | null,
  ): Promise<FoundPassage[]>;
  /** What was read of one document, in its order. */
  chunks(
    documentId: number, offset: number, rows: number,
  ): Promise<{ items: Passage[]; total: number }>;
  /** What was written by hand; null: the document has none. */
  textOf(documentId: number): Promise<string | null>;
  /** Every passage in order, at most `rows`. */
  passages(knowledgebaseId: number, rows: number): Promise<Passage[]>;
}

export interface Knowledgebases {
  create(accountId: number, naming: Naming): Promise<Knowledgebase>;
  /** The rest throw Fault 404 when the account has no such knowledgebase or document. */
  update(accountId: number, id: number, changes: Partial<Naming>): Promise<Knowledgebase>;
  remove(accountId: number, id: number): Promise<void>;
  get(accountId: number, id: number): Promise<Knowledgebase>;
  list(accountId: number): Promise<Knowledgebase[]>;
  /** `upload`: where the file was put; it is moved away from there, or Fault 503 thrown. */
  createDocument(args: Naming & {
    accountId: number;
    knowledgebaseId: number;
    type: DocumentType;
    source: { upload: string } | WebsiteSource | { written: Written };
    rereadHours?: number | null;
  }): Promise<Document>;
  /**
   * `written`: Fault 422 where the document is not of that type, 409 while it is being read. How a
   * website is read: Fault 422 where it is none.
   */
  updateDocument(
    accountId: number, knowledgebaseId: number, id: number,
    changes: Partial<Naming> & SiteChanges & { written?: Written },
  ): Promise<Document>;
  /** One that failed, or a website; else Fault 422, and 409 while it is being read. */
  readAgain(accountId: number, knowledgebaseId: number, id: number): Promise<Document>;
  /** What was written by hand; null: it is of another type. */
  written(document: Document): Promise<Written | null>;
  chunks(
    document: Document, offset: number, rows: number,
  ): Promise<{ items: Passage[]; total: number }>;
  /** Begins anew with websites whose time has come, and removes nothing. */
  readDue(): Promise<void>;
  removeDocument(accountId: number, knowledgebaseId: number, id: number): Promise<void>;
  getDocument(accountId: number, knowledgebaseId: number, id: number): Promise<Document>;
  documents(accountId: number, knowledgebaseId: number): Promise<Document[]>;
}

const DOCUMENTS_PER_KNOWLEDGEBASE_MAX = 1000;
const GONE = { rows: LIMITS.chunksGonePerWrite };

export const knowledgebaseNotFound = (): Fault => new Fault(404, "Knowledgebase not found.");
const beingRead = (): Fault =>
  new Fault(409, "The document is being read. Please try again in a moment.", { retryAfterS: 2 });
const readAlready = (): Fault => new Fault(
  422, "The document was read. Only a website, or a document that failed, is read again.");
const notWritten = (type: WrittenType): Fault => (type === "text"
  ? fieldFault("text", "Only a document of the type text has a text.")
  : fieldFault("questions", "Only a document of the type faq has questions."));
const noWebsite = (field: string): Fault =>
  fieldFault(field, "Only a website is read again, or has a robots.txt.");
export const documentNotFound = (): Fault => new Fault(404, "Document not found.");

interface KnowledgebasesOptions {
  store: KnowledgebaseStore;
  /** Where files wait to be read. */
  files: Pick<Files, "put">;
  removals: Pick<Removals, "expect" | "remove">;
  bus: EventBus;
  system: System;
  /** A document waits to be read. */
  enqueue(document: Document): void;
  /** The document is gone: stop reading it, remove its file. */
  forget(document: Document): void;
}

export function createKnowledgebases(options: KnowledgebasesOptions): Knowledgebases {
  const { store, system } = options;
  const get = async (accountId: number, id: number): Promise<Knowledgebase> => {
    const found = await store.find(accountId, id);
    if (!found) throw knowledgebaseNotFound();
    return found;
  };
  const getDocument = async (
    accountId: number, knowledgebaseId: number, id: number,
  ): Promise<Document> => {
    await get(accountId, knowledgebaseId);
    const found = await store.findDocument(accountId, knowledgebaseId, id);
    if (!found) throw documentNotFound();
    return found;
  };
  /** A document that is to be read anew is put where the others wait. */
  const changed = (outcome: ChangeOutcome): Document => {
    if (outcome.kind === "not_found") throw documentNotFound();
    if (outcome.kind === "busy") throw beingRead();
    const { document, events } = outcome;
    options.bus.publishCommitted(events);
    if (events.length > 0) options.enqueue(document);
    return document;
  };
  return {
    create: (accountId, naming) => store.create({ ...naming, accountId, now: system.now() }),
    update: async (accountId, knowledgebaseId, changes) => {
      const now = system.now();
      const saved = await store.update({ ...changes, accountId, knowledgebaseId, now });
      if (!saved) throw knowledgebaseNotFound();
      return saved;
    },
    remove: async (accountId, knowledgebaseId) => {
      const some = (now: Instant) => store.remove({ ...GONE, accountId, knowledgebaseId, now });
      if (!await removeAll(options, some)) throw knowledgebaseNotFound();
    },
    get,
    list: (accountId) => store.list(accountId),
    createDocument: (args) => createDocument(options, args),
    updateDocument: async (accountId, knowledgebaseId, documentId, { written, ...changes }) => {
      const { type } = await getDocument(accountId, knowledgebaseId, documentId);
      checkChanges(type, { ...changes, ...(written ? { written } : {}) });
      return changed(await store.updateDocument({
        ...changes, accountId, documentId, now: system.now(),
        ...(written ? { text: textOf(written) } : {}),
      }));
    },
    readAgain: async (accountId, knowledgebaseId, documentId) => {
      const document = await getDocument(accountId, knowledgebaseId, documentId);
      if (document.status === "active" && document.type !== "website") throw readAlready();
      const now = system.now();
      return changed(await store.readAgain({ accountId, documentId, isDue: false, now }));
    },
    readDue: () => readDue(options, changed),
    written: async ({ id, type }) => {
      if (type !== "text" && type !== "faq") return null;
      const text = await store.textOf(id);
      return text === null ? null : writtenFrom(type, text);
    },
    chunks: ({ id }, offset, rows) => store.chunks(id, offset, rows),
    removeDocument: async (accountId, knowledgebaseId, documentId) => {
      await getDocument(accountId, knowledgebaseId, documentId);
      const some = (now: Instant) => store.removeDocument({ ...GONE, accountId, documentId, now });
      if (!await removeAll(options, some)) throw documentNotFound();
    },
    getDocument,
    documents: async (account, id) => store.documents((await get(account, id)).id),
  };
}

/** So that no charge waits behind a large text; false: there was nothing from the beginning. */
async function removeAll(
  { system, forget }: KnowledgebasesOptions, some: (now: Instant) => Promise<RemoveOutcome | null>,
): Promise<boolean> {
  let done = await some(system.now());
  if (!done) return false;
  for (; done; done = done.isGone ? null : await some(system.now())) done.gone.forEach(forget);
  return true;
}

/** Fault 422 where it is not of the type that can be changed so. */
function checkChanges(
  type: DocumentType, { written, rereadHours, ignoreRobots }: SiteChanges & { written?: Written },
): void {
  if (written && written.type !== type) throw notWritten(written.type);
  if (type === "website") return;
  if (rereadHours) throw noWebsite("read_again_every_hours");
  if (ignoreRobots) throw noWebsite("ignore_robots");
}

async function readDue(
  { store, system }: KnowledgebasesOptions, changed: (outcome: ChangeOutcome) => Document,
): Promise<void> {
  for (const { accountId, id } of await store.due(system.now(), LIMITS.websitesPerLookMax)) {
    const outcome = await store.readAgain({
      accountId, documentId: id, isDue: true, now: system.now(),
    });
    // Gone, changed or begun meanwhile: the next look finds what is still due.
    if (outcome.kind === "saved") changed(outcome);
  }
}

async function createDocument(
  options: KnowledgebasesOptions, args: Parameters<Knowledgebases["createDocument"]>[0],
): Promise<Document> {
  const { store, files, removals, bus, system, enqueue } = options;
  const { source: given } = args;
  let source: DocumentSource;
  if ("upload" in given) {
    const file = system.uuid();
    await removals.expect(fileNameOf(file));
    await files.put(fileNameOf(file), given.upload);
    source = { file };
  } else source = "written" in given ? { written: given.written.type } : given;
  const outcome = await store.createDocument({
    ...args, source, rereadHours: args.rereadHours ?? null,
    documentsMax: DOCUMENTS_PER_KNOWLEDGEBASE_MAX, now: system.now(),
    ...("written" in given ? { text: textOf(given.written) } : {}),
  });
  if (outcome.kind !== "created") await removals.remove(...filesOf(source));
  if (outcome.kind === "not_found") throw knowledgebaseNotFound();
  if (outcome.kind === "too_many") {
    throw new Fault(422, `A knowledgebase holds ${DOCUMENTS_PER_KNOWLEDGEBASE_MAX} documents at most.`);
  }
  bus.publishCommitted(outcome.events);
  enqueue(outcome.document);
  return outcome.document;
}
