// Puts the corpus into a knowledgebase of a real server and searches for the answers to its
// questions. Shared by the test and the benchmark of retrieval.
import { createServer } from "node:http";
import { corpus, QUESTIONS } from "./corpus.ts";
import { listenLocally } from "#support/local-server.ts";
import { startTestServer, type TestServer } from "#support/server.ts";

const FOUND_MAX = 4;

interface Row {
  question: string;
  /** Place of the passage among the results; null when it is not there. */
  rank: number | null;
  document: string;
}

export interface Measured {
  rows: Row[];
  recallAt1: number;
  recallAt3: number;
  reciprocalRank: number;
  /** Microseconds a search takes. */
  searchUs: number;
}

const rounded = (value: number): number => Number(value.toFixed(3));

async function fill(server: TestServer, siteUrl: string): Promise<number> {
  const made = await server.call("POST", "/user/knowledgebases", { body: { name: "Corpus" } });
  const id = made.body.data.id as number;
  const path = `/user/knowledgebases/${id}/documents`;
  for (const { name, type, content } of corpus()) {
    if (type === "website") {
      await server.call("POST", path, { body: { name, type, url: siteUrl } });
      continue;
    }
    const form = new FormData();
    form.set("name", name);
    form.set("type", type);
    form.set("file", new Blob([new Uint8Array(content)]), `file.${type}`);
    await fetch(`${server.url}/api${path}`, {
      method: "POST", headers: { Authorization: `Bearer ${server.key}` }, body: form,
    });
  }
  const read = Promise.withResolvers<void>();
  const { bus, knowledge } = server.app.features;
  const look = async (): Promise<void> => {
    if ((await knowledge.knowledgebases.get(server.accountId, id)).status === "active") read.resolve();
  };
  const stop = bus.subscribe(`account:${server.accountId}`, () => void look());
  await look();
  await read.promise;
  stop();
  return id;
}

export async function measureRetrieval(): Promise<Measured> {
  const page = corpus().find(({ type }) => type === "website")?.content;
  const site = await listenLocally(createServer((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else response.setHeader("content-type", "text/html").end(page);
  }));
  const server = await startTestServer({ env: { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" } });
  const id = await fill(server, `${site.url}/`);
  const { search } = server.app.features.knowledge.retrieval;
  const startedMs = performance.now();
  const rows: Row[] = [];
  for (const [question, passage] of QUESTIONS) {
    const { results } = await search(server.accountId, id, question) as {
      results: { text: string; document: string }[];
    };
    const index = results.slice(0, FOUND_MAX).findIndex(({ text }) =>
      text.replaceAll(/\s+/g, " ").includes(passage));
    rows.push({
      question, rank: index < 0 ? null : index + 1, document: results[index]?.document ?? "",
    });
  }
  const searchUs = Math.round(((performance.now() - startedMs) * 1000) / rows.length);
  await server.close();
  await site.close();
  const share = (most: number): number =>
    rounded(rows.filter(({ rank }) => rank !== null && rank <= most).length / rows.length);
  const reciprocal = rows.reduce((sum, { rank }) => sum + (rank === null ? 0 : 1 / rank), 0);
  return {
    rows, recallAt1: share(1), recallAt3: share(3),
    reciprocalRank: rounded(reciprocal / rows.length), searchUs,
  };
}
