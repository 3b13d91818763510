// Files in a bucket of any S3-compatible server: one PUT, GET or DELETE each, signed by aws4fetch.
// A PUT states the SHA-256 of its body, so that a bucket stores the whole file or nothing. Loaded
// by app/files.ts where PARLEY_FILES_URL names a bucket.
import { AwsV4Signer } from "aws4fetch";
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Fault } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { isoMicros, timeLimit, type System } from "#core/system.ts";
import { connecting } from "#outbound/connect.ts";
import { Agent, request } from "#outbound/undici.ts";
import { assertFileName, within, type ByteRange, type FileContent, type Files } from "./files.ts";

interface S3FilesOptions {
  /** For example `https://s3.example.com`. */
  endpoint: string;
  /** The bucket and, where there is one, a folder in it. */
  path: string;
  accessKey: string;
  secretKey: string;
  region: string;
  system: System;
  log: Logger;
}

const CONNECTIONS_MAX = 32;
const CONNECT_MS = 5000;
/** Longest wait for the first byte of a response, and between its pieces. */
const ANSWER_MS = 30_000;
/** A slower upload is aborted. */
const UPLOAD_BYTES_PER_S_MIN = 50_000;
const ATTEMPTS_MAX = 2;
const ERROR_BODY_BYTES_MAX = 4096;
const RETRY_AFTER_S = 30;
/** The SHA-256 of nothing. */
const NO_BODY = createHash("sha256").digest("hex");

type Method = "PUT" | "GET" | "HEAD" | "DELETE";

interface Asked {
  method: Method;
  name: string;
  range?: ByteRange | undefined;
  upload?: { path: string; bytes: number; sha256: string };
}

type Answer = Awaited<ReturnType<typeof request>>;

/** The bucket answered, but not with success. */
class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string) {
    super(`the bucket answered ${status}${code === "" ? "" : ` ${code}`}`);
    this.status = status;
    this.code = code;
  }
}

const mayPass = (error: unknown): boolean =>
  !(error instanceof Refusal) || error.status >= 500 || error.status === 429;

async function codeIn({ body }: Answer): Promise<string> {
  let text = "";
  for await (const piece of body) {
    text += String(piece);
    if (text.length > ERROR_BODY_BYTES_MAX) break;
  }
  return /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? "";
}

async function digestOf(path: string): Promise<{ bytes: number; sha256: string }> {
  const { size: bytes } = await stat(path);
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
  return { bytes, sha256: hash.digest("hex") };
}

/** Asks once; throws a Refusal for every answer but success. */
function createAsk({ endpoint, path, region, system, ...keys }: S3FilesOptions, agent: Agent) {
  const cache = new Map<string, ArrayBuffer>();
  return async ({ method, name, range, upload }: Asked): Promise<Answer> => {
    const signed = await new AwsV4Signer({
      method, url: `${endpoint}/${path}/${name}`, service: "s3", region, cache,
      datetime: isoMicros(system.now()).replaceAll(/[-:]|\.\d+/g, ""),
      accessKeyId: keys.accessKey, secretAccessKey: keys.secretKey,
      headers: {
        "x-amz-content-sha256": upload?.sha256 ?? NO_BODY,
        ...(range ? { range: `bytes=${range.first}-${range.last}` } : {}),
      },
    }).sign();
    const uploadMs = Math.ceil(((upload?.bytes ?? 0) / UPLOAD_BYTES_PER_S_MIN) * 1000);
    const answer = await request(signed.url, {
      dispatcher: agent, method,
      headers: {
        ...Object.fromEntries(signed.headers),
        ...(upload ? { "content-length": String(upload.bytes) } : {}),
      },
      ...(upload
        ? { body: createReadStream(upload.path), signal: timeLimit(ANSWER_MS + uploadMs).signal }
        : {}),
    });
    if (answer.statusCode >= 200 && answer.statusCode < 300) return answer;
    throw new Refusal(answer.statusCode, await codeIn(answer));
  };
}

/** Retries errors that may pass; throws a Refusal, or Fault 503. */
function createPatientAsk(options: S3FilesOptions, agent: Agent) {
  const { log } = options;
  const ask = createAsk(options, agent);
  const isExpected = (error: unknown, expected: readonly number[]): boolean =>
    error instanceof Refusal && expected.includes(error.status) && error.code !== "NoSuchBucket";
  return async (asked: Asked, ...expected: number[]): Promise<Answer | Refusal> => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await ask(asked);
      } catch (error) {
        if (isExpected(error, expected)) return error as Refusal;
        // Retried at once: a kept-alive connection may have been dropped by the other end.
        if (attempt < ATTEMPTS_MAX && mayPass(error)) continue;
        log.error({ err: error, file: asked.name, method: asked.method }, "the bucket failed");
        throw new Fault(503, "Files cannot be reached at the moment.", {
          retryAfterS: RETRY_AFTER_S, cause: error,
        });
      }
    }
  };
}

function contentOf({ headers, body }: Answer): FileContent {
  const total = /\/(\d+)$/.exec(String(headers["content-range"] ?? ""))?.[1];
  return { bytes: Number(total ?? headers["content-length"]), body };
}

export function createS3Files(options: S3FilesOptions): Files {
  const agent = new Agent({
    connections: CONNECTIONS_MAX, connect: connecting({ timeout: CONNECT_MS }),
    headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS,
  });
  const patiently = createPatientAsk(options, agent);
  const ask: typeof patiently = (asked, ...expected) => {
    assertFileName(asked.name);
    return patiently(asked, ...expected);
  };
  const lengthOf = async (name: string): Promise<number | null> => {
    const head = await ask({ method: "HEAD", name }, 404);
    if (head instanceof Refusal) return null;
    await head.body.dump();
    return contentOf(head).bytes;
  };
  const read = async (name: string, range?: ByteRange): Promise<FileContent | null> => {
    if (range && range.first < 0) {
      // Not every server supports ranges that count from the end.
      const bytes = await lengthOf(name);
      return bytes === null ? null : read(name, within(range, bytes));
    }
    const answer = await ask({ method: "GET", name, range }, 404, 416);
    if (!(answer instanceof Refusal)) return contentOf(answer);
    if (answer.status === 404) return null;
    // Not every server states the file's length in its 416.
    const bytes = await lengthOf(name);
    return bytes === null ? null : { bytes, body: Readable.from([]) };
  };
  let closing: Promise<void> | null = null;
  return {
    place: `${options.endpoint}/${options.path}`,
    put: async (name, localPath) => {
      const upload = { path: localPath, ...await digestOf(localPath) };
      const answer = await ask({ method: "PUT", name, upload });
      if (!(answer instanceof Refusal)) await answer.body.dump();
    },
    fetch: async (name, localPath) => {
      const found = await read(name);
      if (!found) return false;
      const partial = `${localPath}.part`;
      try {
        await pipeline(found.body, createWriteStream(partial, { mode: 0o600 }));
        await rename(partial, localPath);
      } catch (error) {
        await rm(partial, { force: true });
        throw new Fault(503, "Files cannot be reached at the moment.", {
          retryAfterS: RETRY_AFTER_S, cause: error,
        });
      }
      return true;
    },
    read,
    remove: async (name) => {
      const answer = await ask({ method: "DELETE", name }, 404);
      if (!(answer instanceof Refusal)) await answer.body.dump();
    },
    close: () => (closing ??= agent.destroy()),
  };
}
