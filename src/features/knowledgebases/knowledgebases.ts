// Knowledgebases and their documents: records, store port, use cases. Reading documents is in
// processing.ts, searching them in retrieval.ts.
import type { Files } from "#files/files.ts";
import type { Removals } from "#files/removals.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { deletedInSteps } from "#core/steps.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent, DocumentStatus } from "#events/events.ts";
import type { Chunk, KnownPage } from "./extraction.ts";

/** Uploaded as a file. */
const FILE_TYPES = ["pdf", "txt", "docx", "md", "html", "csv", "xlsx", "pptx"] as const;
/** Written and edited by hand: a text, or questions with answers. */
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
  /** `processing` while any document is, then `failed` if none could be read. */
  status: KnowledgebaseStatus;
  documentsCount: number;
  assistantsCount: number;
  /** Grows with every change of what a search can find. */
  version: number;
  createdAt: Instant;
  updatedAt: Instant;
}

/** Listed pages, how many links of theirs to follow, and the pages of a sitemap. */
export interface WebsiteSource {
  urls: string[];
  follow: number;
  sitemap?: string;
  /** Most pages of the sitemap to read. */
  pagesMax?: number;
  /** The owner declares that the site is theirs, so robots.txt need not be obeyed. */
  ignoreRobots?: boolean;
}

/**
 * `file`: its name in the file store, which has it until it is read. `written`: its text is stored
 * with the document, a list of questions as JSON.
 */
export type DocumentSource =
  | { file: string } | WebsiteSource | { written: WrittenType };

interface QuestionAndAnswer {
  question: string;
  answer: string;
}

/** Hand-written content. */
export type Written =
  | { type: "text"; text: string } | { type: "faq"; questions: QuestionAndAnswer[] };

const textOf = (written: Written): string =>
  (written.type === "text" ? written.text : JSON.stringify(written.questions));

export const writtenFrom = (type: WrittenType, text: string): Written => (type === "text"
  ? { type, text }
  : { type, questions: JSON.parse(text) as QuestionAndAnswer[] });

export const fileNameOf = (file: string): string => `documents/${file}`;
/** Names of files in the file store: one or none. */
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
  /** Why it failed, for its owner; if it is active, why the last rereading failed. */
  reason: string | null;
  pages: number;
  characters: number;
  /** Hours after which a website is read again; null: only on request. */
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

/** Its place in one ranking, from 1, and its score there. */
interface Ranking {
  place: number;
  score: number;
}

export interface FoundPassage extends Passage {
  /** From 0 to 1; 1: first in every ranking. */
  score: number;
  /** Ranked by BM25; null: it has no word of the query. */
  words: Ranking | null;
  /** Ranked by cosine; null: the query has no vector, or the passage is not among the nearest. */
  meaning: Ranking | null;
}

/** The query's embedding, and the model that made it. */
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
  /** Only for hand-written documents. */
  text?: string;
  rereadHours: number | null;
  now: Instant;
}

/** How a website is read from now on. */
interface SiteChanges {
  rereadHours?: number | null;
  ignoreRobots?: boolean;
}

/** `text`: the new hand-written content, which is then read again. */
export interface ChangedDocument extends Partial<Naming>, SiteChanges {
  accountId: number;
  documentId: number;
  text?: string;
  now: Instant;
}

/** `busy`: it is being read, so nothing was changed. */
type ChangeOutcome =
  | { kind: "saved"; document: Document; events: CommittedEvent[] }
  | { kind: "not_found" }
  | { kind: "busy" };

/** `site`: its pages, for the next reading. `unchanged`: the earlier chunks stay. */
export type ReadOutcome =
  | { kind: "active"; pages: number; characters: number; site?: KnownPage[] }
  | { kind: "unchanged"; site: KnownPage[] }
  | { kind: "failed"; reason: string };

interface DocumentRef {
  accountId: number;
  documentId: number;
}

