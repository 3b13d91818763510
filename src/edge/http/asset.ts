// Assets that do not change while the server runs: kept compressed, and sent with an ETag, so that
// a client that has one already does not load it again.
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { programFile } from "#core/program.ts";
import { accepts, type HeaderMap, type HttpRequest, type Reply } from "./exchange.ts";

export interface Asset {
  plain: Buffer;
  gzip: Buffer;
  etag: string;
}

export const etagOf = (contents: Buffer | string): string =>
  `"${hash("sha256", contents, "base64url").slice(0, 22)}"`;

const assetFrom = (plain: Buffer, gzip: Buffer): Asset => ({ plain, gzip, etag: etagOf(plain) });

export const assetOf = (contents: Uint8Array | string): Asset => {
  const plain = Buffer.from(contents);
  return assetFrom(plain, gzipSync(plain, { level: 9 }));
};

/** As compressed by `npm run build`, so that no request waits for compression. */
export function builtAsset(name: string): Asset {
  const file = programFile(`dist/pages/${name}`);
  return assetFrom(readFileSync(file), readFileSync(`${file}.gz`));
}

export function assetReply(
  { plain, gzip, etag }: Asset, contentType: string, http: HttpRequest, given: HeaderMap,
): Reply {
  const headers = { ...given, Vary: "Accept-Encoding", ETag: etag };
  if (http.headers["if-none-match"]?.includes(etag)) {
    return { status: 304, contentType, content: "", headers };
  }
  return accepts(http.headers["accept-encoding"], "gzip")
    ? { status: 200, contentType, content: gzip, headers: { ...headers, "Content-Encoding": "gzip" } }
    : { status: 200, contentType, content: plain, headers };
}
