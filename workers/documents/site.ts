// Fetches a website's pages: robots.txt is obeyed unless the owner declares the site to be theirs,
// every hop of a redirect is checked again, pages, bytes and time are limited. Used by website.ts.
import robotsParser, { type Robot } from "robots-parser";
import { LIMITS } from "#core/limits.ts";
import { timeLimit } from "#core/system.ts";
import type { KnownPage } from "#features/knowledgebases/extraction.ts";
import type { WebsiteSource } from "#features/knowledgebases/knowledgebases.ts";
import type { Outbound, OutboundReply } from "#outbound/request.ts";
import { couldNotBeReached, mayNotBeCalled } from "#outbound/unreachable.ts";
import { Unreadable } from "./blocks.ts";
import { SITEMAP_BYTES_MAX } from "./sitemap.ts";

export const USER_AGENT = "ParleyBot";
const PAGE_BYTES_MAX = 2 * 1024 * 1024;
const SITE_BYTES_MAX = 20 * 1024 * 1024;
/** Only the beginning of a longer file is used, as RFC 9309 demands. */
const ROBOTS_BYTES_MAX = 500 * 1024;
const PAGE_MS = 15_000;
const REDIRECTS_MAX = 5;
const PAGE_ACCEPTED = "text/html, text/plain;q=0.8";
const SITEMAP_ACCEPTED = "application/xml, text/xml;q=0.9, */*;q=0.5";

/** The package's types describe a default export its code does not have. */
const parseRobots = robotsParser as unknown as (url: string, text: string) => Robot;

export const siteOf = (url: string): string => new URL(url).host.replace(/^www\./, "");

