// Where a call over Asterisk and our sound meet: a mixing bridge, and in it the call's channel and
// one of chan_websocket, which opens the socket of the call here. Bridge and media channel are gone
// when the room is closed, however far it had been set up. Made for every call that is answered.
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { wait, type System } from "#core/system.ts";
import { VENDOR, type Ari } from "./ari.ts";

const ROOM_LIMITS = {
  /** Until the media channel has opened its socket and is in the application. */
  mediaMs: 5000,
} as const;

interface RoomOptions {
  ari: Ari;
  callId: string;
  bridgeId: string;
  mediaId: string;
  /** Entry of websocket_client.conf. */
  client: string;
  /** What the socket has to show. */
  parameters: Record<string, string>;
  system: System;
  log: Logger;
}

export interface Room {
  /** Both are in the bridge. Rejects with a ProviderError when that cannot be, or it was closed. */
  readonly ready: Promise<void>;
  mediaEntered(): void;
  /** Its channel is gone. */
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
  // Nobody may be waiting yet when it fails.
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
    // Before that it cannot be added to a bridge.
    await Promise.race([entered.promise, late()]);
  };
  const late = async (): Promise<void> => {
    await wait(system, ROOM_LIMITS.mediaMs, closed.signal);
    throw failure("the media channel does not come; is the client in websocket_client.conf right?");
  };
  const setUp = async (): Promise<void> => {
    // Settled, both: what is asked of Asterisk meanwhile has to be done before it is undone.
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
      // Found and removed by the next look around.
      log.warn({ err: outcome.reason as unknown }, "what is left of a call at Asterisk stays for now");
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
