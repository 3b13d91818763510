// What a recording costs in a bucket, compared with the data folder: to store it, until its first
// sound, and to read all of it. Compared too with a bare client of the same bucket, which checks
// and streams nothing. The bucket is on this machine: its network is not in these figures.
import { AwsClient } from "aws4fetch";
import { randomFillSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import type { ByteRange, Files } from "#files/files.ts";
import { createFolderFiles } from "#files/folder.ts";
import { createS3Files } from "#files/s3.ts";
import { start, stop } from "./load.ts";
import { median, print, printResult } from "./report.ts";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 20);
/** Two sides at 16 kHz, 16 bits each. */
const BYTES_PER_S = 64_000;
const MINUTES = [1, 10];
/** The range that a browser requests first. */
const BEGINNING: ByteRange = { first: 0, last: 65_535 };
const PATH = "parley-files/bench";
const [accessKey, secretKey, region] = ["S3RVER", "S3RVER", "us-east-1"];

interface Place {
  put(name: string, localPath: string): Promise<void>;
  read(name: string, range?: ByteRange): Promise<unknown>;
}

const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
const system = createSystem();
const log = createLogger("error");
const bucket = await start("bucket.ts", [], {});
const endpoint = `http://127.0.0.1:${bucket.port}`;

const over = (files: Files): Place => ({
  put: files.put,
  read: async (name, range) => {
    const found = await files.read(name, range);
    for await (const _ of found?.body ?? []);
  },
});

function bare(): Place {
  const client = new AwsClient({
    accessKeyId: accessKey, secretAccessKey: secretKey, service: "s3", region, retries: 0,
  });
  const ask = async (name: string, request: RequestInit): Promise<unknown> => {
    const answer = await client.fetch(`${endpoint}/${PATH}/${name}`, request);
    if (!answer.ok) throw new Error(`the bucket answered ${answer.status}`);
    return answer.arrayBuffer();
  };
  return {
    put: async (name, localPath) =>
      void await ask(name, { method: "PUT", body: readFileSync(localPath) }),
    read: (name, range) =>
      ask(name, range ? { headers: { range: `bytes=${range.first}-${range.last}` } } : {}),
  };
}

const folder = createFolderFiles({ root: join(dataDir, "kept"), system, log });
const s3 = createS3Files({ endpoint, path: PATH, accessKey, secretKey, region, system, log });
const PLACES: Record<string, Place> = { folder: over(folder), bucket: over(s3), bare: bare() };

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await run();
  return performance.now() - startedMs;
}

type Measured = Record<"put" | "begin" | "read", number[]>;

/** The first round warms up. */
async function roundsOf(bytes: number): Promise<Record<string, Measured>> {
  const recording = join(dataDir, "recording.wav");
  writeFileSync(recording, randomFillSync(Buffer.alloc(bytes)));
  const seen: Record<string, Measured> = {};
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [place, { put, read }] of Object.entries(PLACES)) {
      const name = `recordings/${place}-${round}.wav`;
      const ms = {
        put: await timed(() => put(name, recording)),
        begin: await timed(() => read(name, BEGINNING)),
        read: await timed(() => read(name)),
      };
      if (round === 0) continue;
      const measured = (seen[place] ??= { put: [], begin: [], read: [] });
      for (const what of ["put", "begin", "read"] as const) measured[what].push(ms[what]);
    }
  }
  return seen;
}

const medians: Record<string, Record<string, number>> = {};
for (const minutes of MINUTES) {
  for (const [place, seen] of Object.entries(await roundsOf(minutes * 60 * BYTES_PER_S))) {
    const of = (values: number[]): number => Number(median(values).toFixed(2));
    const [put, begin, read] = [of(seen.put), of(seen.begin), of(seen.read)];
    medians[`${place}_${minutes}_min`] = { put_ms: put, begin_ms: begin, read_ms: read };
    print(`${minutes} min, ${place.padEnd(6)}  put ${put} ms   first 64 KiB ${begin} ms   all ${read} ms`);
  }
}
await s3.close();
await folder.close();
await stop(bucket);
rmSync(dataDir, { recursive: true, force: true });
printResult("files", { rounds: ROUNDS, medians });
