// Threads that talk to tools' endpoints: a slow or hostile one never occupies the main loop. Made
// by app/tools.ts for calls of tools, trials and Cal.com.
import { Piscina } from "piscina";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import type { SendToEndpoint } from "./invocation.ts";

const WORKER_FILE = workerFile("invoke-tool");

interface ToolThreads {
  send: SendToEndpoint;
  /** Idempotent. */
  close(): Promise<void>;
}

export function createToolThreads(
  { allowPrivateNetworks, log }: { allowPrivateNetworks: string[]; log: Logger },
): ToolThreads {
  let pool: Piscina | null = null;
  // Started by the first call: most servers never make one.
  const started = (): Piscina => {
    if (pool) return pool;
    pool = new Piscina({
      filename: WORKER_FILE,
      workerData: { allowPrivateNetworks },
      minThreads: 1,
      maxThreads: LIMITS.toolThreadsMax,
      concurrentTasksPerWorker: LIMITS.toolCallsPerThreadMax,
      maxQueue: LIMITS.toolCallsQueueMax,
      // An idle thread that waits by atomics stands still, and never hears that an endpoint closed
      // the connection its next request is written to.
      atomics: "disabled",
    });
    pool.on("error", (error) => log.error({ err: error }, "a tool thread failed"));
    return pool;
  };
  return {
    send: (request) => started().run(request, {
      signal: AbortSignal.timeout(request.totalMs + LIMITS.toolThreadGraceMs),
    }) as ReturnType<SendToEndpoint>,
    close: async () => pool?.destroy(),
  };
}
