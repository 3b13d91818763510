// Websites: the pages named, and a bounded number of links of the same site. robots.txt is obeyed,
// every hop of a redirect is judged anew, pages, bytes and time are counted.
import robotsParser, { type Robot } from "robots-parser";
import { LIMITS } from "#core/limits.ts";
import type { Outbound, OutboundReply } from "#outbound/request.ts";
import { BlockList, Unreadable } from "./blocks.ts";
import { readHtml } from "./html.ts";
import { decodeText } from "./text.ts";

export const USER_AGENT = "ParleyBot";
const PAGE_BYTES_MAX = 2 * 1024 * 1024;
const SITE_BYTES_MAX = 20 * 1024 * 1024;
/** The beginning of a longer file counts, as RFC 9309 wants. */
const ROBOTS_BYTES_MAX = 500 * 1024;
const PAGE_MS = 15_000;
const REDIRECTS_MAX = 5;
const QUEUE_MAX = 1000;
const READABLE = /^(text\/html|application\/xhtml\+xml|text\/plain)\b/i;

/** The package's types describe a default export its code does not have. */
const parseRobots = robotsParser as unknown as (url: string, text: string) => Robot;

const siteOf = (url: string): string => new URL(url).host.replace(/^www\./, "");

function canonical(link: string, base?: string): string | null {
  if (!URL.canParse(link, base)) return null;
  const url = new URL(link, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  url.hash = "";
  return url.href;
}

function reasonOf(reply: Exclude<OutboundReply, { kind: "reply" }>): string {
  if (reply.kind === "refused") return "The address is not allowed.";
  switch (reply.reason) {
    case "timeout":
      return "The page did not answer in time.";
    case "too_large":
      return "The page is too large to read.";
    case "unreachable":
      return "The page could not be reached.";
  }
}

interface Fetched {
  /** Where the page was in the end. */
  url: string;
  contentType: string;
  body: Buffer;
}

class Site {
  readonly #outbound: Outbound;
  readonly #robots = new Map<string, Robot | "forbidden">();
  readonly #deadline = AbortSignal.timeout(LIMITS.websiteReadMs);
  #bytesLeft = SITE_BYTES_MAX;

  constructor(outbound: Outbound) {
    this.#outbound = outbound;
  }

  get exhausted(): boolean {
    return this.#deadline.aborted || this.#bytesLeft <= 0;
  }

  /** Throws Unreadable. */
  async fetch(url: string, site: string): Promise<Fetched> {
    let current = url;
    for (let hop = 0; hop <= REDIRECTS_MAX; hop += 1) {
      if (siteOf(current) !== site) throw new Unreadable("The page redirects to another site.");
      if (!await this.#mayRead(current)) {
        throw new Unreadable("The site's robots.txt does not allow this page to be read.");
      }
      const reply = await this.#get(current, Math.min(PAGE_BYTES_MAX, this.#bytesLeft));
      if (reply.kind !== "reply") throw new Unreadable(reasonOf(reply));
      const { status, headers, body } = reply;
      this.#bytesLeft -= body.length;
      if (status >= 300 && status < 400) {
        const next = canonical(headers.location ?? "", current);
        if (!next) throw new Unreadable(`The page answered ${status}.`);
        current = next;
        continue;
      }
      if (status !== 200) throw new Unreadable(`The page answered ${status}.`);
      if (!/^(identity)?$/i.test(headers["content-encoding"]?.trim() ?? "")) {
        throw new Unreadable("The page came compressed, which is not read.");
      }
      return { url: current, contentType: headers["content-type"] ?? "text/html", body };
    }
    throw new Unreadable("The page redirects too often.");
  }

  async #get(url: string, bytesMax: number): Promise<OutboundReply> {
    try {
      return await this.#outbound.request({
        url, method: "GET", headers: { accept: "text/html, text/plain;q=0.8" },
        totalMs: PAGE_MS, bytesMax,
      }, this.#deadline);
    } catch (error) {
      if (this.#deadline.aborted) return { kind: "failed", reason: "timeout", sent: true };
      throw error;
    }
  }

  /** No rules (4xx) allow everything, an answer that fails (5xx, nothing) allows nothing. */
  async #mayRead(url: string): Promise<boolean> {
    const { origin } = new URL(url);
    let rules = this.#robots.get(origin);
    if (rules === undefined) {
      const address = `${origin}/robots.txt`;
      const reply = await this.#get(address, PAGE_BYTES_MAX);
      if (reply.kind !== "reply") throw new Unreadable(reasonOf(reply));
      const text = reply.status === 200 ? reply.body.toString("utf8", 0, ROBOTS_BYTES_MAX) : "";
      rules = reply.status >= 500 ? "forbidden" : parseRobots(address, text);
      this.#robots.set(origin, rules);
    }
    return rules !== "forbidden" && rules.isAllowed(url, USER_AGENT) !== false;
  }
}

/** Returns the links of the page. */
function addPage(list: BlockList, { url, contentType, body }: Fetched): string[] {
  if (!READABLE.test(contentType)) throw new Unreadable("The address is no readable page.");
  list.forgetHeadings();
  if (/^text\/plain/i.test(contentType)) {
    list.text(decodeText(body), { url });
    return [];
  }
  const charset = /charset=["']?([\w-]+)/i.exec(contentType)?.[1]
    ?? /<meta[^>]{0,200}charset=["']?([\w-]+)/i.exec(body.toString("latin1", 0, 2048))?.[1];
  const html = decoderOf(charset).decode(body);
  // A page's title is the heading above everything it says.
  const { title } = readHtml(html.slice(0, 64 * 1024).split(/<body/i)[0] ?? "");
  if (title !== "") list.heading(0, title);
  return readHtml(html, list, url).links;
}

function decoderOf(charset: string | undefined): InstanceType<typeof TextDecoder> {
  try {
    return new TextDecoder(charset ?? "utf-8");
  } catch (error) {
    if (error instanceof RangeError) return new TextDecoder("utf-8");
    throw error;
  }
}

export async function readWebsite(
  outbound: Outbound,
  { urls, follow }: { urls: string[]; follow: number },
): Promise<{ list: BlockList; pages: number }> {
  const site = new Site(outbound);
  const list = new BlockList();
  const named = urls.map((url) => canonical(url)).filter((url) => url !== null);
  const seen = new Set(named);
  const queue = named.map((url) => ({ url, isNamed: true }));
  /** Where pages were in the end: several addresses may lead to one. */
  const read = new Set<string>();
  let followed = 0;
  let pages = 0;
  let firstReason: string | null = null;
  for (let next = queue.shift(); next && !site.exhausted && !list.truncated; next = queue.shift()) {
    if (!next.isNamed && followed >= follow) break;
    if (!next.isNamed) followed += 1;
    try {
      const page = await site.fetch(next.url, siteOf(next.url));
      if (read.has(page.url)) continue;
      read.add(page.url);
      seen.add(page.url);
      const links = addPage(list, page);
      pages += 1;
      for (const link of follow > 0 ? links : []) {
        const url = canonical(link, page.url);
        if (!url || seen.has(url) || siteOf(url) !== siteOf(page.url)) continue;
        if (queue.length < QUEUE_MAX) queue.push({ url, isNamed: false });
        seen.add(url);
      }
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      firstReason ??= error.message;
    }
  }
  if (pages === 0) throw new Unreadable(firstReason ?? "There was no page to read.");
  return { list, pages };
}
