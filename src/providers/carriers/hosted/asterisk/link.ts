// The connection over which Asterisk reports calls: we open it, and reconnect for ever with
// exponential backoff up to a bound when it is lost. Used by calls.ts.
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import { VendorSocket } from "#providers/speech/vendor-socket.ts";
import { VENDOR, type AriOptions } from "./ari.ts";
import { basicAuthorization } from "#providers/carriers/hosted/rest.ts";

export const ASTERISK_LINK_LIMITS = {
  /** The pause before the second attempt; each later pause is twice as long, up to `pauseMaxMs`. */
  pauseMs: 500,
  pauseMaxMs: 30_000,
  /** A connection that lasted this long was good: the next pause is `pauseMs` again. */
  goodMs: 10_000,
} as const;

export interface LinkOptions extends AriOptions {
  system: System;
  log: Logger;
  linkLimits?: Partial<Record<keyof typeof ASTERISK_LINK_LIMITS, number>>;
}

interface LinkHandlers {
  /** Events from while there was no connection are lost. */
  opened(): void;
  text(text: string): void;
}

export interface Link {
  readonly isOpen: boolean;
  open(handlers: LinkHandlers): void;
  /** Another server has taken over the application: closes the connection and retries later. */
  yield(): void;
  /** Idempotent; nothing is reported afterwards. */
  close(): void;
}

export function createLink(options: LinkOptions): Link {
  const { url, user, password, app, system, log } = options;
  const limits = { ...ASTERISK_LINK_LIMITS, ...options.linkLimits };
  const address = new URL(`${url.replace(/^http/i, "ws")}/ari/events`);
  address.search = new URLSearchParams({ app, subscribeAll: "false" }).toString();
  let socket: VendorSocket | null = null;
  let timer: Timer | null = null;
  let pauseMs = limits.pauseMs;
  let handlers: LinkHandlers | null = null;
  let isClosed = false;
  const again = (): void => {
    timer?.cancel();
    timer = system.after(pauseMs, open);
    pauseMs = Math.min(2 * pauseMs, limits.pauseMaxMs);
  };
  const open = (): void => {
    if (isClosed) return;
    let openedMs: number | null = null;
    socket = new VendorSocket({
      vendor: VENDOR, url: address, key: password, system,
      headers: { authorization: basicAuthorization(user, password) },
    }, {
      onOpen: () => {
        openedMs = system.monotonicMs();
        log.info({ app }, "connected to Asterisk");
        handlers?.opened();
      },
      onText: (text) => handlers?.text(text),
      onClose: (error) => {
        const lastedMs = openedMs === null ? 0 : system.monotonicMs() - openedMs;
        if (lastedMs >= limits.goodMs) pauseMs = limits.pauseMs;
        log.warn({ err: error, again_in_ms: pauseMs }, "no connection to Asterisk: its calls are unavailable");
        again();
      },
    });
  };
  return {
    get isOpen() {
      return socket?.isOpen === true;
    },
    open: (listener) => {
      handlers = listener;
      open();
    },
    yield: () => {
      log.error({ app }, "another server uses the same PARLEY_ASTERISK_APP: each server needs its own");
      socket?.close();
      // With the longest pause, because both servers take turns until somebody reads the log.
      pauseMs = limits.pauseMaxMs;
      again();
    },
    close: () => {
      isClosed = true;
      timer?.cancel();
      socket?.close();
    },
  };
}