/** Removes up to `rows` chunks; their owner is removed with the last of them. */
interface Step { accountId: number; rows: number; now: Instant }
/** `gone`: documents removed by this step. `isGone`: nothing is left to remove. */
export interface RemoveOutcome { isGone: boolean; gone: Document[] }

export interface KnowledgebaseStore {
  create(args: Naming & { accountId: number; now: Instant }): Promise<Knowledgebase>;
  update(
    args: Partial<Naming> & { accountId: number; knowledgebaseId: number; now: Instant },
  ): Promise<Knowledgebase | null>;
  /** Also removes its documents and all assistants' references to it. Null: it does not exist. */
  remove(args: Step & { knowledgebaseId: number }): Promise<RemoveOutcome | null>;
  find(accountId: number, knowledgebaseId: number): Promise<Knowledgebase | null>;
  list(accountId: number): Promise<Knowledgebase[]>;

  createDocument(args: NewDocument): Promise<
    | { kind: "created"; document: Document; events: CommittedEvent[] }
    | { kind: "not_found" }
    | { kind: "too_many" }
  >;
  /** With a name, it is found by this name alone afterwards, also if it was interrupted before. */
  updateDocument(args: ChangedDocument): Promise<ChangeOutcome>;
  /**
   * Marks it to be read again; until then, searches find the earlier content. `isDue`: only if its
   * scheduled time has come, and only changed pages; otherwise it is read in full.
   */
  readAgain(args: DocumentRef & { isDue: boolean; now: Instant }): Promise<ChangeOutcome>;
  /** Websites of all accounts that are due to be read again. */
  due(now: Instant, rows: number): Promise<Document[]>;
  removeDocument(args: Step & { documentId: number }): Promise<RemoveOutcome | null>;
  findDocument(
    accountId: number, knowledgebaseId: number, documentId: number,
  ): Promise<Document | null>;
  documents(knowledgebaseId: number): Promise<Document[]>;

  /** Documents still to be read, oldest first, of all accounts. */
  unread(): Promise<Document[]>;
  /**
   * Removes what a server stored before it died while reading; false when the document is gone.
   * Such attempts are not counted: a document can kill an extractor, but never the server.
   */
  beginReading(args: DocumentRef): Promise<boolean>;
  /** Stores some chunks, from position 0 on; searches find them once reading is finished. */
  addChunks(args: DocumentRef & { position: number; chunks: Chunk[] }): Promise<void>;
  /** Pages of a website as they were read last. */
  knownPages(documentId: number): Promise<KnownPage[]>;
  /** Carries chunks of unchanged pages over into the new reading, from `position` on. */
  keepChunks(args: DocumentRef & { position: number; urls: string[] }): Promise<number>;
  /**
   * Stores how reading ended; does nothing if the document is gone or was read already. A success
   * replaces the content of the earlier reading; a failure keeps it.
   */
  finishReading(
    args: DocumentRef & { outcome: ReadOutcome; now: Instant },
  ): Promise<CommittedEvent[]>;

  /** Vectors of chunks stored before, from `position` on. */
  addVectors(
    args: DocumentRef & { position: number; model: string; vectors: Float32Array[] },
  ): Promise<void>;

  /**
   * Best passages first, ranked by words and, given a vector of the query, by meaning too. Accepts
   * any text; one without words finds nothing by words.
   */
  search(
    knowledgebaseId: number, query: string, rows: number, meaning: Meaning | null,
  ): Promise<FoundPassage[]>;
  /** The chunks of one document, in order. */
  chunks(
    documentId: number, offset: number, rows: number,
  ): Promise<{ items: Passage[]; total: number }>;
  /** The hand-written content; null: the document has none. */
  textOf(documentId: number): Promise<string | null>;
  /** Every passage in order, at most `rows`. */
  passages(knowledgebaseId: number, rows: number): Promise<Passage[]>;
}

