// Sitemaps (sitemaps.org): a list of pages, or an index of such lists; also compressed ones. Used
// by website.ts, which fetches them.
import { gunzipSync } from "node:zlib";
import { Parser } from "htmlparser2";
import { Unreadable } from "./blocks.ts";

/** The most lists read for one website, including the index. */
export const SITEMAPS_MAX = 50;
export const SITEMAP_BYTES_MAX = 10 * 1024 * 1024;
const ADDRESS_CHARS_MAX = 2048;
const ADDRESSES_MAX = 50_000;
const GZIP = Buffer.from([0x1f, 0x8b]);

interface Sitemap {
  pages: string[];
  sitemaps: string[];
}

function unpacked(body: Buffer): Buffer {
  if (!body.subarray(0, GZIP.length).equals(GZIP)) return body;
  try {
    return gunzipSync(body, { maxOutputLength: SITEMAP_BYTES_MAX });
  } catch (error) {
    throw new Unreadable("The sitemap cannot be decompressed, or is too large.", { cause: error });
  }
}

/** Throws Unreadable if it is not a sitemap. */
export function readSitemap(body: Buffer): Sitemap {
  const found: Sitemap = { pages: [], sitemaps: [] };
  let list: string[] | null = null;
  let isKnown = false;
  let depth = 0;
  let address: string | null = null;
  const parser = new Parser({
    onopentag: (tag) => {
      depth += 1;
      const name = tag.slice(tag.lastIndexOf(":") + 1);
      if (depth === 1) isKnown = name === "urlset" || name === "sitemapindex";
      if (depth === 2) list = name === "sitemap" ? found.sitemaps : found.pages;
      // The <loc> of a page's image is deeper, and is not a page.
      if (depth === 3 && name === "loc") address = "";
    },
    ontext: (text) => {
      if (address !== null && address.length < ADDRESS_CHARS_MAX) address += text;
    },
    onclosetag: () => {
      depth -= 1;
      if (address === null) return;
      if (list && list.length < ADDRESSES_MAX) list.push(address.trim());
      address = null;
    },
  }, { xmlMode: true, decodeEntities: true });
  parser.write(unpacked(body).toString("utf8"));
  parser.end();
  if (!isKnown) throw new Unreadable("The address is not a sitemap.");
  return found;
}
