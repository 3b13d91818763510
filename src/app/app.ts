// The server as a whole: its parts, its timers, how it starts and how it stops. Called by serve.ts,
// the command line and the tests.
import { hostname } from "node:os";
import { createNodes, type NewNode, type NodeWork } from "#cluster/nodes.ts";
import { createNotices, type Notices } from "#cluster/notices.ts";
import { PROTOCOL } from "#cluster/wire.ts";
import { tlsFilesOf, type Config } from "#config/config.ts";
import { StartFailure, StorageFailure } from "#core/faults.ts";
import { indexMessages } from "#features/conversations/desk/inbox.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { evenClock, nextTurn, wait, type Timer } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import { renderFault, toFault } from "#http/errors.ts";
import { listeningOrigin } from "#core/networks.ts";
import { createHttpServer } from "#http/server.ts";
import { openConfigured } from "#storage/engines/open.ts";
import type { Storage } from "#storage/storage.ts";
import { openFiles } from "./files.ts";
import { createFeatures, type AppOptions, type Features } from "./features.ts";
import { createHostedLines, loadCarriers } from "./hosted-carriers.ts";
import { mount, type Mounted, type Parts } from "./mount.ts";
import { leaveMark, nodeBefore } from "./node-mark.ts";
import { watchOpenFiles } from "./open-files.ts";
import { createRounds } from "./rounds.ts";
import { openWire } from "./wire.ts";

/** The addresses of the server once it listens. */
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
  /** Starts listening; resolves to the real ports. */
  listen(): Promise<Reached>;
  /** Resolves when other nodes have taken over what this process owned: it must end now. */
  lost: Promise<void>;
  /** From now on `/readyz` reports that the server stops; all else continues until `close`. */
  announceStop(): void;
  /** Refuses new work, finishes what is in progress, asks clients to reconnect. Idempotent. */
  close(): Promise<void>;
}

type Closable = { close(): unknown } | null;

/**
 * `opening`: the storage, if opening it began before this file was loaded. Rejects once everything
 * opened so far is closed, since it would keep the process alive.
 */
export async function createApp(
  options: AppOptions, opening: Promise<Storage> = openConfigured(options.config, "thread"),
): Promise<App> {
  const opened: Promise<Closable>[] = [opening];
  try {
    return await assemble(options, opening, opened);
  } catch (error) {
    const outcomes = await Promise.allSettled(opened);
    await Promise.allSettled(outcomes.map(async (outcome) =>
      outcome.status === "fulfilled" && await outcome.value?.close()));
    throw error;
  }
}

/** Adds to `opened` everything that must be closed if a later part fails. */
async function assemble(
  options: AppOptions, opening: Promise<Storage>, opened: Promise<Closable>[],
): Promise<App> {
  const { config, log, system } = options;
  const opensFiles = openFiles(options);
  opened.push(opensFiles);
  const [storage, places, carriers] = await Promise.all([
    opening, opensFiles, loadCarriers(options),
  ]);
  const wiring = openWire(options, storage.databaseId);
  opened.push(wiring);
  const wire = await wiring;
  const hosted = createHostedLines(carriers, { ...options, wire });
  const self = selfOf(config);
  const nodes = createNodes({
    nodeId: await join(storage, self, options), store: storage.nodes, wire, self, system, log,
  });
  const features = createFeatures(options, { storage, places, nodes, wire, hosted });
  const listening = Promise.withResolvers<void>();
  await nodes.start(workOf(features, { log, listening: listening.promise }));

  let isStarted = false;
  let isStopping = false;
  let isDraining = false;
  const server = createHttpServer({
    tls: tlsFilesOf(config),
    trustedProxies: config.PARLEY_TRUSTED_PROXIES,
    uploadsMax: config.PARLEY_UPLOADS_MAX,
    log,
    every: (intervalMs, run) => system.every(intervalMs, run),
    newRequestId: () => system.uuid(),
    renderError: (error, request) => renderFault(toFault(error, log, request), "message"),
  });
  const parts: Parts = {
    ...options, storage, places, nodes, wire, features, server,
    started: () => isStarted, stopping: () => isStopping, draining: () => isDraining,
  };
  const mounted = mount(parts);
  const timers = startTimers(parts);
  const { events } = storage;
  const notices = createNotices({ bus: features.bus, events, wire, system, log });

  const lost = new Promise<void>((resolve) => nodes.onLost(resolve));
  let stopping: Promise<void> | null = null;
  return {
    features,
    openApi: mounted.openApi,
    lost,
    listen: async () => {
      const reached = await start(parts, mounted);
      isStarted = true;
      listening.resolve();
      return reached;
    },
    announceStop: () => void (isStopping = true),
    close: () => {
      isStopping = isDraining = true;
      return (stopping ??= stop(parts, timers, notices).then(() => wire?.close()));
    },
  };
}

