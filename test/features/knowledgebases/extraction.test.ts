// Reading documents and websites in the extractor process: bounds, the rules of crawling, and what
// the process costs the server when it dies. Formats and bombs are in documents.test.ts.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import {
  createExtractor, type Extractor, type ExtractionResult,
} from "#features/knowledgebases/extraction.ts";
import { readHtml } from "#workers/documents/html.ts";
import { askUntil } from "#support/asking.ts";
import { docxAround, docxBomb, flow, makeDocx, makePdf } from "#support/documents/documents.ts";
import { assertLinear } from "#support/growth.ts";
import { testDataDir } from "#support/server.ts";

type FileType = "pdf" | "txt" | "docx";
type Extracted = Extract<ExtractionResult, { kind: "extracted" }>;
type SitePage =
  | string
  | { status?: number; headers?: Record<string, string>; body?: string | Buffer; delayMs?: number };

interface Website {
  url: string;
  /** Paths asked for, in order. */
  requests: string[];
  /** Resolves once so many requests have come. */
  asked(count: number): Promise<void>;
  /** Connections, whether or not a request came over them. */
  connections(): number;
  close(): Promise<void>;
}

const MIB = 1024 * 1024;
const log = createLogger("silent");
const system = createSystem();
const directory = testDataDir();
const started: (Extractor | Website)[] = [];
let files = 0;

function newExtractor(options: Partial<Parameters<typeof createExtractor>[0]> = {}): Extractor {
  const allowPrivateNetworks = ["127.0.0.0/8"];
  const extractor = createExtractor({ log, system, allowPrivateNetworks, ...options });
  started.push(extractor);
  return extractor;
}

const shared = newExtractor();
// The supervisor's timers and pipes keep nothing alive; a test that waits for it must.
const alive = setInterval(() => undefined, 1000);
after(async () => {
  clearInterval(alive);
  await Promise.all(started.map((one) => one.close()));
  await rm(directory, { recursive: true });
});

async function read(
  type: FileType, bytes: Buffer | string, extractor = shared,
): Promise<ExtractionResult> {
  files += 1;
  const path = join(directory, `${files}.${type}`);
  await writeFile(path, bytes);
  return extractor.extract({ type, path });
}

function extracted(result: ExtractionResult): Extracted {
  assert.equal(result.kind, "extracted", JSON.stringify(result).slice(0, 300));
  return result as Extracted;
}

const textOf = (result: ExtractionResult): string =>
  extracted(result).chunks.map(({ text }) => text).join("\n");

function assertFailed(result: ExtractionResult, reason: string | RegExp): void {
  assert.equal(result.kind, "failed", JSON.stringify(result).slice(0, 300));
  const given = (result as { reason: string }).reason;
  if (typeof reason === "string") assert.equal(given, reason);
  else assert.match(given, reason);
}

/** Serves `pages` by path; text is HTML, the rest 404. */
async function newSite(pages: Record<string, SitePage>): Promise<Website> {
  const requests: string[] = [];
  let connections = 0;
  const server = createServer((incoming, response) => {
    const path = incoming.url ?? "";
    requests.push(path);
    server.emit("asked");
    const found = pages[path] ?? { status: 404 };
    const page = typeof found === "string" ? { body: found } : found;
    const headers = { "content-type": "text/html; charset=utf-8", ...page.headers };
    const send = () => response.writeHead(page.status ?? 200, headers).end(page.body ?? "");
    setTimeout(send, page.delayMs ?? 0).unref();
  });
  server.on("connection", () => (connections += 1));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const site = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    asked: async (count: number) => {
      while (requests.length < count) await once(server, "asked");
    },
    connections: () => connections,
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  started.push(site);
  return site;
}

const crawl = (site: Website, follow = 0, extractor = shared): Promise<ExtractionResult> =>
  extractor.extract({ type: "website", urls: [`${site.url}/`], follow });

test("[EX8] a long document is cut at 2,000,000 characters or 500 pages, and says so", async () => {
  const long = extracted(await read("txt", "All work and no play. ".repeat(150_000)));
  assert.equal(long.truncated, true);
  assert.ok(long.chunks.reduce((sum, { text }) => sum + text.length, 0) <= 2_000_000);
  const pages = Array.from({ length: 502 }, (_, index) => flow([`This is page ${index + 1}.`]));
  const book = extracted(await read("pdf", makePdf(pages)));
  assert.equal(book.pages, 500);
  assert.equal(book.truncated, true);
  assert.match(book.chunks.at(-1)?.text ?? "", /This is page 500\.$/);
});

