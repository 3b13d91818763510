// Answers at the port while a start takes long, as where a large database is brought up to date: to
// whoever asks whether the process lives, and starts it anew where nothing answers, it would end in
// the middle of that, again and again. Called by serve.ts.
import { tlsFilesOf, type Config } from "#config/config.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { HttpServer } from "#http/server.ts";

export interface LongStart {
  /** What the start is about, for whoever is refused meanwhile. */
  says(reason: string): void;
  /** The port is free. Idempotent. */
  end(): void;
}

/** A start that is over soon sees none of it, nor does it load anything for it. */
export function answerMeanwhile(
  { config, log, system }: { config: Config; log: Logger; system: System },
): LongStart {
  let reason = "the server is starting";
  let server: HttpServer | null = null;
  let isOver = false;
  const open = async (): Promise<void> => {
    const [{ createHttpServer }, { renderFault, toFault }, { mountHealth }] = await Promise.all([
      import("#http/server.ts"), import("#http/errors.ts"), import("#http/pages.ts"),
    ]);
    if (isOver) return;
    server = createHttpServer({
      tls: tlsFilesOf(config), trustedProxies: config.PARLEY_TRUSTED_PROXIES, uploadsMax: 0, log,
      every: (ms, run) => system.every(ms, run),
      newRequestId: () => system.uuid(),
      renderError: (error, request) => renderFault(toFault(error, log, request), "message"),
    });
    mountHealth(server, () => reason);
    server.fallback(() => {
      throw new Fault(503, `Try again later: ${reason}.`, { retryAfterS: LIMITS.startRetryS });
    });
    await server.listen(config.PARLEY_HOST, config.PARLEY_PORT);
  };
  const timer = system.after(LIMITS.startQuietMs, () => {
    // The server itself finds the same, and ends with it.
    open().catch((error: unknown) => log.debug({ err: error }, "no answers while this starts"));
  });
  return {
    says: (what) => void (reason = what),
    end: () => {
      isOver = true;
      timer.cancel();
      server?.stopListening();
      server?.close();
    },
  };
}