export function canonical(link: string, base?: string): string | null {
  if (!URL.canParse(link, base)) return null;
  const url = new URL(link, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  url.hash = "";
  return url.href;
}

/** The page is gone, so what was read of it before is dropped; other failures are temporary. */
export class Gone extends Unreadable {}

function reasonOf(reply: Exclude<OutboundReply, { kind: "reply" }>): string {
  if (reply.kind === "refused") return `${mayNotBeCalled("The page", reply.reason)}.`;
  switch (reply.reason) {
    case "timeout":
      return "The page did not answer in time.";
    case "too_large":
      return "The page is too large to read.";
    case "unreachable":
      return `${couldNotBeReached("The page", reply.why)}.`;
  }
}

export interface Fetched {
  /** The URL of the page after redirects. */
  url: string;
  contentType: string;
  etag: string | null;
  lastModified: string | null;
  /** Null: unchanged since the last reading. */
  body: Buffer | null;
}

export class Site {
  readonly #outbound: Outbound;
  readonly #known: ReadonlyMap<string, KnownPage>;
  readonly #obeysRobots: boolean;
  readonly #robots = new Map<string, Robot | "forbidden">();
  readonly #deadline: AbortSignal;
  #bytesLeft = SITE_BYTES_MAX;
  #sitemapBytesLeft = SITE_BYTES_MAX;

  constructor(
    outbound: Outbound, { sitemap, ignoreRobots }: WebsiteSource,
    known: ReadonlyMap<string, KnownPage>,
  ) {
    this.#outbound = outbound;
    this.#known = known;
    this.#obeysRobots = ignoreRobots !== true;
    this.#deadline = timeLimit(
      sitemap === undefined ? LIMITS.websiteReadMs : LIMITS.sitemapReadMs).signal;
  }

  get exhausted(): boolean {
    return this.#deadline.aborted || this.#bytesLeft <= 0;
  }

  fetchSitemap(url: string): Promise<Fetched> {
    return this.fetch(url, siteOf(url), true);
  }

  /** Redirects may not leave `site`. Throws Unreadable. */
  async fetch(url: string, site: string, isSitemap = false): Promise<Fetched> {
    let current = url;
    for (let hop = 0; hop <= REDIRECTS_MAX; hop += 1) {
      if (siteOf(current) !== site) throw new Gone("The page redirects to another site.");
      if (this.#obeysRobots && !await this.#mayRead(current)) {
        throw new Gone("The site's robots.txt does not allow this page to be read.");
      }
      const { status, headers, body } = await this.#page(current, isSitemap);
      if (status >= 300 && status < 400 && status !== 304) {
        const next = canonical(headers.location ?? "", current);
        if (!next) throw new Unreadable(`The page answered ${status}.`);
        current = next;
        continue;
      }
      const isKept = status === 304 && !isSitemap && this.#known.has(current);
      if (status === 404 || status === 410) throw new Gone(`The page answered ${status}.`);
      if (status !== 200 && !isKept) throw new Unreadable(`The page answered ${status}.`);
      if (!/^(identity)?$/i.test(headers["content-encoding"]?.trim() ?? "")) {
        throw new Unreadable("The page was sent compressed, which is not supported.");
      }
      return {
        url: current, contentType: headers["content-type"] ?? "text/html",
        etag: headers.etag ?? null, lastModified: headers["last-modified"] ?? null,
        body: isKept ? null : body,
      };
    }
    throw new Unreadable("The page redirects too often.");
  }

  async #page(
    url: string, isSitemap: boolean,
  ): Promise<Extract<OutboundReply, { kind: "reply" }>> {
    const bytesMax = isSitemap
      ? Math.min(SITEMAP_BYTES_MAX, this.#sitemapBytesLeft)
      : Math.min(PAGE_BYTES_MAX, this.#bytesLeft);
    const reply = await this.#get(url, bytesMax, isSitemap
      ? { accept: SITEMAP_ACCEPTED }
      : { accept: PAGE_ACCEPTED, ...this.#conditions(url) });
    if (reply.kind !== "reply") throw new Unreadable(reasonOf(reply));
    if (isSitemap) this.#sitemapBytesLeft -= reply.body.length;
    else this.#bytesLeft -= reply.body.length;
    return reply;
  }

  #conditions(url: string): Record<string, string> {
    const { etag = null, lastModified = null } = this.#known.get(url) ?? {};
    return {
      ...(etag === null ? {} : { "if-none-match": etag }),
      ...(lastModified === null ? {} : { "if-modified-since": lastModified }),
    };
  }

  async #get(
    url: string, bytesMax: number, headers: Record<string, string>,
  ): Promise<OutboundReply> {
    try {
      return await this.#outbound.request(
        { url, method: "GET", headers, totalMs: PAGE_MS, bytesMax }, this.#deadline);
    } catch (error) {
      if (this.#deadline.aborted) return { kind: "failed", reason: "timeout", sent: true };
      throw error;
    }
  }

  /** Follows redirects to other sites too, as RFC 9309 says; after too many there are no rules. */
  async #askRobots(
    url: string, redirectsLeft = REDIRECTS_MAX,
  ): Promise<Extract<OutboundReply, { kind: "reply" }>> {
    const reply = await this.#get(url, PAGE_BYTES_MAX, { accept: "text/plain" });
    if (reply.kind !== "reply") throw new Unreadable(reasonOf(reply));
    const { status, headers: { location = "" } } = reply;
    const next = status >= 300 && status < 400 ? canonical(location, url) : null;
    return next && redirectsLeft > 0 ? this.#askRobots(next, redirectsLeft - 1) : reply;
  }

  /** Without rules (4xx) all is allowed; if the request fails (5xx, no answer), nothing is. */
  async #mayRead(url: string): Promise<boolean> {
    const { origin } = new URL(url);
    let rules = this.#robots.get(origin);
    if (rules === undefined) {
      const address = `${origin}/robots.txt`;
      const reply = await this.#askRobots(address);
      const text = reply.status === 200 ? reply.body.toString("utf8", 0, ROBOTS_BYTES_MAX) : "";
      rules = reply.status >= 500 ? "forbidden" : parseRobots(address, text);
      this.#robots.set(origin, rules);
    }
    return rules !== "forbidden" && rules.isAllowed(url, USER_AGENT) !== false;
  }
}