test("[EX9] a web page yields its readable text under its headings", async () => {
  const site = await newSite({
    "/": `<html><head><title>Acme &amp; Co</title><style>p{}</style></head><body>
      <nav>Menu</nav><h1>Rooms</h1><p>Every room<br>has a view.</p><p hidden>Hidden</p>
      <ul><li>Single</li><li>Double</li></ul><h2>Prices</h2>
      <table><tr><th>Room</th><th>Euro</th></tr>
      <tr><td>Single</td><td><b>80</b></td></tr></table>
      <script>var text = "<p>Script</p>";</script><aside>Advert</aside><footer>Imprint</footer>`,
  });
  const result = extracted(await crawl(site));
  assert.equal(result.pages, 1);
  assert.deepEqual(result.chunks, [
    { headings: ["Acme & Co", "Rooms"], text: "Every room\nhas a view.\n- Single\n- Double", page: null, url: `${site.url}/` },
    { headings: ["Acme & Co", "Rooms", "Prices"], text: "Room | Euro\nSingle | 80", page: null, url: `${site.url}/` },
  ]);
});

test("[EX10] links of the same site are followed breadth first, each once, up to the limit", async () => {
  const other = await newSite({ "/": "<p>Another site.</p>" });
  const page = (name: string, ...links: string[]): string =>
    `<p>Page ${name}.</p>${links.map((link) => `<a href="${link}"></a>`).join("")}`;
  const site = await newSite({
    "/": page("home", "/a#top", "a", "/b", "/c", `${other.url}/`, "mailto:x@y.example", "/file.pdf"),
    "/a": page("a", "/", "/d"), "/b": page("b", "/d"), "/c": page("c"), "/d": page("d"),
    "/file.pdf": { headers: { "content-type": "application/pdf" }, body: "%PDF-1.4" },
  });
  const alone = extracted(await crawl(site, 0));
  assert.equal(alone.pages, 1);
  assert.deepEqual(site.requests.splice(0), ["/robots.txt", "/"]);
  const two = extracted(await crawl(site, 2));
  assert.deepEqual(two.chunks.map(({ text }) => text), ["Page home.", "Page a.", "Page b."]);
  assert.deepEqual(site.requests.splice(0), ["/robots.txt", "/", "/a", "/b"]);
  const all = extracted(await crawl(site, 50));
  assert.equal(all.pages, 5);
  assert.deepEqual(site.requests.splice(0), ["/robots.txt", "/", "/a", "/b", "/c", "/file.pdf", "/d"]);
  assert.equal(other.connections(), 0);
});

test("[EX11] robots.txt is obeyed; a missing one allows, a failing one forbids", async () => {
  const forbidden = "The site's robots.txt does not allow this page to be read.";
  const pages = { "/": '<p>Home.</p><a href="/private"></a>', "/private": "<p>Private.</p>" };
  const plain = { "content-type": "text/plain" };
  const rules = (body: string): SitePage => ({ headers: plain, body });
  const some = await newSite({ ...pages, "/robots.txt": rules("User-agent: ParleyBot\nDisallow: /private") });
  assert.equal(textOf(await crawl(some, 5)), "Home.");
  assert.ok(!some.requests.includes("/private"));
  const none = await newSite({ ...pages, "/robots.txt": rules("User-agent: *\nDisallow: /") });
  assertFailed(await crawl(none), forbidden);
  assert.deepEqual(none.requests, ["/robots.txt"]);
  const failing = await newSite({ ...pages, "/robots.txt": { status: 503 } });
  assertFailed(await crawl(failing), forbidden);
  const missing = await newSite(pages);
  assert.equal(extracted(await crawl(missing, 5)).pages, 2);
});

test("[EX12] at most five redirects are followed, within the site", async () => {
  const to = (location: string): SitePage => ({ status: 302, headers: { location } });
  const other = await newSite({ "/": "<p>Elsewhere.</p>" });
  const hops = Object.fromEntries([1, 2, 3, 4, 5, 6].map((hop) => [`/hop${hop}`, to(`/hop${hop - 1}`)]));
  const site = await newSite({
    ...hops, "/hop0": "<p>Arrived.</p>", "/away": to(`${other.url}/`),
    "/robots.txt": { headers: { "content-type": "text/plain" }, body: "User-agent: *\nDisallow: /secret" },
    "/to-secret": to("/secret"), "/secret": "<p>Secret.</p>",
  });
  const visit = (...paths: string[]): Promise<ExtractionResult> =>
    shared.extract({ type: "website", urls: paths.map((path) => site.url + path), follow: 0 });
  const arrived = extracted(await visit("/hop5"));
  assert.equal(arrived.chunks[0]?.url, `${site.url}/hop0`);
  assertFailed(await visit("/hop6"), "The page redirects too often.");
  assertFailed(await visit("/away"), "The page redirects to another site.");
  assert.equal(other.connections(), 0);
  assertFailed(await visit("/to-secret"), /robots\.txt/);
  assert.ok(!site.requests.includes("/secret"));
});