/** Holding the folder's lock proves its last node gone, so that node's lease is not awaited. */
async function join(
  storage: Storage, self: NewNode, { config, holdsFolder = false }: AppOptions,
): Promise<number> {
  if (storage.databaseId === null || !holdsFolder) return storage.join(self);
  const mark = { host: hostname(), databaseId: storage.databaseId };
  const before = nodeBefore(config.PARLEY_DATA_DIR, mark);
  const nodeId = await storage.join({ ...self, ...before === null ? {} : { before } });
  leaveMark(config.PARLEY_DATA_DIR, { ...mark, nodeId });
  return nodeId;
}

const selfOf = ({ PARLEY_NODE_URL: url }: Config): NewNode =>
  ({ name: `${hostname()}:${process.pid}`, url, protocol: PROTOCOL });

/** What to recover from nodes that are gone, by the feature that owned it. */
const workOf = (
  { conversations, calls, voice, knowledge, delivery, streams }: Features,
  { log, listening }: { log: Logger; listening: Promise<void> },
): NodeWork => ({
  calls: voice.calling.live,
  streams: () => streams.counts().sse + streams.counts().websocket,
  recover: async () => {
    await conversations.recover();
    await calls.recover();
    const takeUp = async (): Promise<void> => {
      await listening;
      await knowledge.processor.start();
      delivery.lookAll();
      voice.calling.lookForEnded();
    };
    takeUp().catch((error: unknown) => log.error({ err: error }, "could not take over the work of other nodes"));
  },
});

interface Timers {
  cancel(): void;
  /** Resolves once none of them is running. */
  settled(): Promise<void>;
}

function startTimers({ config, log, system, storage, nodes, features, server }: Parts): Timers {
  const { accounts, calls, conversations, delivery, phoneNumbers, voice } = features;
  const daysAgo = (days: number): number => system.now() - days * DAY_MICROS;
  const { every, settled } = createRounds({
    system, log, isHalted: () => storage.failure() !== null,
  });
  const forAll: typeof every = (ms, what, run) =>
    every(ms, what, async () => nodes.hasClock() && run());
  const isEven = evenClock(system);
  /** For work that removes or charges by the wall clock: skipped while the clock is not steady. */
  const byClock: typeof every = (ms, what, run) =>
    forAll(ms, what, async () => isEven() && run());
  let isOver = false;
  /** Removes all that is due, step by step: on a busy server one step is not enough. */
  const retain = (what: string, trim: (rows: number) => Promise<number>): Timer =>
    byClock(LIMITS.retentionSweepMs, what, async () => {
      while (await trim(LIMITS.retentionRowsMax) > LIMITS.retentionRowsMax / 2 && !isOver) {
        await wait(system, LIMITS.retentionPauseMs);
      }
    });
  const timers = [
    byClock(LIMITS.inactivitySweepMs, "inactivity sweep", conversations.sweep),
    byClock(LIMITS.deskSweepMs, "desk sweep", features.handover.sweep),
    every(LIMITS.historyKeptMs, "history cache sweep", async () => conversations.forgetQuiet()),
    retain("attachment sweep", features.attachments.sweep),
    forAll(LIMITS.messageIndexMs, "message index", () =>
      indexMessages(storage.inbox, system, () => isOver)),
    forAll(LIMITS.balanceMailSweepMs, "balance mails", features.balanceMails.sweep),
    forAll(LIMITS.costCountMs, "cost count", features.costs.sweep),
    every(LIMITS.keyLastUsedFlushMs, "key use flush", accounts.flushKeyUses),
    retain("event retention", (rows) =>
      storage.trimLog(daysAgo(config.PARLEY_EVENT_RETENTION_DAYS), rows)),
    retain("audit retention", (rows) =>
      features.people.audit.trim(daysAgo(config.PARLEY_AUDIT_DAYS), rows)),
    retain("kept answer retention", (rows) => storage.keptAnswers.trim(system.now(), rows)),
    every(LIMITS.foreignCommitPollMs, "audit log poll", features.people.audit.look),
    retain("recording retention", (rows) =>
      calls.expireRecordings(daysAgo(config.PARLEY_RECORDING_DAYS), rows)),
    retain("webhook retention", delivery.webhooks.trim),
    forAll(LIMITS.websiteLookMs, "website re-reading", features.knowledge.knowledgebases.readDue),
    every(LIMITS.diskRetryMs, "finishing of ended calls", async () => voice.calling.lookForEnded()),
    every(LIMITS.trunkLookMs, "SIP trunk poll", phoneNumbers.sipTrunks.look),
    byClock(LIMITS.numberSweepMs, "phone number sweep", phoneNumbers.sweep),
    every(LIMITS.filesRetryMs, "moving of finished files", features.recordings.retry),
    forAll(LIMITS.filesRetryMs, "file removal", features.removals.retry),
    // The command line, or another node, may have committed deliveries or evaluations that are due.
    every(LIMITS.foreignCommitPollMs, "webhook and evaluation poll", delivery.look),
    watchOpenFiles({ server, system, log }),
  ];
  return {
    cancel: () => {
      isOver = true;
      timers.forEach((timer) => timer.cancel());
    },
    settled,
  };
}

