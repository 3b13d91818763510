// Connections to a vendor that speaks, one for each utterance, and one more that is ready for the
// next. Used by the adaptors that speak over a WebSocket.
import type { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import { VendorSocket, type VendorSocketLimits } from "./vendor-socket.ts";

/** How long a connection is kept for the next utterance. */
export const SPARE_MS = 60_000;
/** Connections kept, one for each voice, rate and language. */
export const SPARES_MAX = 8;

interface LineHandlers {
  onOpen(): void;
  onText(text: string): void;
  onClose(error: ProviderError): void;
}

interface Line {
  socket: VendorSocket;
  /** Null while no utterance uses it. */
  handlers: LineHandlers | null;
}

interface LinesOptions {
  vendor: string;
  headers: Record<string, string>;
  key: string | null;
  limits: Partial<VendorSocketLimits>;
  system: System;
  log: Logger;
}

export interface Lines {
  /** A connection, open or being opened; `isSpare`: it was there before. */
  take(url: URL, handlers: LineHandlers): { socket: VendorSocket; isSpare: boolean };
  /** Has one ready for the next `take`. */
  prepare(url: URL): void;
}

export function createLines(options: LinesOptions): Lines {
  const { log, system } = options;
  const spares = new Map<string, { line: Line; expiry: Timer }>();
  const connect = (url: URL, handlers: LineHandlers | null): Line => {
    const line: Line = {
      handlers,
      socket: new VendorSocket({ ...options, url }, {
        onOpen: () => line.handlers?.onOpen(),
        onText: (text) => line.handlers?.onText(text),
        onClose: (error) => {
          if (line.handlers) return line.handlers.onClose(error);
          log.debug({ err: error }, "lost the spare connection for the next utterance");
          drop(url.href);
        },
      }),
    };
    return line;
  };
  const drop = (href: string): Line | null => {
    const spare = spares.get(href);
    spares.delete(href);
    spare?.expiry.cancel();
    return spare?.line ?? null;
  };
  return {
    take: (url, handlers) => {
      const spare = drop(url.href);
      if (!spare) return { socket: connect(url, handlers).socket, isSpare: false };
      spare.handlers = handlers;
      return { socket: spare.socket, isSpare: true };
    },
    prepare: (url) => {
      if (spares.has(url.href) || spares.size >= SPARES_MAX) return;
      const expiry = system.after(SPARE_MS, () => drop(url.href)?.socket.close());
      spares.set(url.href, { line: connect(url, null), expiry });
    },
  };
}