test("[EX13] a page that fails is skipped; when all fail the first one's reason is given", async () => {
  const site = await newSite({
    "/": "<p>Good.</p>", "/forbidden": { status: 403 },
    "/big": "<p>x</p>".repeat(300_000),
    "/picture": { headers: { "content-type": "image/png" }, body: "png" },
    "/deep": `<p>x</p>${"<div>".repeat(600)}deep`,
  });
  const visit = (...urls: string[]): Promise<ExtractionResult> =>
    shared.extract({ type: "website", urls, follow: 0 });
  const reasons: Record<string, string> = {
    "/forbidden": "The page answered 403.",
    "/missing": "The page answered 404.",
    "/big": "The page is too large to read.",
    "/picture": "The address is not a readable page.",
    "/deep": "The page is nested too deeply to read.",
  };
  for (const [path, reason] of Object.entries(reasons)) {
    assertFailed(await visit(site.url + path), reason);
  }
  assertFailed(await visit(`${site.url}/missing`, `${site.url}/forbidden`), "The page answered 404.");
  assert.equal(textOf(await visit(`${site.url}/forbidden`, `${site.url}/`)), "Good.");
  const closed = await newSite({});
  await closed.close();
  assertFailed(await visit(`${closed.url}/`), "The page could not be reached: the connection was refused.");
});

test("[EX14] a private address is refused and never connected to, unless its network is allowed", async () => {
  const trap = await newSite({ "/": "<p>Inside.</p>" });
  const guarded = newExtractor({ allowPrivateNetworks: [] });
  const { port } = new URL(trap.url);
  for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "user@127.0.0.1"]) {
    const result = await guarded.extract({ type: "website", urls: [`http://${host}:${port}/`], follow: 0 });
    assertFailed(result, /^The page may not be called: .+ \(PARLEY_ALLOW_PRIVATE_NETWORKS\)\.$/);
  }
  assert.equal(trap.connections(), 0);
  assert.equal(textOf(await crawl(trap)), "Inside.");
  assert.ok(trap.connections() > 0);
});

test("[EX15] a killed process costs the document it was reading; the one beside it is still read", async () => {
  const slow = await newSite({ "/": { body: "<p>Slow.</p>", delayMs: 600 } });
  const extractor = newExtractor();
  /** Once so many more readings have asked for their page. */
  const killAfter = async (readings: number): Promise<void> => {
    const pages = (): number => slow.requests.filter((path) => path === "/").length;
    const goal = pages() + readings;
    while (pages() < goal) await slow.asked(slow.requests.length + 1);
    process.kill(extractor.pid()!, "SIGKILL");
  };
  const [lone] = await Promise.all([crawl(slow, 0, extractor), killAfter(1)]);
  assertFailed(lone, /\.$/);
  assert.equal(textOf(await read("txt", "Next.", extractor)), "Next.");
  const [one, other] = await Promise.all([
    crawl(slow, 0, extractor), crawl(slow, 0, extractor), killAfter(1),
  ]);
  const kinds = [one, other].map(({ kind }) => kind).sort();
  assert.deepEqual(kinds, ["extracted", "failed"]);
});

