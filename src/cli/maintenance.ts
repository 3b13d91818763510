// ledger, backup, restore, doctor and openapi commands of the `parley` program.
import { existsSync, mkdtempSync, rmSync, statfsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { filesIn, openPlace, SCRATCH } from "#app/files.ts";
import { readConfig, type Config } from "#config/config.ts";
import { namedProxies } from "#config/proxy.ts";
import { isFolder, NotWritten, readText, writingTo } from "#core/disk.ts";
import { createLogger } from "#core/logger.ts";
import { programFile } from "#core/program.ts";
import { createSecretBox, findSecret } from "#core/secrets.ts";
import { createSystem, isoMicros } from "#core/system.ts";
import { auditLedger } from "#storage/accounts/ledger-audit.ts";
import { auditDatabase, canBeAudited, inspectDatabase } from "#storage/engines/sqlite/backup.ts";
import {
  databaseExists, databasePath, isServed, lockDataDir, openForInspection,
} from "#storage/engines/sqlite/database.ts";
import { measureCommits } from "#storage/engines/sqlite/probe.ts";
import { namesOf, trySealed } from "#storage/engines/sqlite/sealed.ts";
import { holdingsOf, isDatabase, makeArchive, restoreArchive } from "./archive.ts";
import { table, UsageError, withStorage, type Command } from "./command.ts";
import { examineServer, type Finding } from "./doctor-nodes.ts";

/** Where the settings say everything is stored. */
async function auditStored(config: Config): ReturnType<typeof auditLedger> {
  if (config.PARLEY_DATABASE_URL !== null) {
    return withStorage(config, ({ ledger }) => auditLedger(ledger));
  }
  if (!databaseExists(config.PARLEY_DATA_DIR)) throw new Error("there is no database yet");
  const db = openForInspection(databasePath(config.PARLEY_DATA_DIR));
  try {
    return await auditDatabase(db);
  } finally {
    db.close();
  }
}

/** What these commands copy and put back is a file; a database server has its own way of it. */
function refuseServer(config: Config, tool: string): void {
  if (config.PARLEY_DATABASE_URL === null) return;
  throw new Error(`everything is in PostgreSQL (PARLEY_DATABASE_URL): ${tool}`);
}

const verifyLedger: Command = {
  name: "ledger verify",
  takes: "",
  summary: "Recompute every balance and hash from the ledger",
  options: {},
  run: async ({ config }) => {
    const { accounts, entries, problems } = await auditStored(config);
    const ok = problems.length === 0;
    const summary = `${accounts} accounts, ${entries} ledger entries`;
    return Promise.resolve({
      value: { ok, accounts, entries, problems },
      text: ok ? `the ledger is right: ${summary}` : `${summary}\n${problems.join("\n")}`,
      failed: !ok,
    });
  },
};

/** A backup takes the place of what it is written to, also of /dev/stdout, and is read twice. */
function refuseStream(file: string): void {
  if (file !== "-" && (!existsSync(file) || statSync(file).isFile())) return;
  throw new Error(`${file} is no file: a backup is written to a file and read from one`);
}

const backup: Command = {
  name: "backup",
  takes: "FILE [--force]",
  summary: "Write a checked copy: database, secret, unread documents, recordings",
  words: 1,
  options: { force: { type: "boolean" } },
  run: async ({ config, values, positionals: [file] }) => {
    if (file === undefined || file === "") throw new UsageError("FILE is required");
    refuseServer(config, "pg_dump --format=custom copies it; the secret and files are kept beside");
    if (isFolder(file)) throw new Error(`${file} is a folder: name a file in it`);
    refuseStream(file);
    if (existsSync(file) && values.force !== true) throw new Error(`${file} exists; --force replaces it`);
    if (!databaseExists(config.PARLEY_DATA_DIR)) throw new Error("there is no database yet");
    const { files, holdsSecret } = await makeArchive(config, file);
    const note = noteOfSecret(config, holdsSecret);
    const elsewhere = placeElsewhere(config);
    const more = elsewhere === null
      ? ""
      : ` Recordings and unread documents are not in it: they are in ${elsewhere}.`;
    return {
      value: { file, files, holds_secret: holdsSecret, files_elsewhere: elsewhere },
      text: `backed up to ${file}: ${files} files.${note}${more}`,
    };
  },
};

function noteOfSecret(config: Config, holdsSecret: boolean): string {
  if (holdsSecret) return " It holds the secret: keep it as safe.";
  if (config.PARLEY_SECRET !== null) {
    return " The secret is not in it: keep PARLEY_SECRET, which it needs.";
  }
  const { ok, detail } = examineSecret(config);
  return ok ? " It holds no secret: none is needed yet." : ` It holds no secret: ${detail}.`;
}

const restore: Command = {
  name: "restore",
  takes: "FILE [--force]",
  summary: "Put a backup in the data folder's place; the server must be stopped",
  words: 1,
  options: { force: { type: "boolean" } },
  run: async ({ config, values, positionals: [file] }) => {
    if (file === undefined || file === "") throw new UsageError("FILE is required");
    refuseServer(config, "pg_restore puts a copy of it back");
    if (isFolder(file)) throw new Error(`${file} is a folder: name the backup in it`);
    refuseStream(file);
    if (!existsSync(file)) throw new Error(`${file} does not exist`);
    const dataDir = config.PARLEY_DATA_DIR;
    const lock = lockDataDir(dataDir);
    if (!lock) throw new Error("a server runs on the data folder: stop it first");
    try {
      const held = holdingsOf(dataDir);
      if (held !== null && values.force !== true) {
        throw new Error(`the data folder has ${held}; --force replaces it and keeps the old one beside it`);
      }
      const stamp = isoMicros(createSystem().now()).replaceAll(/[-:.]/g, "");
      const kept = await restoreArchive(config, file, stamp);
      const note = kept === null ? "" : `; the database it replaced is ${kept}`;
      const missing = isDatabase(file)
        ? ". It is the database alone: secret, documents and recordings are not in it"
        : "";
      return { value: { file, kept }, text: `restored ${file}${note}${missing}` };
    } finally {
      lock.release();
    }
  },
};

/** Where PARLEY_FILES_URL has recordings and documents; null: in the data folder. */
function placeElsewhere({ PARLEY_FILES_URL: place }: Config): string | null {
  if (place === null) return null;
  return place.kind === "folder" ? place.root : `${place.endpoint}/${place.path}`;
}

/** Puts, reads and removes a file, as the server does. */
async function examineFiles(config: Config): Promise<Finding> {
  const check = "files";
  const dataDir = config.PARLEY_DATA_DIR;
  const waiting = filesIn(join(dataDir, SCRATCH)).length;
  const note = waiting === 0 ? "" : `; ${waiting} of calls in progress or waiting in the data folder`;
  const place = placeElsewhere(config);
  if (place === null) return { check, ok: true, detail: `in the data folder${note}` };
  const system = createSystem();
  const files = await openPlace({ config, system, log: createLogger("silent") });
  const name = `doctor/${system.uuid()}`;
  const probe = programFile("package.json");
  try {
    if (await files.read(name)) throw new Error("a file is there that nobody has put");
    await files.put(name, probe);
    const found = await files.read(name);
    const back = found && await text(found.body);
    await files.remove(name);
    if (back !== readText(probe)) throw new Error("a file that was put is not there");
    return { check, ok: true, detail: `${place} takes and gives files${note}` };
  } catch (error) {
    const { message, cause } = error as Error;
    return { check, ok: false, detail: `${place}: ${cause instanceof Error ? cause.message : message}${note}` };
  } finally {
    await files.close();
  }
}

/** A full disk is found by what needs room on it, and keeps nothing else from being examined. */
async function whereRoom(
  check: string, dataDir: string, look: () => string | Promise<Finding[]>,
): Promise<Finding[]> {
  try {
    const found = await writingTo(dataDir, async () => look());
    return typeof found === "string" ? [{ check, ok: true, detail: found }] : found;
  } catch (error) {
    if (!(error instanceof NotWritten)) throw error;
    return [{ check, ok: false, detail: error.message }];
  }
}

function examineDisk(dataDir: string): Finding {
  const disk = statfsSync(dataDir);
  const freeGib = (disk.bavail * disk.bsize) / 2 ** 30;
  // Some file systems make room for files as they come, and say 0 of 0.
  const isOutOfFiles = disk.files > 0 && disk.ffree === 0;
  return {
    check: "free disk",
    ok: freeGib > 1 && !isOutOfFiles,
    detail: `${freeGib.toFixed(1)} GiB${isOutOfFiles ? ", but for no more files (inodes)" : ""}`,
  };
}

async function examineData(config: Config): Promise<Finding[]> {
  const dataDir = config.PARLEY_DATA_DIR;
  const { PARLEY_DATABASE_URL: url } = config;
  const isThere = isFolder(dataDir);
  const findings: Finding[] = isThere
    ? [
        ...await whereRoom("server", dataDir, () =>
          (isServed(dataDir) ? "running" : "not running")),
        examineDisk(dataDir),
      ]
    : [{ check: "data folder", ok: true, detail: "none yet; the first start makes it" }];
  if (url !== null) return [...findings, ...await examineServer(config, url)];
  if (!isThere) return findings;
  return [
    ...findings,
    ...await whereRoom("durable commits", dataDir, () => `${measureCommits(dataDir)} a second`),
    ...await whereRoom("database", dataDir, () => examineDatabase(config)),
  ];
}

async function examineDatabase(config: Config): Promise<Finding[]> {
  const { PARLEY_DATA_DIR: dataDir } = config;
  if (!databaseExists(dataDir)) {
    return [{ check: "database", ok: true, detail: "none yet; the first start makes it" }];
  }
  const problems = await inspectDatabase(databasePath(dataDir));
  const sound = canBeAudited(databasePath(dataDir))
    ? "sound, ledger right"
    : "sound; the ledger is not looked at before a start has brought it up to date";
  const detail = problems.length > 0 ? problems.join("; ") : sound;
  return [{ check: "database", ok: problems.length === 0, detail }, examineSecret(config)];
}

/** Whether the secret opens everything that was sealed. */
function examineSecret({ PARLEY_SECRET: configured, PARLEY_DATA_DIR: dataDir }: Config): Finding {
  const check = "secret";
  const secret = findSecret(configured, dataDir);
  const box = secret === null ? null : createSecretBox(secret, createSystem());
  const trial = trySealed(databasePath(dataDir), box);
  if (trial.kind === "too_old") {
    return { check, ok: true, detail: "not tried: the database is of another version of the program" };
  }
  const { count, closed, needsSecret } = trial;
  if (secret === null && needsSecret) {
    return { check, ok: false, detail: "it is missing: restore it, or set PARLEY_SECRET to it" };
  }
  if (count === 0) return { check, ok: true, detail: "nothing is sealed yet" };
  if (closed.length === 0) return { check, ok: true, detail: `opens all ${count} that are sealed` };
  const remedy = closed.length === count ? "another one is needed" : "enter these anew";
  return { check, ok: false, detail: `it does not open what was sealed (${namesOf(closed)}): ${remedy}` };
}

async function examineModel(config: Config): Promise<Finding> {
  const { PARLEY_MODEL_URL: url } = config;
  const check = "model";
  if (url === null) return { check, ok: true, detail: "offline (PARLEY_MODEL_URL is not set)" };
  const { tryModelServer } = await import("#app/models.ts");
  const { ok, detail } = await tryModelServer(config, url);
  return { check, ok, detail: `${url} ${detail}` };
}

/** What its file names that is not there keeps no server from starting. */
async function examineCatalog(config: Config): Promise<Finding[]> {
  const check = "model catalog";
  const { loadModels } = await import("#app/models.ts");
  const models = loadModels(config);
  if (models.kind === "invalid") return [{ check, ok: false, detail: models.problems.join("; ") }];
  return [
    { check, ok: true, detail: `${models.entries.length} models` },
    ...models.warnings.map((detail) => ({ check, ok: false, detail })),
  ];
}

const doctor: Command = {
  name: "doctor",
  takes: "",
  summary: "Check the machine, the settings and the data",
  options: {},
  run: async ({ config }) => {
    const findings: Finding[] = [
      { check: "node", ok: true, detail: process.version },
      ...await examineData(config),
      await examineFiles(config),
      ...await examineCatalog(config),
      ...namedProxies().map(({ variable, origin }) =>
        ({ check: "proxy", ok: true, detail: `${origin} (${variable})` })),
      await examineModel(config),
    ];
    const ok = findings.every((finding) => finding.ok);
    const lines = findings.map((finding) => [finding.ok ? "ok" : "WRONG", finding.check, finding.detail]);
    return { value: { ok, findings }, text: table(lines), failed: !ok };
  },
};

const openapi: Command = {
  name: "openapi",
  takes: "",
  summary: "Print the OpenAPI document",
  options: {},
  run: async () => {
    // The document is made from mounted routes, so an app is put together over an empty folder.
    const dataDir = await writingTo(
      tmpdir(), () => mkdtempSync(join(tmpdir(), "parley-openapi-")));
    try {
      const outcome = readConfig({ PARLEY_DATA_DIR: dataDir, PARLEY_LOG_LEVEL: "silent" });
      if (outcome.kind === "invalid") throw new Error(outcome.problems.join("; "));
      const { createApp } = await import("#app/app.ts");
      const { loadModels } = await import("#app/models.ts");
      const models = loadModels(outcome.config);
      if (models.kind === "invalid") throw new Error(models.problems.join("; "));
      const app = await createApp({
        config: outcome.config, models: models.entries, log: createLogger("silent"),
        system: createSystem(),
      });
      try {
        const value = app.openApi();
        return { value, text: JSON.stringify(value, null, 2) };
      } finally {
        await app.close();
      }
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
};

export const maintenanceCommands: Command[] = [verifyLedger, backup, restore, doctor, openapi];
