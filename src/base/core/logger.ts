// JSON lines on stdout: constant message, values as fields. Customer content only under `pii`.
import { pino, destination, type Logger as PinoLogger } from "pino";
import { LIMITS } from "./limits.ts";

export type Logger = Pick<PinoLogger, "debug" | "info" | "warn" | "error" | "fatal">;

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Writes synchronously, so that the last line before a crash is not lost. */
export function createLogger(level: LogLevel): Logger {
  let isStuck = false;
  const lines = destination({
    fd: 1, sync: true, maxLength: LIMITS.logWaitingBytesMax,
    // A full pipe is waited for only once, for a tenth of a second: its reader may have stopped.
    retryEAGAIN: () => {
      const wasStuck = isStuck;
      isStuck = true;
      return !wasStuck;
    },
  });
  lines.on("write", (bytes) => {
    if (bytes > 0) isStuck = false;
  });
  // While the disk or pipe is full or the terminal gone, lines wait until a later write succeeds.
  lines.on("error", () => undefined);
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ["authorization", "*.authorization", "pii"], remove: true },
    },
    // Without its `flushSync`, which never returns on a full disk and so would keep a defect alive.
    { write: (line) => void lines.write(line) },
  );
}