test("[EX16] the process has no secrets, is limited and ends with the server", {
  skip: process.platform !== "linux",
}, async () => {
  delete process.env.NODE_EXTRA_CA_CERTS;
  const extractor = newExtractor();
  await read("txt", "Hello.", extractor);
  const pid = extractor.pid()!;
  const environment = await readFile(`/proc/${pid}/environ`, "latin1");
  const names = environment.split("\0").map((entry) => entry.split("=")[0]);
  assert.deepEqual(names.filter((name) => name !== "" && !/^(PATH|NODE_CHANNEL_)/.test(name!)), []);
  if (existsSync("/usr/bin/prlimit")) {
    assert.match(await readFile(`/proc/${pid}/limits`, "latin1"), /Max data size +700000000 /);
  }
  const path = join(directory, `${files}.txt`);
  const script = `
    const { createExtractor } = await import("${join(import.meta.dirname, "../../../src/features/knowledgebases/extraction.ts")}");
    const { createSystem } = await import("${join(import.meta.dirname, "../../../src/base/core/system.ts")}");
    const extractor = createExtractor({ log: console, system: createSystem(), allowPrivateNetworks: [] });
    setInterval(() => undefined, 1000);
    await extractor.extract({ type: "txt", path: ${JSON.stringify(path)} });
    console.log(extractor.pid());`;
  const parent = spawn(process.execPath, ["--no-warnings", "--input-type=module", "-e", script]);
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const child = `/proc/${Number(line)}`;
  assert.ok(existsSync(child));
  parent.kill("SIGKILL");
  // It notices that its channel is closed.
  await askUntil(() => existsSync(child), (isThere) => !isThere);
});

test("[EX17] closing ends every reading with a result, and is idempotent", async () => {
  const hanging = await newSite({ "/": { body: "<p>Late.</p>", delayMs: 14_000 } });
  const extractor = newExtractor();
  const readings = [1, 2, 3].map(() => crawl(hanging, 0, extractor));
  await hanging.asked(1);
  await Promise.all([extractor.close(), extractor.close()]);
  for (const result of await Promise.all(readings)) assertFailed(result, "The server is stopping.");
  assertFailed(await crawl(hanging, 0, extractor), "The server is stopping.");
});

/** HTML that is costly to read, of about that length. */
const HOSTILE: Record<string, (size: number) => string> = {
  "/attributes": (size) =>
    `<p ${Array.from({ length: size / 16 }, (_, index) => `a${index}="${index}"`).join(" ")}>Attributes.</p>`,
  "/cells": (size) => `<table><tr>${"<td>c</td>".repeat(size / 10)}</tr></table>`,
  "/spaces": (size) => `<p>${" \n".repeat(size / 2)}.</p>`,
  "/nested": (size) => "<div>".repeat(size / 5),
  "/brackets": (size) => "<".repeat(size),
};

test("[EX18] hostile HTML takes time linear in its length", async () => {
  const site = await newSite(Object.fromEntries(Object.entries(HOSTILE)
    .map(([path, pageOf]) => [path, pageOf(1_900_000)])));
  for (const [path, expected] of Object.entries({
    "/attributes": /Attributes/, "/cells": /c \| c/, "/spaces": /^\.$/,
    "/nested": null, "/brackets": null,
  })) {
    const urls = [site.url + path];
    const result = await shared.extract({ type: "website", urls, follow: 0 });
    if (expected) assert.match(textOf(result), expected);
    await assertLinear(path, 400_000, (size) => {
      const page = HOSTILE[path]!(size);
      return path === "/nested" ? () => assert.throws(() => readHtml(page)) : () => readHtml(page);
    });
  }
});

/** The archive's directory and its files' own headers say one mebibyte. */
function lyingDocx(): Buffer {
  const bytes = docxBomb();
  let entry = bytes.indexOf("PK\x01\x02", 0, "latin1");
  for (; entry >= 0; entry = bytes.indexOf("PK\x01\x02", entry + 46, "latin1")) {
    if (bytes.readUInt32LE(entry + 24) <= MIB) continue;
    bytes.writeUInt32LE(MIB, entry + 24);
    bytes.writeUInt32LE(MIB, bytes.readUInt32LE(entry + 42) + 22);
  }
  return bytes;
}

/** Noise keeps the ratio of compression below every suspicion. */
function docxOfQuietParagraphs(): Buffer {
  const noise = Array.from({ length: 8000 }, (_, index) =>
    createHash("sha256").update(String(index)).digest("hex"));
  return docxAround(`<!-- ${noise.join("")} -->${"<w:p/>".repeat(1_000_000)}`);
}

test("[EX19] a DOCX that passes every size check costs one document at most", async () => {
  const honest = makeDocx([{ text: "Honest." }]);
  await read("docx", honest);
  for (const bytes of [lyingDocx(), docxOfQuietParagraphs()]) {
    const before = process.memoryUsage.rss();
    const [bomb, other] = await Promise.all([read("docx", bytes), read("docx", honest)]);
    // Not the look at sizes, which says "too large".
    assertFailed(bomb, /memory|too long|not a valid/);
    assert.equal(textOf(other), "Honest.");
    assert.ok(process.memoryUsage.rss() - before <= 50 * MIB);
  }
});

