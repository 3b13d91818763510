// Answers health checks while a start takes long, for example while a large database is migrated.
// Otherwise a supervisor that restarts what does not answer would kill the migration again and
// again. Called by serve.ts.
import { tlsFilesOf, type Config } from "#config/config.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { HttpServer } from "#http/server.ts";

export interface LongStart {
  /** Sets the reason for the wait, shown to clients that are refused. */
  says(reason: string): void;
  /** Frees the port. Idempotent. */
  end(): void;
}

/** A quick start never opens this server and loads nothing for it. */
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
      const error = `Try again later: ${reason}.`;
      // No route is loaded yet that would know its shape: all of them at once.
      throw new Fault(503, error, {
        retryAfterS: LIMITS.startRetryS, extra: { status: false, success: false, error },
      });
    });
    await server.listen(config.PARLEY_HOST, config.PARLEY_PORT);
  };
  const timer = system.after(LIMITS.startQuietMs, () => {
    // The real server will hit the same error, and report it.
    open().catch((error: unknown) => log.debug({ err: error }, "cannot answer requests while starting"));
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
