// Websites by sitemap, and on a timetable: what has changed is read again, the rest stands.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { createSystem } from "#core/system.ts";
import { newKnowledgebase, whenRead } from "#support/documents/knowledge.ts";
import { listenLocally } from "#support/local-server.ts";
import { startTestServer } from "#support/server.ts";

const HOUR_MICROS = 3_600_000_000;

/** Hours go by when a test says so. */
const system = createSystem();
let hours = 0;
const server = await startTestServer({
  env: { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" },
  system: { ...system, now: () => system.now() + hours * HOUR_MICROS },
});
after(() => server.close());

type Page = string | Buffer | { status: number; location?: string };

/** `asked`: paths with how they were answered. `named`: the site says what state a page is in. */
async function newSite(pages: Record<string, Page>, { isNamed = false } = {}) {
  const asked: string[] = [];
  const { url, close } = await listenLocally(createServer(({ url: path = "", headers }, response) => {
    const page = pages[path] ?? { status: 404 };
    const isText = typeof page === "string" || Buffer.isBuffer(page);
    const etag = isText && isNamed ? `"${page.length}-${path}"` : undefined;
    const isKnown = etag !== undefined && headers["if-none-match"] === etag;
    const status = !isText ? page.status : isKnown ? 304 : 200;
    asked.push(`${path} ${status}`);
    response.writeHead(status, {
      "content-type": path.includes(".xml") ? "application/xml" : "text/html",
      ...(etag === undefined ? {} : { etag }),
      ...(!isText && page.location !== undefined ? { location: page.location } : {}),
    });
    response.end(isText && !isKnown ? page : "");
  }));
  after(close);
  return { url, pages, asked };
}

const sitemapOf = (...pages: string[]): string =>
  `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${
    pages.map((page) => `<url><loc>${page}</loc><image:image><image:loc>${page}.png</image:loc>`
      + "</image:image></url>").join("")}</urlset>`;

const pathOf = (id: number, document: number): string =>
  `/user/knowledgebases/${id}/documents/${document}`;

async function add(id: number, body: object): Promise<number> {
  const { status, body: made } = await server.call("POST", `/user/knowledgebases/${id}/documents`, {
    body: { name: "Site", type: "website", ...body },
  });
  assert.equal(status, 201, JSON.stringify(made));
  await whenRead(server, made.data.id as number);
  return made.data.id as number;
}

async function documentOf(id: number, document: number) {
  const { body } = await server.call("GET", pathOf(id, document));
  return body.data as Record<string, unknown>;
}

async function textsOf(id: number, document: number): Promise<string[]> {
  const { body } = await server.call("GET", `${pathOf(id, document)}/chunks`);
  return body.data.map(({ text }: { text: string }) => text) as string[];
}

const readDue = (): Promise<void> => server.app.features.knowledge.knowledgebases.readDue();

test("[KB128] a sitemap or sitemap index names the pages to read, of the same site, up to the limit", async () => {
  const site = await newSite({});
  const { url } = site;
  Object.assign(site.pages, {
    "/sitemap.xml": `<sitemapindex><sitemap><loc>${url}/a.xml</loc></sitemap>
      <sitemap><loc>${url}/b.xml.gz</loc></sitemap><sitemap><loc>${url}/sitemap.xml</loc></sitemap>
      <sitemap><loc>http://elsewhere.example/c.xml</loc></sitemap></sitemapindex>`,
    "/a.xml": sitemapOf(`${url}/one`, "http://elsewhere.example/x", `${url}/two`),
    "/b.xml.gz": gzipSync(sitemapOf(`${url}/two`, `${url}/three`, `${url}/four`)),
    "/one": "<p>First.</p><a href='/five'></a>", "/two": "<p>Second.</p>",
    "/three": "<p>Third.</p>", "/four": "<p>Fourth.</p>", "/five": "<p>Fifth.</p>",
    "/none.xml": "<html></html>",
  });
  const id = await newKnowledgebase(server);
  const document = await add(id, { sitemap_url: `${url}/sitemap.xml`, sitemap_pages_limit: 3 });
  assert.deepEqual(await textsOf(id, document), ["First.", "Second.", "Third."]);
  const { pages, sitemap_url: sitemap } = await documentOf(id, document);
  assert.deepEqual([pages, sitemap], [3, `${url}/sitemap.xml`]);
  const none = await add(id, { sitemap_url: `${url}/none.xml` });
  assert.match((await documentOf(id, none)).failure_reason as string, /The address is not a sitemap/);
});

test("[KB129] a website is reread on its schedule, and only changed pages are", async () => {
  const site = await newSite({
    "/": "<p>Home.</p><a href='/prices'>p</a><a href='/old'>o</a><a href='/flaky'>f</a>",
    "/prices": "<p>A bike costs 20.</p>", "/old": "<p>Old news.</p>", "/flaky": "<p>Here now.</p>",
  }, { isNamed: true });
  const id = await newKnowledgebase(server);
  const document = await add(id, { url: `${site.url}/`, read_again_every_hours: 24 });
  assert.deepEqual((await textsOf(id, document)).slice(1),
    ["A bike costs 20.", "Old news.", "Here now."]);
  site.asked.length = 0;
  await readDue();
  assert.equal(site.asked.join(), "");
  hours += 25;
  await readDue();
  await whenRead(server, document, { times: 2 });
  assert.deepEqual(site.asked, ["/robots.txt 404", "/ 304", "/prices 304", "/old 304", "/flaky 304"]);
  const unchanged = await documentOf(id, document);
  assert.ok(String(unchanged.read_at) > String(unchanged.created_at));
  assert.ok(String(unchanged.next_read_at) > String(unchanged.read_at));
  assert.equal((await textsOf(id, document)).length, 4);
  // One changed, one is gone, one has a bad moment: what it said is found on.
  Object.assign(site.pages, {
    "/prices": "<p>A bike costs 25 now.</p>", "/old": { status: 410 }, "/flaky": { status: 503 },
  });
  hours += 25;
  await readDue();
  await whenRead(server, document, { times: 3 });
  assert.deepEqual((await textsOf(id, document)).slice(1), ["A bike costs 25 now.", "Here now."]);
  const { body } = await server.call("POST", `/user/knowledgebases/${id}/search`, {
    body: { query: "what does a bike cost" },
  });
  assert.deepEqual(body.data.results.map(({ text }: { text: string }) => text),
    ["A bike costs 25 now."]);
  // Asked for by hand, all of it is read anew; without a timetable nothing is.
  const changed = await server.call("PATCH", pathOf(id, document), {
    body: { read_again_every_hours: null },
  });
  assert.equal(changed.status, 200);
  assert.equal((await documentOf(id, document)).next_read_at, null);
  site.asked.length = 0;
  await server.call("POST", `${pathOf(id, document)}/read`);
  await whenRead(server, document, { times: 4 });
  assert.ok(!site.asked.join().includes("304"), site.asked.join());
  hours += 1000;
  site.asked.length = 0;
  await readDue();
  assert.deepEqual(site.asked, []);
});

test("[KB135] a clock set back does not delay a website's next reading", async () => {
  const site = await newSite({ "/": "<p>Home.</p>" }, { isNamed: true });
  const id = await newKnowledgebase(server);
  const before = hours;
  hours += 24 * 365;
  const document = await add(id, { url: `${site.url}/`, read_again_every_hours: 24 });
  hours += 1;
  await readDue();
  assert.equal((await documentOf(id, document)).status, "active", "it is not due yet");
  hours = before;
  await readDue();
  await whenRead(server, document, { times: 2 });
  const { next_read_at: next } = await documentOf(id, document);
  const day = Date.parse(String(next)) - (system.now() / 1000 + hours * 3_600_000);
  assert.ok(Math.abs(day - 24 * 3_600_000) < 60_000, String(next));
  hours += 25;
  await readDue();
  await whenRead(server, document, { times: 3 });
});

test("[KB130] pages without ETag or Last-Modified are compared by their text", async () => {
  const site = await newSite({
    "/": "<p>Stays.</p><a href='/b'></a>", "/b": "<!-- 1 --><p>Stays, too.</p>",
  });
  const id = await newKnowledgebase(server);
  const document = await add(id, { url: `${site.url}/`, read_again_every_hours: 1 });
  const before = await server.call("GET", `${pathOf(id, document)}/chunks`);
  Object.assign(site.pages, { "/b": "<!-- 2 --><p>Stays, too.</p>" });
  hours += 2;
  await readDue();
  await whenRead(server, document, { times: 2 });
  const after = await server.call("GET", `${pathOf(id, document)}/chunks`);
  // Their places are those of the first reading: nothing of it was written anew.
  assert.deepEqual(after.body.data, before.body.data);
  assert.equal((await documentOf(id, document)).failure_reason, null);
});

test("[KB131] an owner can set robots.txt aside for their own site, and the audit log records it", async () => {
  const site = await newSite({
    "/robots.txt": "User-agent: *\nDisallow: /", "/": "<p>For us.</p>",
  });
  const id = await newKnowledgebase(server);
  const document = await add(id, { url: `${site.url}/` });
  assert.match((await documentOf(id, document)).failure_reason as string, /robots\.txt/);
  await server.call("PATCH", pathOf(id, document), { body: { ignore_robots: true } });
  assert.equal((await documentOf(id, document)).ignore_robots, true);
  await server.call("POST", `${pathOf(id, document)}/read`);
  await whenRead(server, document, { times: 2 });
  assert.deepEqual(await textsOf(id, document), ["For us."]);
  const { body } = await server.call("GET", "/user/audit?action=document.update");
  assert.deepEqual(body.data[0].details, {
    fields: ["ignore_robots"], before: { ignore_robots: 0 }, after: { ignore_robots: 1 },
    name: "Site",
  });
  const text = await server.call("POST", `/user/knowledgebases/${id}/documents`, {
    body: { name: "T", type: "text", text: "T", ignore_robots: true },
  });
  assert.equal(text.status, 422);
});

test("[KB382] robots.txt is found behind five redirects, also at another site; behind more there is none", async () => {
  const rules = await newSite({ "/rules": "User-agent: *\nDisallow: /" });
  const to = (location: string): Page => ({ status: 301, location });
  const pages = {
    "/": "<p>Home.</p>", "/1": to("/2"), "/2": to("/3"), "/3": to("/4"), "/4": to(`${rules.url}/rules`),
  };
  const five = await newSite({ ...pages, "/robots.txt": to("/1") });
  const six = await newSite({ ...pages, "/robots.txt": to("/0"), "/0": to("/1") });
  const id = await newKnowledgebase(server);
  const forbidden = await add(id, { url: `${five.url}/` });
  assert.match((await documentOf(id, forbidden)).failure_reason as string, /robots\.txt/);
  assert.deepEqual(await textsOf(id, await add(id, { url: `${six.url}/` })), ["Home."]);
});

test("[VS7] a page that names no encoding is read as UTF-8 or UTF-16, otherwise as Windows' own", async () => {
  const site = await newSite({
    "/": '<p>Straße <a href="/old">old</a> <a href="/wide">wide</a></p>',
    "/old": Buffer.from("<p>Gr\u00f6\u00dfe</p>", "latin1"),
    "/wide": Buffer.from("\ufeff<p>Größe zwei</p>", "utf16le"),
  });
  const id = await newKnowledgebase(server);
  const document = await add(id, { url: `${site.url}/`, relative_links_limit: 5 });
  assert.deepEqual(await textsOf(id, document), ["Straße old wide", "Größe", "Größe zwei"]);
});

test("[VS8] where a page sends browsers by itself, and the areas of its pictures, are followed", async () => {
  const site = await newSite({
    "/": '<meta http-equiv="Refresh" content="0; URL=\'/de/\'"><p>Moving.</p>',
    "/de/": '<p>Willkommen.</p><map><area href="preise"></map>', "/de/preise": "<p>Preise.</p>",
  });
  const id = await newKnowledgebase(server);
  const document = await add(id, { url: `${site.url}/`, relative_links_limit: 5 });
  assert.deepEqual(await textsOf(id, document), ["Moving.", "Willkommen.", "Preise."]);
});