test("[EX20] a heading with nothing below it is text, an endless one is prose", async () => {
  const bare = extracted(await read("docx", makeDocx([
    { heading: "Hours" }, { heading: "Monday: 9 to 17", level: 2 },
    { heading: "Tuesday: closed", level: 2 }, { heading: "Address" },
  ])));
  assert.deepEqual(bare.chunks.map(({ headings, text }) => [...headings, text]), [
    ["Hours", "Monday: 9 to 17\nTuesday: closed"], ["Address"],
  ]);
  const site = await newSite({ "/": `<h1>Unclosed ${"<b>word </b>".repeat(1000)}the end.` });
  assert.match(textOf(await crawl(site)), /the end\.$/);
});

test("[EX21] a chunk has the page it is on", async () => {
  const pages = Array.from({ length: 5 }, (_, index) => flow([`This is page ${index + 1}.`]));
  const { chunks } = extracted(await read("pdf", makePdf(pages)));
  assert.deepEqual(chunks.map(({ page, text }) => `${page} ${text}`),
    [1, 2, 3, 4, 5].map((page) => `${page} This is page ${page}.`));
});

test("[EX22] [VS6] links in menus are followed, relative to a page's <base>, but menus are not read as text", async () => {
  const site = await newSite({
    "/": '<base href="/in/"><nav><a href="rooms">Menu</a></nav><p>Home.</p>',
    "/in/rooms": '<base href="/"><p>Rooms. <a href="in/one">One</a></p>', "/in/one": "<p>One.</p>",
  });
  assert.equal(textOf(await crawl(site, 5)), "Home.\nRooms. One\nOne.");
});

test("[EX23] the start of a long robots.txt is obeyed; compressed pages and repeats are not read", async () => {
  const rules = `User-agent: *\nDisallow: /private\n${"# padding\n".repeat(60_000)}`;
  const site = await newSite({
    "/": "<p>Home.</p>", "/private": "<p>Private.</p>",
    "/again": { status: 302, headers: { location: "/" } },
    "/packed": { headers: { "content-encoding": "gzip" }, body: Buffer.from([31, 139, 8, 0]) },
    "/robots.txt": { headers: { "content-type": "text/plain" }, body: rules },
  });
  const urls = ["/again", "/", "/private", "/packed"].map((path) => site.url + path);
  const result = extracted(await shared.extract({ type: "website", urls, follow: 0 }));
  assert.equal(result.pages, 1);
  assert.equal(textOf(result), "Home.");
  const packed = await shared.extract({ type: "website", urls: [`${site.url}/packed`], follow: 0 });
  assertFailed(packed, "The page was sent compressed, which is not supported.");
});

test("[EX24] an aborted reading rejects at once and frees its place for the next", async () => {
  const hanging = await newSite({ "/": { body: "<p>Late.</p>", delayMs: 14_000 } });
  const extractor = newExtractor({ documentsMax: 1 });
  const controller = new AbortController();
  const source = { type: "website" as const, urls: [`${hanging.url}/`], follow: 0 };
  const readings = [1, 2].map(() => extractor.extract(source, controller.signal));
  const settled = Promise.allSettled(readings);
  const next = read("txt", "Next.", extractor);
  await hanging.asked(1);
  const reader = extractor.pid()!;
  controller.abort(new Error("not wanted any more"));
  assert.ok((await settled).every(({ status }) => status === "rejected"));
  assert.equal(textOf(await next), "Next.");
  // It was ended, and did not come to its end.
  assert.throws(() => process.kill(reader, 0), { code: "ESRCH" });
  await assert.rejects(extractor.extract(source, controller.signal), /not wanted/);
});

test("[EX25] the process is replaced in time even if it is never idle", async () => {
  const extractor = newExtractor({ documentsMax: 1 });
  await read("txt", "Hello.", extractor);
  const first = extractor.pid();
  const path = join(directory, `${files}.txt`);
  const pids = new Set<number | null>();
  await Promise.all(Array.from({ length: LIMITS.extractorJobsMax + 10 }, async () => {
    assert.equal((await extractor.extract({ type: "txt", path })).kind, "extracted");
    pids.add(extractor.pid());
  }));
  assert.ok([...pids].some((pid) => pid !== null && pid !== first));
});

test("[EX26] a PDF or Word document is never read as text, whatever its name", async () => {
  const reason = "The file is not a text file.";
  assertFailed(await read("txt", makePdf([flow(["Some text."])])), reason);
  assertFailed(await read("txt", makeDocx([{ text: "x" }])), reason);
});