export interface Knowledgebases {
  create(accountId: number, naming: Naming): Promise<Knowledgebase>;
  /** From here on, Fault 404 when the account has no such knowledgebase or document. */
  update(accountId: number, id: number, changes: Partial<Naming>): Promise<Knowledgebase>;
  remove(accountId: number, id: number): Promise<void>;
  get(accountId: number, id: number): Promise<Knowledgebase>;
  list(accountId: number): Promise<Knowledgebase[]>;
  /** `upload`: path of the uploaded file, which is moved from there, or Fault 503 is thrown. */
  createDocument(args: Naming & {
    accountId: number;
    knowledgebaseId: number;
    type: DocumentType;
    source: { upload: string } | WebsiteSource | { written: Written };
    rereadHours?: number | null;
  }): Promise<Document>;
  /**
   * `written`: Fault 422 when the document is of another type, 409 while it is being read. Settings
   * of a website: Fault 422 when the document is not a website.
   */
  updateDocument(
    accountId: number, knowledgebaseId: number, id: number,
    changes: Partial<Naming> & SiteChanges & { written?: Written },
  ): Promise<Document>;
  /** For a failed document or a website; others throw Fault 422, one being read 409. */
  readAgain(accountId: number, knowledgebaseId: number, id: number): Promise<Document>;
  /** The hand-written content; null: the document is of another type. */
  written(document: Document): Promise<Written | null>;
  chunks(
    document: Document, offset: number, rows: number,
  ): Promise<{ items: Passage[]; total: number }>;
  /** Queues websites that are due; what was read before stays until it is replaced. */
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
  422, "The document was read. Only websites and failed documents can be read again.");
const notWritten = (type: WrittenType): Fault => (type === "text"
  ? fieldFault("text", "Only a document of type text has a text.")
  : fieldFault("questions", "Only a document of type faq has questions."));
const noWebsite = (field: string): Fault =>
  fieldFault(field, "Only websites are read again and have a robots.txt.");
export const documentNotFound = (): Fault => new Fault(404, "Document not found.");

interface KnowledgebasesOptions {
  store: KnowledgebaseStore;
  /** The file store, in which files wait to be read. */
  files: Pick<Files, "put">;
  removals: Pick<Removals, "expect" | "remove">;
  bus: EventBus;
  system: System;
  /** Queues a document to be read. */
  enqueue(document: Document): void;
  /** The document was deleted: stops reading it and removes its file. */
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
  /** Publishes a change, and queues the document if it is to be read again. */
  const changed = (outcome: ChangeOutcome): Document => {
    if (outcome.kind === "not_found") throw documentNotFound();
    if (outcome.kind === "busy") throw beingRead();
    const { document, events } = outcome;
    options.bus.publishCommitted(events);
    if (events.length > 0) options.enqueue(document);
    return document;
  };
  const forgetAll = ({ gone }: RemoveOutcome): void => gone.forEach(options.forget);
  return {
    create: (accountId, naming) => store.create({ ...naming, accountId, now: system.now() }),
    update: async (accountId, knowledgebaseId, changes) => {
      const now = system.now();
      const saved = await store.update({ ...changes, accountId, knowledgebaseId, now });
      if (!saved) throw knowledgebaseNotFound();
      return saved;
    },
    remove: async (accountId, knowledgebaseId) => {
      const some = () => store.remove({ ...GONE, accountId, knowledgebaseId, now: system.now() });
      if (!await deletedInSteps(some, forgetAll)) throw knowledgebaseNotFound();
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
      const some = () =>
        store.removeDocument({ ...GONE, accountId, documentId, now: system.now() });
      if (!await deletedInSteps(some, forgetAll)) throw documentNotFound();
    },
    getDocument,
    documents: async (account, id) => store.documents((await get(account, id)).id),
  };
}

/** Throws Fault 422 for changes that the document's type does not allow. */
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
    // It was deleted, changed or begun meanwhile; the next poll finds what is still due.
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
    throw new Fault(422, `A knowledgebase may not have more than ${DOCUMENTS_PER_KNOWLEDGEBASE_MAX} documents.`);
  }
  bus.publishCommitted(outcome.events);
  enqueue(outcome.document);
  return outcome.document;
}
