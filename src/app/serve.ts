// Runs the server from reading the configuration to the last signal. Called by main.ts and cli.ts.
import { setFlagsFromString } from "node:v8";
import type { App, Reached } from "./app.ts";
import { EXIT_CONFIG, readConfig, type Config } from "#config/config.ts";
import { COMMAND } from "#core/command.ts";
import { MisconfiguredStart, StartFailure } from "#core/faults.ts";
import { heedHangUp } from "#core/hang-up.ts";
import { LIMITS } from "#core/limits.ts";
import { createLogger, type Logger } from "#core/logger.ts";
import { isLoopback } from "#core/networks.ts";
import { RUNS_FROM } from "#core/program.ts";
import { createSystem, keepAwake, wait, type System } from "#core/system.ts";
import { printDemo, seedDemo, type Demo } from "./demo.ts";
import { answerMeanwhile, type LongStart } from "./starting.ts";
import { lockDataDir } from "#storage/engines/sqlite/database.ts";
import { openConfigured } from "#storage/engines/open.ts";

/** Codes from sysexits.h, which service managers know. */
const EXIT_USAGE = 64;
const EXIT_UNAVAILABLE = 69;
/** Other nodes have taken over: the service manager should start the server again. */
const EXIT_LOST = 75;

/**
 * How much each thread's heap grows before garbage is collected. By default V8 lets it grow by
 * more: 46 MB under load (`bench messages`), with no measurable gain in speed.
 */
const HEAP_GROWS_PERCENT = 100;
/**
 * V8 optimizes a function after this many calls. Its default of 3,000 would leave a server with few
 * visitors slow all day: with one client a reply cost a sixth more CPU. Set once the server
 * listens, because what startup calls that often is not called again.
 */
const OPTIMIZED_AFTER_CALLS = 30;

/** The first signal asks to stop, the second to stop waiting. */
interface Signals {
  first: Promise<void>;
  second: Promise<void>;
  /** Whether the first signal has come. */
  hasCome(): boolean;
}

function tell(lines: string[]): void {
  for (const line of lines) process.stderr.write(`parley: ${line}\n`);
}

