// Connects a call over Asterisk with our audio: a mixing bridge with the call's channel and one of
// chan_websocket, which opens the call's socket to us. Closing the room removes the bridge and the
// media channel, however far the set-up had got. One is made for every call that is answered.
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { wait, type System } from "#core/system.ts";
import { VENDOR, type Ari } from "./ari.ts";

const ROOM_LIMITS = {
  /** Time for the media channel to open its socket and enter the application. */
  mediaMs: 5000,
} as const;

interface RoomOptions {
  ari: Ari;
  callId: string;
  bridgeId: string;
  mediaId: string;
  /** Entry of websocket_client.conf. */
  client: string;
  /** The parameters that identify the call on the socket. */
  parameters: Record<string, string>;
  system: System;
  log: Logger;
}

export interface Room {
  /** Resolves when both are in the bridge. Rejects with a ProviderError on failure or `close`. */
  readonly ready: Promise<void>;
  mediaEntered(): void;
  /** Reports that the media channel is gone. */
  mediaLost(): void;
  /** Leaves nothing behind but the call's own channel. Idempotent; never rejects. */
  close(): Promise<void>;
}

const failure = (what: string): ProviderError =>
  new ProviderError(`${VENDOR}: ${what}`, { retryable: false });

export const callIsOver = (): ProviderError => failure("the call is over");

export function openRoom(options: RoomOptions): Room {
  const { ari, callId, bridgeId, mediaId, client, parameters, system, log } = options;
  const entered = Promise.withResolvers<void>();
  // The promise may reject before anybody awaits it.
  entered.promise.catch(() => undefined);
  const closed = new AbortController();
  const assertOpen = (): void => {
    if (closed.signal.aborted) throw callIsOver();
  };
  const bridge = async (): Promise<void> => {
    await ari.bridge(bridgeId);
    assertOpen();
    await ari.join(bridgeId, callId);
  };
  const media = async (): Promise<void> => {
    await ari.media({ channelId: mediaId, client, format: "slin16", variables: parameters });
    assertOpen();
    // The channel cannot be added to a bridge before it has entered the application.
    await Promise.race([entered.promise, late()]);
  };
  const late = async (): Promise<void> => {
    await wait(system, ROOM_LIMITS.mediaMs, closed.signal);
    throw failure("Asterisk opened no media channel: check the client in websocket_client.conf");
  };
  const setUp = async (): Promise<void> => {
    // Both must settle: requests in flight have to be done before they can be undone.
    const outcomes = await Promise.allSettled([bridge(), media()]);
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason as Error;
    assertOpen();
    await ari.join(bridgeId, mediaId);
    assertOpen();
  };
  const tearDown = async (): Promise<void> => {
    await ready.catch(() => undefined);
    const outcomes = await Promise.allSettled([ari.hangUp(mediaId), ari.dropBridge(bridgeId)]);
    for (const outcome of outcomes) {
      if (outcome.status === "fulfilled") continue;
      // The switchboard's next comparison finds and removes it.
      log.warn({ err: outcome.reason as unknown }, "could not remove the remains of a call at Asterisk");
    }
  };
  const ready = setUp();
  ready.catch(() => undefined);
  let closing: Promise<void> | null = null;
  return {
    ready,
    mediaEntered: entered.resolve,
    mediaLost: () =>
      entered.reject(failure("its media channel could not reach PARLEY's media socket")),
    close: () => {
      closed.abort();
      entered.reject(callIsOver());
      return closing ??= tearDown();
    },
  };
}
