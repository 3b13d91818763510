// Watches the limit of open files (`ulimit -n`). A connection for which no descriptor is left can
// be neither accepted nor refused, and the system wakes the process for it endlessly: before the
// last ones are used up, the server stops listening until some are free. Called by app.ts.
import { closeSync, openSync, readFileSync, readdirSync } from "node:fs";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import type { HttpServer } from "#http/server.ts";

/** The share of descriptors that connections may not use: for databases, recordings and models. */
const SHARE_KEPT = 0.05;

/** Null where the system does not tell. */
function openFilesMax(): number | null {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? NaN) || null;
  } catch {
    // The system has no such file.
    return null;
  }
}

/** The least number of open files: a new descriptor gets the lowest free number. */
function openAtLeast(): number {
  try {
    // The root exists in every sandbox, where /dev may be closed.
    const descriptor = openSync("/", "r");
    closeSync(descriptor);
    return descriptor;
  } catch (error) {
    return /^E[MN]FILE$/.test((error as NodeJS.ErrnoException).code ?? "") ? Infinity : 0;
  }
}

function openNow(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return Infinity;
  }
}

interface OpenFilesOptions {
  server: Pick<HttpServer, "isListening" | "stopListening" | "listenAgain">;
  system: System;
  log: Logger;
}

/** Returns the timer that checks the limit. */
export function watchOpenFiles({ server, system, log }: OpenFilesOptions): Timer {
  const most = openFilesMax();
  if (most === null) return { cancel: () => undefined };
  const kept = Math.ceil(most * SHARE_KEPT);
  let isShort = false;
  let saidMs = -Infinity;
  const look = (): void => {
    if (isShort) {
      if (openNow() < most - 2 * kept && server.listenAgain()) isShort = false;
    } else if (server.isListening() && openAtLeast() >= most - kept) {
      isShort = true;
      server.stopListening();
      const nowMs = system.monotonicMs();
      if (nowMs - saidMs < LIMITS.openFilesSaidMs) return;
      saidMs = nowMs;
      log.error({ open_files_max: most }, "new connections are refused until others end: this"
        + " process has nearly reached its limit of open files; raise `ulimit -n`, or LimitNOFILE of its"
        + " service");
    }
  };
  return system.every(LIMITS.openFilesLookMs, look);
}
