// What was read of a document, reading it again, and documents that are written by hand.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { flow, makePdf } from "#support/documents/documents.ts";
import { newKnowledgebase, uploadFile, whenRead } from "#support/documents/knowledge.ts";
import { listenLocally } from "#support/local-server.ts";
import { startTestServer } from "#support/server.ts";

const server = await startTestServer({ env: { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" } });
after(() => server.close());

const pathOf = (id: number, document?: number): string =>
  `/user/knowledgebases/${id}/documents${document === undefined ? "" : `/${document}`}`;

async function create(id: number, body: object): Promise<number> {
  const { status, body: made } = await server.call("POST", pathOf(id), { body });
  assert.equal(status, 201, JSON.stringify(made));
  assert.equal(made.data.status, "processing");
  return made.data.id as number;
}

async function find(id: number, query: string): Promise<{ text: string; headings: string[] }[]> {
  const { body } = await server.call("POST", `/user/knowledgebases/${id}/search`, { body: { query } });
  return body.data.results as { text: string; headings: string[] }[];
}

test("[KB123] the text read from a document is listed in pages, each chunk with its page", async () => {
  const id = await newKnowledgebase(server);
  const pages = Array.from({ length: 20 }, (_, page) => flow([`This is page ${page + 1}.`]));
  const document = await uploadFile(server, id, makePdf(pages), { type: "pdf" });
  await whenRead(server, document);
  const path = `${pathOf(id, document)}/chunks`;
  const { body: first } = await server.call("GET", path);
  assert.deepEqual([first.total, first.per_page, first.last_page], [20, 15, 2]);
  assert.deepEqual(first.data[1], {
    chunk: 1, headings: [], page: 2, url: null, text: "This is page 2.",
  });
  const { body: last } = await server.call("GET", `${path}?page=3&per_page=9`);
  assert.deepEqual(last.data.map(({ page }: { page: number }) => page), [19, 20]);
  const stranger = await server.newAccount();
  assert.equal((await server.call("GET", path, { key: stranger.key })).status, 404);
  assert.equal((await server.call("GET", `${path}?per_page=101`)).status, 422);
  const failed = await uploadFile(server, id, "no pdf", { type: "pdf" });
  await whenRead(server, failed);
  const { body: nothing } = await server.call("GET", `${pathOf(id, failed)}/chunks`);
  assert.deepEqual(nothing.data, []);
});

test("[KB124] a failed document can be read again; one that was read cannot", async () => {
  let isThere = false;
  const site = await listenLocally(createServer((_, response) => response
    .writeHead(isThere ? 200 : 503, { "content-type": "text/html" })
    .end("<p>The harbour opens at six.</p>")));
  const id = await newKnowledgebase(server);
  const url = `${site.url}/`;
  const website = await create(id, { name: "Harbour", type: "website", url });
  await whenRead(server, website);
  const again = (document: number, key = server.key) =>
    server.call("POST", `${pathOf(id, document)}/read`, { key });
  isThere = true;
  const retried = await again(website);
  assert.equal(retried.status, 200);
  assert.equal(retried.body.data.status, "processing");
  await whenRead(server, website, { times: 2 });
  assert.equal((await find(id, "harbour"))[0]?.text, "The harbour opens at six.");
  // A website that cannot be read again is found as it was, and says why.
  isThere = false;
  assert.equal((await again(website)).status, 200);
  await whenRead(server, website, { times: 3 });
  const { body: kept } = await server.call("GET", pathOf(id, website));
  assert.equal(kept.data.status, "active");
  assert.match(kept.data.failure_reason, /robots\.txt/);
  assert.equal((await find(id, "harbour"))[0]?.text, "The harbour opens at six.");
  await site.close();
  // The file of one that failed is kept for that.
  const broken = await uploadFile(server, id, "no pdf", { type: "pdf" });
  await whenRead(server, broken);
  assert.equal((await again(broken)).status, 200);
  await whenRead(server, broken, { times: 2 });
  const { body: still } = await server.call("GET", pathOf(id, broken));
  assert.equal(still.data.failure_reason, "The file is not a PDF document.");
  const good = await uploadFile(server, id, "Fine.");
  await whenRead(server, good);
  assert.equal((await again(good)).status, 422);
  assert.equal((await again(good, (await server.newAccount()).key)).status, 404);
});

test("[KB125] a pasted text is searchable, can be edited, and then only its new text is found", async () => {
  const id = await newKnowledgebase(server);
  const document = await create(id, {
    name: "Hours", type: "text", text: "# Summer\n\nThe pool opens at seven.\n\n# Winter\n\nClosed.",
  });
  await whenRead(server, document);
  assert.deepEqual((await find(id, "pool")).map(({ headings, text }) => [headings, text]),
    [[["Summer"], "The pool opens at seven."]]);
  const { body: before } = await server.call("GET", pathOf(id, document));
  assert.match(before.data.text, /^# Summer/);
  assert.equal(before.data.questions, null);
  const changed = await server.call("PATCH", pathOf(id, document), {
    body: { text: "The sauna opens at eight." },
  });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  await whenRead(server, document, { times: 2 });
  assert.deepEqual(await find(id, "pool"), []);
  assert.equal((await find(id, "sauna"))[0]?.text, "The sauna opens at eight.");
  const named = await server.call("PATCH", pathOf(id, document), { body: { name: "Sauna" } });
  assert.equal(named.body.data.status, "active");
  const wrong = await server.call("PATCH", pathOf(id, document), {
    body: { questions: [{ question: "Q", answer: "A" }] },
  });
  assert.deepEqual(Object.keys(wrong.body.errors), ["questions"]);
  await server.call("DELETE", `/user/knowledgebases/${id}`);
});

test("[KB126] each question of an FAQ finds its own answer, and the list can be edited", async () => {
  const id = await newKnowledgebase(server);
  const questions = [
    { question: "Do you take dogs?", answer: "Yes, on a lead." },
    { question: "How do I get a refund?", answer: `Write to us within a month. ${"Really. ".repeat(300)}` },
    { question: "Where do I park?", answer: "Behind the house." },
  ];
  const document = await create(id, { name: "FAQ", type: "faq", questions });
  await whenRead(server, document);
  const [refund] = await find(id, "a refund, please");
  assert.deepEqual(refund?.headings, ["How do I get a refund?"]);
  assert.match(refund?.text ?? "", /^Write to us within a month\./);
  const [park, ...others] = await find(id, "parking, where do I park");
  assert.deepEqual([park?.text, others.length], ["Behind the house.", 0]);
  const { body } = await server.call("GET", pathOf(id, document));
  assert.deepEqual(body.data.questions.map(({ question }: { question: string }) => question),
    questions.map(({ question }) => question));
  await server.call("PATCH", pathOf(id, document), {
    body: { questions: [{ question: "Do you take cats?", answer: "No." }] },
  });
  await whenRead(server, document, { times: 2 });
  assert.deepEqual((await find(id, "cats")).map(({ text }) => text), ["No."]);
  assert.deepEqual(await find(id, "dogs"), []);
});

test("[KB127] text and questions are required and bounded", async () => {
  const id = await newKnowledgebase(server);
  const refused = async (body: object): Promise<string[]> => {
    const { status, body: told } = await server.call("POST", pathOf(id), { body: { name: "A", ...body } });
    assert.equal(status, 422, JSON.stringify(told));
    return Object.keys(told.errors as object);
  };
  const pair = { question: "Q", answer: "A" };
  assert.deepEqual(await refused({ type: "text" }), ["text"]);
  assert.deepEqual(await refused({ type: "text", text: " " }), ["text"]);
  assert.deepEqual(await refused({ type: "text", text: "x".repeat(200_001) }), ["text"]);
  assert.deepEqual(await refused({ type: "faq" }), ["questions"]);
  assert.deepEqual(await refused({ type: "faq", questions: [] }), ["questions"]);
  assert.deepEqual(
    await refused({ type: "faq", questions: Array.from({ length: 501 }, () => pair) }), ["questions"]);
  assert.deepEqual(
    await refused({ type: "faq", questions: [{ ...pair, question: " " }] }), ["questions.0.question"]);
  const { status } = await server.call("POST", pathOf(id), {
    body: { name: "Long", type: "text", text: "\u20ac".repeat(200_000) },
  });
  assert.equal(status, 201);
});
