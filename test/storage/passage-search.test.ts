// Search in documents, asked of both engines with the same documents and questions.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type { FoundPassage, Meaning } from "#features/knowledgebases/knowledgebases.ts";
import { LIMITS } from "#core/limits.ts";
import type { Storage } from "#storage/storage.ts";
import { ENGINES, openFor, system } from "#support/databases/contract-world.ts";
import { QUESTIONS, SECTIONS } from "#support/documents/corpus.ts";
import { withoutPostgres } from "#support/engines.ts";
import { testDataDir } from "#support/server.ts";

type Sections = [heading: string, ...paragraphs: string[]][];

const STRANGE: Sections = [
  ["Größen und Maße", "Die Straße ist 3,5 Meter breit; Räder dürfen höchstens 1.250 mm hoch sein."],
  ["Réparations", "L'été, l'atelier répare les vélos électriques à Besançon jusqu'à 19 h."],
  ["営業時間", "東京の店は九時から六時まで開いています。自転車の修理もできます。"],
  ["Codes", "Мой дом. E21, E-30, SKU_99/b, bo@example.com, C++ and 10.0.0.1 are codes; naïve façades aren't."],
  ["Endings", "Running runners ran; relational relations relate; ponies, ties, caresses, hopping, hoping."],
  ["Repeats", "brake brake brake brake brake brake brake brake brake brake brake brake pads"],
  [`Long ${"x".repeat(300)}`, `A word of ${"donaudampfschiff".repeat(12)} letters.`],
];
const DOCUMENTS: [document: string, sections: Sections][] =
  [...SECTIONS, ["Strange things", STRANGE]];
const STRANGE_QUESTIONS = [
  "GRÖSSEN", "grosse", "strasse", "Straße", "Straß", "Maß", "velos", "VÉLOS électriques", "ete",
  "l'été", "東京",
  "修理 自転車", "E21", "e-30", "sku_99", "SKU 99 b", "bo@example.com", "c++", "10.0.0.1", "naive",
  "facade", "run", "relating", "pony", "caress", "hop", "brake", "brakes brake", "xxxxx",
  "donaudampf", "what is this", "a", "", "!?", "\"AND\" OR NOT", "brake*", "NEAR(brake)", "\u0000",
  "city bike price day ".repeat(200),
  // Two passages that differ in the last bit of their scores.
  "returned å parts",
];
/** Over PostgreSQL these lose their marks as Latin letters do everywhere. */
const MARKED = ["東京の店は九時から六時まで開いています。自転車の修理もできます。", "て", "мои"];
const isMarked = (text: string): boolean =>
  /(?![\p{sc=Latin}])[\p{L}\p{N}]\p{M}/u.test(text.normalize("NFD"));

const [SQLITE, POSTGRES] = [ENGINES[1], ENGINES.at(-1)];

interface Base {
  storage: Storage;
  knowledgebaseId: number;
}

async function read(
  storage: Storage, accountId: number, documents: typeof DOCUMENTS,
): Promise<Base> {
  const now = system.now();
  const { id: knowledgebaseId } = await storage.knowledgebases.create(
    { accountId, name: "N", description: null, now });
  for (const [name, sections] of documents) {
    const made = await storage.knowledgebases.createDocument({
      accountId, knowledgebaseId, name, description: null, type: "txt", rereadHours: null,
      source: { file: system.uuid() }, documentsMax: 99, now,
    });
    assert.ok(made.kind === "created");
    const document = { accountId, documentId: made.document.id };
    assert.equal(await storage.knowledgebases.beginReading(document), true);
    const chunks = sections.map(([heading, ...text]) =>
      ({ headings: [heading], text: text.join("\n\n"), page: null, url: null }));
    await storage.knowledgebases.addChunks({ ...document, position: 0, chunks });
    await storage.knowledgebases.addVectors({
      ...document, position: 0, model: "m", vectors: chunks.map(({ text }) => vectorOf(text).vector),
    });
    await storage.knowledgebases.finishReading({
      ...document, outcome: { kind: "active", pages: 1, characters: 9 }, now,
    });
  }
  return { storage, knowledgebaseId };
}

/** As near as two texts have letters in common. */
function vectorOf(text: string): Meaning {
  const vector = new Float32Array(26);
  for (const letter of text.toLowerCase().matchAll(/[a-z]/g)) {
    const at = letter[0].charCodeAt(0) - 97;
    vector[at] = (vector[at] ?? 0) + 1;
  }
  vector[0] = (vector[0] ?? 0) + 0.5;
  return { model: "m", vector };
}

/** Places, and scores as far as two ways of adding up the same agree. */
const shown = (found: FoundPassage[]) => found.map(({ document, chunk, words, meaning }) => [
  document, chunk, words && [words.place, words.score.toPrecision(9)],
  meaning && [meaning.place, meaning.score.toFixed(5)],
]);

const rows = LIMITS.rankingRows;
const namesOf = (found: FoundPassage[]): string[] =>
  found.map(({ document, chunk }) => `${document} ${chunk}`);

