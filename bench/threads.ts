// Loaded by start.ts into the server before its own program: reports the heap size of each thread.
import { createRequire, syncBuiltinESMExports } from "node:module";
import { basename } from "node:path";
import { getHeapStatistics } from "node:v8";
import type { Worker } from "node:worker_threads";

/** Resident MB, keyed by the thread's file; `main` is the first thread. */
export type Heaps = Partial<Record<string, number>>;

const workers = new Map<string, Worker>();
const threads = createRequire(import.meta.url)("node:worker_threads") as { Worker: typeof Worker };
threads.Worker = class extends threads.Worker {
  constructor(...given: ConstructorParameters<typeof Worker>) {
    super(...given);
    const name = basename(String(given[0])).split(".")[0] ?? "";
    this.once("online", () => workers.set(name, this));
    this.once("exit", () => workers.delete(name));
  }
};
syncBuiltinESMExports();

const residentMb = ({ total_physical_size: bytes }: { total_physical_size: number }): number =>
  bytes / 2 ** 20;

async function heaps(): Promise<Heaps> {
  const sizes: Heaps = { main: residentMb(getHeapStatistics()) };
  for (const [name, worker] of workers) {
    sizes[name] = residentMb(await worker.getHeapStatistics());
  }
  return sizes;
}

process.on("message", () => void heaps().then((sizes) => process.send?.(sizes)));
process.channel?.unref();
