// ledger, backup, restore, doctor and openapi commands of the `parley` program.
import { existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../app.ts";
import { loadModels, readConfig, type Config } from "../config.ts";
import { createLogger } from "../core/logger.ts";
import { createSystem, isoMicros } from "../core/system.ts";
import { auditDatabase, backupDatabase, inspectDatabase, restoreDatabase } from "../storage/sqlite/backup.ts";
import { databaseExists, databasePath, lockDataDir, openForInspection } from "../storage/sqlite/database.ts";
import { measureCommits } from "../storage/sqlite/probe.ts";
import { table, UsageError, type Command } from "./command.ts";

const verifyLedger: Command = {
  name: "ledger verify",
  takes: "",
  summary: "Recompute every balance and hash from the ledger",
  options: {},
  run: ({ config }) => {
    if (!databaseExists(config.PARLEY_DATA_DIR)) throw new Error("there is no database yet");
    const db = openForInspection(databasePath(config.PARLEY_DATA_DIR));
    const { accounts, entries, problems } = auditDatabase(db);
    db.close();
    const ok = problems.length === 0;
    const summary = `${accounts} accounts, ${entries} ledger entries`;
    return Promise.resolve({
      value: { ok, accounts, entries, problems },
      text: ok ? `the ledger is right: ${summary}` : `${summary}\n${problems.join("\n")}`,
      failed: !ok,
    });
  },
};

const backup: Command = {
  name: "backup",
  takes: "FILE [--force]",
  summary: "Write a checked copy of the database",
  options: { force: { type: "boolean" } },
  run: async ({ config, values, positionals: [file] }) => {
    if (file === undefined) throw new UsageError("FILE is required");
    if (existsSync(file) && values.force !== true) throw new Error(`${file} exists; --force replaces it`);
    await backupDatabase(config.PARLEY_DATA_DIR, file);
    return { value: { file }, text: `backed up to ${file}` };
  },
};

const restore: Command = {
  name: "restore",
  takes: "FILE [--force]",
  summary: "Put a backup in the data folder's place; the server must be stopped",
  options: { force: { type: "boolean" } },
  run: ({ config, values, positionals: [file] }) => {
    if (file === undefined) throw new UsageError("FILE is required");
    if (!existsSync(file)) throw new Error(`${file} does not exist`);
    const dataDir = config.PARLEY_DATA_DIR;
    const lock = lockDataDir(dataDir);
    if (!lock) throw new Error("a server runs on the data folder: stop it first");
    try {
      if (databaseExists(dataDir) && values.force !== true) {
        throw new Error("the data folder has a database; --force replaces it and keeps the old one beside it");
      }
      const stamp = isoMicros(createSystem().now()).replaceAll(/[-:.]/g, "");
      const kept = restoreDatabase(dataDir, file, stamp);
      const note = kept === null ? "" : `; the database it replaced is ${kept}`;
      return Promise.resolve({ value: { file, kept }, text: `restored ${file}${note}` });
    } finally {
      lock.release();
    }
  },
};

interface Finding {
  check: string;
  ok: boolean;
  detail: string;
}

function examineData(config: Config): Finding[] {
  const dataDir = config.PARLEY_DATA_DIR;
  const lock = lockDataDir(dataDir);
  lock?.release();
  const disk = statfsSync(dataDir);
  const freeGib = (disk.bavail * disk.bsize) / 2 ** 30;
  const findings: Finding[] = [
    { check: "server", ok: true, detail: lock ? "not running" : "running" },
    { check: "free disk", ok: freeGib > 1, detail: `${freeGib.toFixed(1)} GiB` },
    { check: "durable commits", ok: true, detail: `${measureCommits(dataDir)} a second` },
  ];
  if (!databaseExists(dataDir)) {
    return [...findings, { check: "database", ok: true, detail: "none yet; the first start makes it" }];
  }
  const problems = inspectDatabase(databasePath(dataDir));
  const detail = problems.length > 0 ? problems.join("; ") : "sound, ledger right";
  return [...findings, { check: "database", ok: problems.length === 0, detail }];
}

async function examineModel(config: Config): Promise<Finding> {
  const url = config.PARLEY_MODEL_URL;
  if (url === null) return { check: "model", ok: true, detail: "offline (PARLEY_MODEL_URL is not set)" };
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(3000) });
    return { check: "model", ok: true, detail: `${url} answers (${response.status})` };
  } catch (error) {
    return { check: "model", ok: false, detail: `${url}: ${(error as Error).message}` };
  }
}

const doctor: Command = {
  name: "doctor",
  takes: "",
  summary: "Check the machine, the settings and the data",
  options: {},
  run: async ({ config }) => {
    const models = loadModels(config);
    const findings: Finding[] = [
      { check: "node", ok: true, detail: process.version },
      ...examineData(config),
      {
        check: "model catalog",
        ok: models.kind === "ok",
        detail: models.kind === "ok" ? `${models.entries.length} models` : models.problems.join("; "),
      },
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
    const dataDir = mkdtempSync(join(tmpdir(), "parley-openapi-"));
    try {
      const outcome = readConfig({ PARLEY_DATA_DIR: dataDir, PARLEY_LOG_LEVEL: "silent" });
      if (outcome.kind === "invalid") throw new Error(outcome.problems.join("; "));
      const models = loadModels(outcome.config);
      if (models.kind === "invalid") throw new Error(models.problems.join("; "));
      const app = await createApp({
        config: outcome.config, models: models.entries, log: createLogger("silent"),
        system: createSystem(),
      });
      const value = app.openApi();
      await app.close();
      return { value, text: JSON.stringify(value, null, 2) };
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
};

export const maintenanceCommands: Command[] = [verifyLedger, backup, restore, doctor, openapi];
