// The server, from its parts to its end: what it is made of, what it does by the clock, how it
// starts and how it stops. Called by serve.ts, the command line and the tests.
import { createNotices, type Notices } from "#cluster/notices.ts";
import { tlsFilesOf } from "#config/config.ts";
import { LIMITS } from "#core/limits.ts";
import { DAY_MICROS, nextTurn, wait, type Timer } from "#core/system.ts";
import { renderFault, toFault } from "#http/errors.ts";
import { listeningOrigin } from "#http/origins.ts";
import { createHttpServer } from "#http/server.ts";
import { openConfigured } from "#storage/engines/open.ts";
import type { Storage } from "#storage/storage.ts";
import { openFiles } from "./files.ts";
import { createFeatures, type AppOptions, type Features } from "./features.ts";
import { createHostedLines } from "./hosted-carriers.ts";
import { mount, type Mounted, type Parts } from "./mount.ts";
import { openWire } from "./wire.ts";

/** Where the server is reached once it listens. */
export interface Reached {
  port: number;
  /** Null: no calls over SIP. */
  sipPort: number | null;
  /** The public address, else that of this machine. */
  url: string;
}

export interface App {
  features: Features;
  openApi(): object;
  /** Resolves to the real ports. */
  listen(): Promise<Reached>;
  /** Refuses new work, finishes what is under way, asks clients to come back. Idempotent. */
  close(): Promise<void>;
}

/** `opening`: the storage, where it has been opened before this was loaded. */
export async function createApp(
  options: AppOptions, opening: Promise<Storage> = openConfigured(options.config, "thread"),
): Promise<App> {
  const { config, log, system } = options;
  const [storage, hosted, places, wire] = await Promise.all([
    opening, createHostedLines(options), openFiles(options), openWire(options),
  ]);
  const features = createFeatures(options, { storage, places, hosted, wire });
  await features.conversations.recover();
  const lateCalls = await features.calls.recover();

  let isDraining = false;
  const server = createHttpServer({
    tls: tlsFilesOf(config),
    trustedProxies: config.PARLEY_TRUSTED_PROXIES,
    uploadsMax: config.PARLEY_UPLOADS_MAX,
    log,
    newRequestId: () => system.uuid(),
    renderError: (error, request) => renderFault(toFault(error, log, request), "message"),
  });
  const parts: Parts = {
    ...options, storage, places, features, server, draining: () => isDraining,
  };
  const mounted = mount(parts);
  const timers = startTimers(parts);
  const { events } = storage;
  const notices = createNotices({ bus: features.bus, events, wire, system, log });

  let stopping: Promise<void> | null = null;
  return {
    features,
    openApi: mounted.openApi,
    listen: () => start(parts, mounted, lateCalls),
    close: () => {
      isDraining = true;
      return (stopping ??= stop(parts, timers, notices).then(() => wire?.close()));
    },
  };
}

interface Timers {
  cancel(): void;
  /** Resolves once nothing of it is under way any more. */
  settled(): Promise<void>;
}

/** Work that comes round by the clock, each kind of it once at a time. */
function startTimers({ config, log, system, storage, places, features }: Parts): Timers {
  const { accounts, calls, conversations, delivery, phoneNumbers } = features;
  const rows = LIMITS.retentionRowsMax;
  const daysAgo = (days: number): number => system.now() - days * DAY_MICROS;
  const underWay = new Map<string, Promise<void>>();
  const every = (ms: number, what: string, run: () => Promise<unknown>): Timer =>
    system.every(ms, () => {
      if (storage.failure() || underWay.has(what)) return;
      const work = run().then(
        () => void underWay.delete(what),
        (error: unknown) => {
          underWay.delete(what);
          log.error({ err: error }, `${what} failed`);
        });
      underWay.set(what, work);
    });
  const timers = [
    every(LIMITS.inactivitySweepMs, "inactivity sweep", conversations.sweep),
    every(LIMITS.keyLastUsedFlushMs, "key use flush", accounts.flushKeyUses),
    every(LIMITS.retentionSweepMs, "event retention", () =>
      storage.trimLog(daysAgo(config.PARLEY_EVENT_RETENTION_DAYS), rows)),
    every(LIMITS.retentionSweepMs, "recording retention", () =>
      calls.expireRecordings(daysAgo(config.PARLEY_RECORDING_DAYS), rows)),
    every(LIMITS.retentionSweepMs, "webhook retention", () => delivery.webhooks.trim(rows)),
    every(LIMITS.numberSweepMs, "phone number sweep", phoneNumbers.sweep),
    every(LIMITS.filesRetryMs, "files that wait", () =>
      Promise.all([features.recordings.retry(), places.removals.retry()])),
    // The command line may have written what is to be sent, or evaluated.
    every(LIMITS.foreignCommitPollMs, "a look for others' work", delivery.look),
  ];
  return {
    cancel: () => timers.forEach((timer) => timer.cancel()),
    settled: async () => void await Promise.all(underWay.values()),
  };
}

/** Takes requests and calls, then up what an earlier process left. */
async function start(
  { config, log, places, features, server }: Parts, mounted: Mounted, lateCalls: number[],
): Promise<Reached> {
  // Before the first call: what is in scratch now belongs to none in progress.
  for (const work of [features.recordings.takeUp(), places.takeAlong()]) {
    work.catch((error: unknown) => log.error({ err: error }, "files of before are left as they are"));
  }
  await features.assistants.sealKeys();
  const port = await server.listen(config.PARLEY_HOST, config.PARLEY_PORT);
  const url = config.PARLEY_PUBLIC_URL
    ?? listeningOrigin(tlsFilesOf(config) !== null, config.PARLEY_HOST, port);
  const sip = await features.voice.listen();
  mounted.connectCarriers();
  await features.knowledge.processor.start();
  features.dialler.start();
  features.delivery.start(url);
  features.phoneNumbers.sweep().catch((error: unknown) =>
    log.error({ err: error }, "phone numbers could not be looked after"));
  features.voice.calling.finishLate(lateCalls).catch((error: unknown) =>
    log.error({ err: error }, "calls could not be finished"));
  return { port, sipPort: sip?.port ?? null, url };
}

async function stop(
  { system, storage, places, features, server }: Parts, timers: Timers, notices: Notices,
): Promise<void> {
  server.stopListening();
  timers.cancel();
  await features.dialler.close();
  await Promise.all([
    features.conversations.drain(LIMITS.drainRepliesMs), features.voice.close(),
  ]);
  await Promise.race([server.answered(), wait(system, LIMITS.answersMs)]);
  // What the last of them committed is published by the next tick; watchers leave after it.
  await nextTurn();
  features.streams.closeAll();
  // One turn of the event loop lets the last frames leave before the sockets are dropped.
  await nextTurn();
  if (!storage.failure()) await features.accounts.flushKeyUses();
  server.close();
  await Promise.all([
    features.closeToolThreads(), features.knowledge.close(), features.delivery.close(),
    features.phoneNumbers.close(), features.recordings.close(), timers.settled(), notices.close(),
  ]);
  features.others?.close();
  await Promise.all([features.modelCatalog.close(), places.close()]);
  await storage.close();
}