/** Resolves to the exit code once the server has stopped. */
export async function serve(argv: string[]): Promise<number> {
  if (argv.length > 0) {
    tell([`the server takes no arguments (${argv.join(" ")}): it is configured by environment`
      + " variables, which `parley settings` lists"]);
    return EXIT_USAGE;
  }
  outliveOutput();
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWS_PERCENT}`);
  const outcome = readConfig();
  for (const warning of outcome.warnings) tell([warning]);
  if (outcome.kind === "invalid") {
    tell(outcome.problems);
    return EXIT_CONFIG;
  }
  const { config } = outcome;
  const log = createLogger(config.PARLEY_LOG_LEVEL);
  const system = createSystem();
  const lock = takeDataDir(config.PARLEY_DATA_DIR);
  if (!lock) return EXIT_UNAVAILABLE;
  dieOnDefects(log);
  const signals = listenForSignals(system);
  const waitMs = longestStopMs(config);
  let isUp = false;
  const late = signals.first.then(() => wait(system, waitMs));
  void Promise.race([late, signals.second]).then(() => isUp || leaveStart(log));
  const awake = keepAwake();
  const meanwhile = answerMeanwhile({ config, log, system });
  let app: App | null = null;
  try {
    app = await loadApp({ config, log, system, meanwhile });
    if (!app) return EXIT_CONFIG;
    const wantsDemo = config.PARLEY_DEMO ?? isLoopback(config.PARLEY_HOST);
    const demo = wantsDemo ? await seedDemo(app.features) : null;
    meanwhile.end();
    announce(config, log, await app.listen(), demo);
    isUp = true;
    const stopping = new AbortController();
    const { PARLEY_MODEL_URL: url } = config;
    if (url !== null) {
      const { tryModelServer } = await import("./models.ts");
      void tryModelServer(config, url, stopping.signal)
        .then((found) => stopping.signal.aborted || warnOfModel(log, url, found));
    }
    setFlagsFromString(`--invocation-count-for-turbofan=${OPTIMIZED_AFTER_CALLS}`);
    const told = giveNotice(app, signals, { config, log, system });
    const isLost = await Promise.race([told.then(() => false), app.lost.then(() => true)]);
    stopping.abort();
    return isLost
      ? await stop(app, log, { waitMs, impatient: wait(system, LIMITS.lostMs), code: EXIT_LOST })
      : await stop(app, log, { waitMs, impatient: signals.second, code: 0 });
  } catch (error) {
    // An operator's mistake is reported in one sentence; a defect is logged with its stack.
    if (!(error instanceof StartFailure)) log.fatal({ err: error }, "could not start");
    tell([(error as Error).message]);
    await app?.close();
    return error instanceof MisconfiguredStart ? EXIT_CONFIG : EXIT_UNAVAILABLE;
  } finally {
    meanwhile.end();
    awake.cancel();
    lock.release();
  }
}

/** Null when the model catalog is invalid; the problems were reported. */
async function loadApp(
  { meanwhile, ...options }: { config: Config; log: Logger; system: System; meanwhile: LongStart },
): Promise<App | null> {
  const { config, log } = options;
  // Opens the database while most of the program loads.
  const opening = openConfigured(config, "thread", (migration) => {
    meanwhile.says("the database is being brought up to date");
    log.info({ migration }, "bringing the database up to date");
  });
  opening.catch(() => undefined);
  let begin: (() => Promise<App>) | null = null;
  try {
    const [{ createApp }, { loadModels }] = await Promise.all([
      import("./app.ts"), import("./models.ts"),
    ]);
    const models = loadModels(config);
    tell(models.kind === "ok" ? models.warnings : models.problems);
    if (models.kind === "ok") {
      begin = () => createApp({ ...options, models: models.entries, holdsFolder: true }, opening);
    }
  } finally {
    // The database's thread would keep the process alive.
    if (!begin) await opening.then((storage) => storage.close()).catch(() => undefined);
  }
  return begin && await begin();
}

/** Null when the folder is taken or cannot be written; the problem was reported. */
function takeDataDir(dataDir: string): ReturnType<typeof lockDataDir> {
  try {
    const lock = lockDataDir(dataDir);
    if (!lock) tell([`another Parley is already using the data folder ${dataDir}`]);
    return lock;
  } catch (error) {
    const { message } = error as Error;
    tell([`the data folder ${dataDir} cannot be written: ${message}; see PARLEY_DATA_DIR`]);
    return null;
  }
}

function announce(
  config: Config, log: Logger, { port, sipPort, url }: Reached, demo: Demo | null,
): void {
  if (demo) printDemo(demo, url);
  // Where stdout is no terminal, every line must be the log's.
  else if (process.stdout.isTTY) {
    process.stdout.write(
      `\n  Parley is running: ${url}/\n  Another key to sign in: ${COMMAND} key create\n\n`);
  }
  log.info({
    host: config.PARLEY_HOST, port, url, base_url: `${url}/api`, program: RUNS_FROM,
  }, "listening");
  if (sipPort !== null) log.info({ host: config.PARLEY_SIP_HOST, port: sipPort }, "listening for SIP");
}

/** Warns once; each reply that fails because of it is logged, too. */
function warnOfModel(
  log: Logger, url: string, { ok, detail }: { ok: boolean; detail: string },
): void {
  if (ok) return;
  // The rest of the URL may contain a secret.
  log.warn({ setting: "PARLEY_MODEL_URL", server: new URL(url).origin, detail },
    "the model server cannot be used");
}

/**
 * After the stop signal, gives clients of `/readyz` time to send requests elsewhere before any is
 * refused. Skipped when the signal came during startup, before any request could be sent.
 */
async function giveNotice(
  app: App, signals: Signals,
  { config, log, system }: { config: Config; log: Logger; system: System },
): Promise<void> {
  const seconds = signals.hasCome() ? 0 : config.PARLEY_STOP_NOTICE_SECONDS;
  await signals.first;
  if (seconds === 0) return;
  app.announceStop();
  log.info({ seconds }, "stopping after the notice period");
  await Promise.race([wait(system, seconds * 1000), signals.second]);
}

/** The longest a stop may take; after that the process ends as it is. */
function longestStopMs(config: Config): number {
  const callsMs =
    config.PARLEY_CALL_DRAIN_SECONDS * 1000 + LIMITS.callGoodbyeMs + LIMITS.callEndMs;
  return Math.max(config.PARLEY_DRAIN_SECONDS * 1000, callsMs) + LIMITS.shutdownMarginMs;
}

/** The next start redoes what was begun. A regular exit would wait for the database's thread. */
function leaveStart(log: Logger): void {
  log.info("stopped while starting");
  process.kill(process.pid, "SIGKILL");
}

async function stop(
  app: App, log: Logger, how: { waitMs: number; impatient: Promise<void>; code: number },
): Promise<number> {
  log.info("stopping");
  const late = new Promise<number>((resolve) => {
    const hurry = (): void => resolve(how.code || 1);
    setTimeout(hurry, how.waitMs).unref();
    void how.impatient.then(hurry);
  });
  const code = await Promise.race([app.close().then(() => how.code), late]);
  log.info({ code }, "stopped");
  if (code !== 0) process.exit(code);
  return code;
}

/**
 * A signal that follows at once counts as the same one: Ctrl-C reaches a server started by npm both
 * from the terminal and from npm, and service managers signal every process of a service.
 */
function listenForSignals(system: System): Signals {
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  let firstMs = Infinity;
  const onSignal = (): void => {
    const nowMs = system.monotonicMs();
    if (nowMs - firstMs > LIMITS.sameSignalMs) second.resolve();
    firstMs = Math.min(firstMs, nowMs);
    first.resolve();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  heedHangUp(onSignal);
  // Without a handler, Node would open its debugger to everybody on the machine.
  process.on("SIGUSR1", () => undefined);
  return {
    first: first.promise, second: second.promise, hasCome: () => firstMs !== Infinity,
  };
}

/** Output may fail because the disk is full or the reader is gone: the server continues. */
function outliveOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

/** After an uncaught defect the state is unknown; what was acknowledged is safe on disk. */
function dieOnDefects(log: Logger): void {
  const die = (error: unknown): void => {
    log.fatal({ err: error }, "defect");
    process.exit(1);
  };
  process.on("uncaughtException", die);
  process.on("unhandledRejection", die);
}
