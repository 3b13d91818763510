// What this process may have open at a time (`ulimit -n`). A connection there is no file for can
// neither be taken nor be refused, and the system wakes the process for it without end: before the
// last files are gone, the server listens no more, until some are free. Called by app.ts.
import { closeSync, openSync, readFileSync, readdirSync } from "node:fs";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import type { HttpServer } from "#http/server.ts";

/** Kept, of all files, for databases, recordings and models while no connection is taken. */
const SHARE_KEPT = 0.05;

/** Null where the system does not say. */
function openFilesMax(): number | null {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? NaN) || null;
  } catch {
    // A system without it.
    return null;
  }
}

/** As many are open at least, for each gets the lowest number that is free. */
function openAtLeast(): number {
  try {
    // It is there in every sandbox, where /dev may be closed.
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

/** The timer of it. */
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
      log.error({ open_files_max: most }, "no connection is taken until some end: this process has"
        + " nearly all files open that it may have; raise `ulimit -n`, or LimitNOFILE of its service");
    }
  };
  return system.every(LIMITS.openFilesLookMs, look);
}