/** Takes requests and calls, then takes over what an earlier process left. */
async function start(
  { config, log, places, nodes, features, server }: Parts, mounted: Mounted,
): Promise<Reached> {
  // Before the first call: the files in scratch now belong to no call in progress.
  for (const work of [features.recordings.takeUp(), places.takeAlong(features.removals)]) {
    work.catch((error: unknown) => log.error({ err: error }, "could not move files left by an earlier start"));
  }
  await features.assistants.sealKeys();
  const port = await server.listen(config.PARLEY_HOST, config.PARLEY_PORT);
  const url = config.PARLEY_PUBLIC_URL
    ?? listeningOrigin(tlsFilesOf(config) !== null, config.PARLEY_HOST, port);
  const sip = await features.voice.listen().catch((error: unknown) => {
    const { PARLEY_SIP_HOST: host, PARLEY_SIP_PORT: sipPort } = config;
    if (sipPort === null) throw error;
    throw new StartFailure(`cannot listen for SIP on ${host}:${sipPort}: ${(error as Error).message};`
      + " see PARLEY_SIP_HOST and PARLEY_SIP_PORT");
  });
  await features.phoneNumbers.sipTrunks.look();
  mounted.connectCarriers();
  await features.knowledge.processor.start();
  features.dialler.start();
  features.delivery.start(url);
  if (nodes.hasClock()) {
    features.phoneNumbers.sweep().catch((error: unknown) =>
      log.error({ err: error }, "could not renew or release phone numbers"));
  }
  return { port, sipPort: sip?.port ?? null, url };
}

/** An unreachable database must not keep a node from ending: its lease runs out anyway. */
async function ifStored(log: Logger, work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof StorageFailure)) throw error;
    log.warn({ err: error }, "could not record that this node has stopped");
  }
}

async function stop(
  { config, log, system, storage, places, nodes, features, server }: Parts,
  timers: Timers, notices: Notices,
): Promise<void> {
  server.stopListening();
  timers.cancel();
  await Promise.all([ifStored(log, nodes.drain()), features.dialler.close()]);
  // The clock's holder evaluates chats: giving it up earlier would pay twice for those under way.
  const handsOver = features.delivery.evaluated().then(() => ifStored(log, nodes.giveClock()));
  if (!storage.failure()) await ifStored(log, features.phoneNumbers.sipTrunks.leave());
  await Promise.all([
    features.conversations.drain(config.PARLEY_DRAIN_SECONDS * 1000), features.voice.close(),
  ]);
  await Promise.race([server.answered(), wait(system, LIMITS.answersMs)]);
  // The last commits publish their events in the next tick; watchers are closed after that.
  await nextTurn();
  features.streams.closeAll();
  // One turn of the event loop lets the last frames leave before the sockets are dropped.
  await nextTurn();
  if (!storage.failure()) await ifStored(log, features.accounts.flushKeyUses());
  server.close();
  await Promise.all([
    features.closeToolThreads(), features.knowledge.close(), features.delivery.close(),
    features.phoneNumbers.close(), features.recordings.close(), timers.settled(), notices.close(),
    features.mailer.close(), handsOver,
  ]);
  features.others?.close();
  features.notifications.close();
  features.balanceMails.close();
  await features.push.close();
  await Promise.all([features.modelCatalog.close(), places.close(), features.topUps.close()]);
  if (!storage.failure()) await ifStored(log, nodes.leave());
  await storage.close();
}
