// Threads that send requests to tools' endpoints, so that a slow or hostile one never blocks the
// main loop. Created by app/tools.ts for tool calls, trials and Cal.com.
import type { Piscina } from "piscina";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import { sharedMs, timeLimit } from "#core/system.ts";
import { createPlaces } from "#core/turns.ts";
import type { EndpointRequest, SendToEndpoint } from "./invocation.ts";

const WORKER_FILE = workerFile("invoke-tool");

/** `askedMs`: when, by `sharedMs`. A request may have waited for room in a thread since. */
export type ThreadRequest = EndpointRequest & { askedMs: number };

interface ToolThreads {
  send: SendToEndpoint;
  /** Idempotent. */
  close(): Promise<void>;
}

export function createToolThreads(
  { allowPrivateNetworks, threadsMax, log }:
  { allowPrivateNetworks: string[]; threadsMax: number; log: Logger },
): ToolThreads {
  let pool: Promise<Piscina> | null = null;
  const places = createPlaces(
    threadsMax * LIMITS.toolCallsPerThreadMax, LIMITS.toolCallsQueueMax);
  const start = async (): Promise<Piscina> => {
    const { Piscina } = await import("piscina");
    const threads = new Piscina({
      filename: WORKER_FILE,
      workerData: { allowPrivateNetworks },
      minThreads: 1,
      maxThreads: threadsMax,
      concurrentTasksPerWorker: LIMITS.toolCallsPerThreadMax,
      // An idle thread that waits by atomics blocks its event loop, and does not notice that an
      // endpoint closed the connection that its next request is written to.
      atomics: "disabled",
    });
    threads.on("error", (error) => log.error({ err: error }, "a tool thread failed"));
    return threads;
  };
  return {
    send: async (request) => {
      // Started by the first call: most servers never make one.
      const threads = await (pool ??= start());
      const { signal, cancel } = timeLimit(request.totalMs + LIMITS.toolThreadGraceMs);
      // Not given to Piscina, which runs one task at a time in a thread if it can be aborted.
      const late = new Promise<never>((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason as Error)));
      const asked: ThreadRequest = { ...request, askedMs: sharedMs() };
      const sent = places.take(
        asked.accountId, () => threads.run(asked) as ReturnType<SendToEndpoint>);
      return Promise.race([sent, late]).finally(cancel);
    },
    close: async () => (await pool)?.destroy(),
  };
}
