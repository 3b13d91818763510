// Trying a knowledgebase's search over the wire, as its owner does.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { flow, makePdf } from "#support/documents/documents.ts";
import { newKnowledgebase, uploadFile, whenRead } from "#support/documents/knowledge.ts";
import { listenLocally } from "#support/local-server.ts";
import { startTestServer, type TestServer } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

interface Found {
  document: string;
  document_id: number;
  chunk: number;
  page: number | null;
  headings: string[];
  text: string;
  score: number;
  words: { place: number; score: number } | null;
  meaning: { place: number; score: number } | null;
  is_given: boolean;
}

async function search(id: number, query: string, on: TestServer = server, key = on.key) {
  const { status, body } = await on.call("POST", `/user/knowledgebases/${id}/search`, {
    key, body: { query },
  });
  assert.equal(status, 200, JSON.stringify(body));
  return body.data as { results: Found[]; by_meaning: boolean };
}

test("[KB120] a trial search shows what would be found, with scores, document and page, free of charge", async () => {
  const id = await newKnowledgebase(server);
  const pdf = await uploadFile(server, id, makePdf([
    flow(["The workshop repairs brakes."]), flow(["A city bike costs 20 dollars a day."]),
  ]), { name: "Prices", type: "pdf" });
  const text = await uploadFile(server, id, "# Hours\n\nThe bike shop opens at nine.", { name: "Hours" });
  await Promise.all([whenRead(server, pdf), whenRead(server, text)]);
  const before = await server.call("GET", "/user/me");
  const { results, by_meaning: byMeaning } = await search(id, "What does a city bike cost?");
  assert.equal(byMeaning, false);
  const [first, second] = results;
  assert.deepEqual(
    [first?.document, first?.document_id, first?.page, first?.text],
    ["Prices", pdf, 2, "A city bike costs 20 dollars a day."]);
  assert.deepEqual(
    [first?.score, first?.words?.place, first?.meaning, first?.is_given], [1, 1, null, true]);
  assert.deepEqual([second?.document, second?.page, second?.headings], ["Hours", null, ["Hours"]]);
  assert.ok(first!.words!.score > second!.words!.score, JSON.stringify(results));
  assert.ok(second!.score < 1);
  assert.deepEqual((await search(id, "hovercraft")).results, []);
  const after = await server.call("GET", "/user/me");
  assert.deepEqual(after.body, before.body);
});

test("[KB121] a trial search is bounded, allowed to read-only keys, and for the owner only", async () => {
  const id = await newKnowledgebase(server);
  const pages = Array.from({ length: 15 }, (_, page) => flow([`Lighthouse number ${page}.`]));
  await whenRead(server, await uploadFile(server, id, makePdf(pages), { type: "pdf" }));
  const { results } = await search(id, "lighthouse");
  assert.equal(results.length, LIMITS.passagesTriedMax);
  const given = results.filter((one) => one.is_given);
  assert.equal(given.length, LIMITS.passagesPerSearchMax);
  const path = `/user/knowledgebases/${id}/search`;
  for (const query of ["", "  ", "x".repeat(LIMITS.messageCharsMax + 1)]) {
    assert.equal((await server.call("POST", path, { body: { query } })).status, 422);
  }
  const stranger = await server.newAccount();
  const refused = await server.call("POST", path, { key: stranger.key, body: { query: "light" } });
  assert.equal(refused.status, 404);
  assert.deepEqual(refused.body, { error: "Knowledgebase not found." });
  const made = await server.call("POST", "/user/api-keys", { body: { name: "r", scopes: ["read"] } });
  const reader = made.body.api_key.token as string;
  assert.equal((await search(id, "lighthouse", server, reader)).results.length, results.length);
});

test("[KB122] [MO63] with an embeddings server the trial shows how each passage ranks by meaning", async () => {
  const paths = new Set<string | undefined>();
  const embeddings = await listenLocally(createServer((request, response) => {
    paths.add(request.url);
    let text = "";
    request.on("data", (part: Buffer) => (text += String(part)));
    request.on("end", () => {
      const { input } = JSON.parse(text) as { input: string[] };
      const data = input.map((one, index) =>
        ({ index, embedding: /opening|nine/i.test(one) ? [1, 0] : [0.6, 0.8] }));
      response.setHeader("content-type", "application/json").end(JSON.stringify({ data }));
    });
  }));
  const on = await startTestServer({ env: {
    PARLEY_EMBEDDINGS_URL: `${embeddings.url}/v1?api-version=1`,
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  } });
  const id = await newKnowledgebase(on);
  await whenRead(on, await uploadFile(on, id, "Doors are unlocked at nine."));
  await whenRead(on, await uploadFile(on, id, "Dogs are welcome."));
  const { results, by_meaning: byMeaning } = await search(id, "opening hours", on);
  assert.equal(byMeaning, true);
  assert.deepEqual([...paths], ["/v1/embeddings?api-version=1"]);
  assert.deepEqual(results.map(({ text, words, meaning }) => [text, words, meaning]), [
    ["Doors are unlocked at nine.", null, { place: 1, score: 1 }],
    ["Dogs are welcome.", null, { place: 2, score: 0.6 }],
  ]);
  await on.close();
  await embeddings.close();
});