let bases: Base[] = [];
const places: string[] = [];
before(async () => {
  if (withoutPostgres) return;
  bases = await Promise.all([SQLITE, POSTGRES].map(async (engine) => {
    assert.ok(engine);
    const place = testDataDir();
    places.push(place);
    const storage = await engine.open(place);
    const { id } = await storage.accounts.createAccount(
      { name: "A", email: "", plan: "self-hosted", now: system.now() });
    return read(storage, id, DOCUMENTS);
  }));
});
after(async () => {
  for (const { storage } of bases) await storage.close();
  for (const place of places) rmSync(place, { recursive: true, force: true });
});

const skip = withoutPostgres;

test("[KB132] equal documents and questions find equal passages in equal order on every engine", { skip }, async () => {
  const search = (question: string, meaning: Meaning | null = null) => Promise.all(bases.map(
    ({ storage, knowledgebaseId }) =>
      storage.knowledgebases.search(knowledgebaseId, question, rows, meaning)));
  for (const question of [...QUESTIONS.map(([asked]) => asked), ...STRANGE_QUESTIONS]) {
    for (const meaning of [null, vectorOf(question)]) {
      const [file, server] = await search(question, meaning);
      assert.ok(file && server);
      assert.deepEqual(shown(server), shown(file), question);
    }
  }
  const words = [...new Set(DOCUMENTS.flatMap(([, sections]) => sections.flat())
    .flatMap((text) => text.split(/\s+/)))].filter(({ length }) => length < 60);
  const word = fc.tuple(fc.constantFrom(...words), fc.nat(12), fc.boolean())
    .map(([whole, cut, isLoud]) => {
      const part = whole.slice(0, Math.max(1, whole.length - (cut > 8 ? cut - 8 : 0)));
      return isLoud ? part.toUpperCase() : part;
    });
  const sign = fc.constantFrom(..."aeiostz0149 .,-_'\"*():^äöüßéèçñøåłþæ");
  await fc.assert(fc.asyncProperty(
    fc.array(fc.oneof(word, fc.string({ unit: sign, maxLength: 6 })), { maxLength: 8 })
      .map((parts) => parts.join(" ")).filter((question) => !isMarked(question)),
    async (question) => {
      const [file, server] = await search(question);
      assert.ok(file && server);
      assert.deepEqual(shown(server), shown(file));
    }), { numRuns: 300 });
  for (const question of MARKED) {
    const [file, server] = await search(question);
    assert.ok(file && server);
    const found = namesOf(server);
    assert.deepEqual(namesOf(file).filter((name) => !found.includes(name)), [], question);
  }
});

test("[KB133] other knowledgebases may change the order of SQLite's results, never what is found", { skip }, async () => {
  const [file, server] = bases;
  assert.ok(file && server);
  const ask = ({ storage, knowledgebaseId }: Base) => Promise.all(QUESTIONS.map(([question]) =>
    storage.knowledgebases.search(knowledgebaseId, question, rows, null)));
  const before = { file: await ask(file), server: await ask(server) };
  for (const { storage } of [file, server]) {
    const { id } = await storage.accounts.createAccount(
      { name: "B", email: "", plan: "self-hosted", now: system.now() });
    const others: Sections = Array.from({ length: 40 }, (_, number) =>
      [`Bike ${number}`, "A bike is a bike: charging, brakes, chain and battery all day."]);
    await read(storage, id, [["Others", others]]);
  }
  assert.deepEqual((await ask(server)).map(shown), before.server.map(shown));
  const found = await ask(file);
  assert.deepEqual(
    found.map((one) => namesOf(one).toSorted()),
    before.file.map((one) => namesOf(one).toSorted()));
  assert.notDeepEqual(found.map(shown), before.file.map(shown));
});

for (const engine of ENGINES) {
  const name = `[KB301] ${engine.name}: a renamed document is found by its new name, not by its old one`;
  test(name, { skip: engine.skip ?? false }, async (context) => {
    const storage = await openFor(context, engine);
    const now = system.now();
    const { id: accountId } = await storage.accounts.createAccount(
      { name: "A", email: "", plan: "self-hosted", now });
    // More chunks than one transaction names.
    const count = LIMITS.chunksPerWrite + 1;
    const sections: Sections = Array.from({ length: count }, (_, at) => [`Part ${at}`, "Brakes"]);
    const { knowledgebaseId } = await read(
      storage, accountId, [["Bicycles", sections], ["Scooters", [["Part", "Brakes"]]]]);
    const [document] = await storage.knowledgebases.documents(knowledgebaseId);
    assert.ok(document);
    const all = LIMITS.rankingRows;
    const found = async (question: string) => (await storage.knowledgebases.search(
      knowledgebaseId, question, all, null)).length;
    assert.deepEqual([await found("bicycles"), await found("velocipedes")], [all, 0]);
    const saved = await storage.knowledgebases.updateDocument(
      { accountId, documentId: document.id, name: "Velocipedes", now });
    assert.equal(saved.kind, "saved");
    assert.deepEqual([await found("bicycles"), await found("velocipedes")], [0, all]);
    assert.deepEqual([await found("scooters"), await found(`${count - 1}`)], [1, 1]);
  });
}
