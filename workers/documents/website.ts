// Websites: the given pages, a limited number of links within the site, the pages of a sitemap. A
// page that has not changed since the last reading is not read again. Called by extract.ts.
import { hash } from "node:crypto";
import type { Chunk, KnownPage, SitePage } from "#features/knowledgebases/extraction.ts";
import type { WebsiteSource } from "#features/knowledgebases/knowledgebases.ts";
import type { Outbound } from "#outbound/request.ts";
import { BlockList, Unreadable } from "./blocks.ts";
import { readHtml } from "./html.ts";
import { canonical, Gone, Site, siteOf, type Fetched } from "./site.ts";
import { readSitemap, SITEMAPS_MAX } from "./sitemap.ts";
import { charsetOf, decodeText, decoderOf } from "./text.ts";

const QUEUE_MAX = 1000;
const LINKS_KEPT_MAX = 200;
const READABLE = /^(text\/html|application\/xhtml\+xml|text\/plain)\b/i;

/** Adds the page's text to `list`; returns the page's links. */
function addPage(list: BlockList, { url, contentType }: Fetched, body: Buffer): string[] {
  if (!READABLE.test(contentType)) throw new Gone("The address is not a readable page.");
  list.forgetHeadings();
  if (/^text\/plain/i.test(contentType)) {
    list.text(decodeText(body), { url });
    return [];
  }
  const charset = /charset=["']?([\w-]+)/i.exec(contentType)?.[1]
    ?? charsetOf(body);
  const html = charset ? decoderOf(charset, "utf-8").decode(body) : decodeText(body);
  // A page's title is the heading above all of its text.
  const { title } = readHtml(html.slice(0, 64 * 1024).split(/<body/i)[0] ?? "");
  if (title !== "") list.heading(0, title);
  const { links } = readHtml(html, list, url);
  list.forgetHeadings();
  return links;
}

const fingerprint = (blocks: readonly Chunk[]): string =>
  hash("sha256", JSON.stringify(blocks), "base64url");

/** The links to the page's own site, each once. */
function linksWithin(url: string, links: readonly string[]): string[] {
  const site = siteOf(url);
  const found = links.map((link) => canonical(link, url))
    .filter((link) => link !== null && siteOf(link) === site);
  return [...new Set(found as string[])].slice(0, LINKS_KEPT_MAX);
}

/** Collects pages in order: new contents if they have changed, else the known ones. */
class Pages {
  readonly list = new BlockList();
  readonly site: SitePage[] = [];
  readonly #known: ReadonlyMap<string, KnownPage>;
  readonly #follows: boolean;
  /** URLs after redirects: several addresses may lead to one page. */
  readonly #read = new Set<string>();

  constructor(known: ReadonlyMap<string, KnownPage>, follows: boolean) {
    this.#known = known;
    this.#follows = follows;
  }

  /** Null: the page was added before, or is unchanged but unknown. */
  add(page: Fetched): SitePage | null {
    if (this.#read.has(page.url)) return null;
    this.#read.add(page.url);
    const known = this.#known.get(page.url);
    if (page.body === null) return known ? this.#keep(known) : null;
    const first = this.list.blocks.length;
    const links = addPage(this.list, page, page.body);
    const blocks = this.list.blocks.slice(first);
    const read: SitePage = {
      url: page.url, etag: page.etag, lastModified: page.lastModified,
      hash: fingerprint(blocks), isKept: false,
      characters: blocks.reduce((sum, { text }) => sum + text.length, 0),
      links: this.#follows ? linksWithin(page.url, links) : [],
    };
    if (read.hash === known?.hash) {
      this.list.keepFirst(first);
      read.isKept = true;
    }
    this.site.push(read);
    return read;
  }

  /** Keeps the known contents of a page that does not answer now; false: none are known. */
  keepOld(url: string): boolean {
    const known = this.#known.get(url);
    if (!known || this.#read.has(url)) return false;
    this.#read.add(url);
    this.#keep(known);
    return true;
  }

  #keep(known: KnownPage): SitePage {
    this.list.count(known.characters);
    const page = { ...known, isKept: true };
    this.site.push(page);
    return page;
  }
}

/** The pages that a sitemap or its index lists, within its own site. Throws Unreadable. */
async function sitemapPages(site: Site, address: string, pagesMax: number): Promise<string[]> {
  const own = siteOf(address);
  const pages = new Set<string>();
  const seen = new Set([address]);
  const add = (links: string[], to: Set<string>, most: number): string[] =>
    links.flatMap((link) => {
      const url = canonical(link, address);
      if (!url || siteOf(url) !== own || to.has(url) || to.size >= most) return [];
      to.add(url);
      return [url];
    });
  const waiting = [address];
  let reason: string | null = null;
  for (let next = waiting.shift(); next && pages.size < pagesMax; next = waiting.shift()) {
    try {
      const { body } = await site.fetchSitemap(next);
      const found = readSitemap(body ?? Buffer.alloc(0));
      add(found.pages, pages, pagesMax);
      waiting.push(...add(found.sitemaps, seen, SITEMAPS_MAX));
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      reason ??= error.message;
    }
  }
  if (pages.size === 0) throw new Unreadable(`No page in the sitemap. ${reason ?? ""}`.trim());
  return [...pages];
}

/** Reads the given pages, then at most `follow` of the pages they link to. Throws Unreadable. */
async function crawl(
  site: Site, pages: Pages, named: readonly string[], follow: number,
): Promise<void> {
  const seen = new Set(named);
  const queue = [...seen].map((url) => ({ url, isNamed: true }));
  let followed = 0;
  let answered = 0;
  let firstReason: string | null = null;
  for (let next = queue.shift(); next && !pages.list.truncated; next = queue.shift()) {
    if (!next.isNamed && followed >= follow) break;
    if (!next.isNamed) followed += 1;
    if (site.exhausted) {
      pages.keepOld(next.url);
      continue;
    }
    try {
      const page = await site.fetch(next.url, siteOf(next.url));
      const read = pages.add(page);
      if (!read) continue;
      answered += 1;
      seen.add(page.url);
      for (const url of read.links) {
        if (seen.has(url)) continue;
        if (queue.length < QUEUE_MAX) queue.push({ url, isNamed: false });
        seen.add(url);
      }
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      if (!(error instanceof Gone)) pages.keepOld(next.url);
      firstReason ??= error.message;
    }
  }
  if (answered === 0) throw new Unreadable(firstReason ?? "There was no page to read.");
}

export async function readWebsite(
  outbound: Outbound, source: WebsiteSource & { known?: KnownPage[] },
): Promise<{ list: BlockList; pages: number; site: SitePage[] }> {
  const { urls, follow, sitemap, pagesMax = 0 } = source;
  const known = new Map((source.known ?? []).map((page) => [page.url, page]));
  const site = new Site(outbound, source, known);
  const pages = new Pages(known, follow > 0);
  const listed = sitemap === undefined ? [] : await sitemapPages(site, sitemap, pagesMax);
  const named = [...urls, ...listed].map((url) => canonical(url)).filter((url) => url !== null);
  await crawl(site, pages, named, follow);
  const { list, site: read } = pages;
  const last = read.at(-1);
  // A page that was cut off must be read again next time, when there may be room for it.
  if (list.truncated && last) Object.assign(last, { hash: "", etag: null, lastModified: null });
  return { list, pages: read.length, site: read };
}
