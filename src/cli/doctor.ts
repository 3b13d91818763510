// The command `parley doctor`: the machine, the settings and the data.
import { statfsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { filesIn, openPlace, SCRATCH } from "#app/files.ts";
import type { Config } from "#config/config.ts";
import { namedProxies } from "#config/proxy.ts";
import { isFolder, NotWritten, readText, writingTo } from "#core/disk.ts";
import { createLogger } from "#core/logger.ts";
import { programFile } from "#core/program.ts";
import { createSecretBox, findSecret } from "#core/secrets.ts";
import { createSystem } from "#core/system.ts";
import { canBeAudited, inspectDatabase } from "#storage/engines/sqlite/backup.ts";
import { databaseExists, databasePath, isServed, overgrownLog } from "#storage/engines/sqlite/database.ts";
import { measureCommits } from "#storage/engines/sqlite/probe.ts";
import { namesOf, trySealed } from "#storage/engines/sqlite/sealed.ts";
import { table, type Command } from "./command.ts";
import { examineServer, type Finding } from "./doctor-nodes.ts";

const FREE_DISK_GIB_MIN = 1;

/** Where PARLEY_FILES_URL has recordings and documents; null: in the data folder. */
export function placeElsewhere({ PARLEY_FILES_URL: place }: Config): string | null {
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
    if (await files.read(name)) throw new Error("a file exists that was never written");
    await files.put(name, probe);
    const found = await files.read(name);
    const back = found && await text(found.body);
    await files.remove(name);
    if (back !== readText(probe)) throw new Error("a file that was written is missing");
    return { check, ok: true, detail: `${place} stores and returns files${note}` };
  } catch (error) {
    const { message, cause } = error as Error;
    return { check, ok: false, detail: `${place}: ${cause instanceof Error ? cause.message : message}${note}` };
  } finally {
    await files.close();
  }
}

/** Reports a full disk as a finding of the check that needs room, so that the others still run. */
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
  // Some file systems allocate inodes on demand, and report 0 of 0.
  const isOutOfFiles = disk.files > 0 && disk.ffree === 0;
  return {
    check: "free disk",
    ok: freeGib > FREE_DISK_GIB_MIN && !isOutOfFiles,
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
    : [{ check: "data folder", ok: true, detail: "none yet; the first start creates it" }];
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
    return [{ check: "database", ok: true, detail: "none yet; the first start creates it" }];
  }
  const problems = await inspectDatabase(databasePath(dataDir));
  const sound = canBeAudited(databasePath(dataDir))
    ? "sound, ledger correct"
    : "sound; the ledger can be checked after the next start has updated the database";
  const log = overgrownLog(dataDir);
  const note = log === null
    ? ""
    : `; its log has grown to ${Math.round(log / 2 ** 20)} MiB: a long-running reader keeps it from shrinking`;
  const detail = `${problems.length > 0 ? problems.join("; ") : sound}${note}`;
  return [{ check: "database", ok: problems.length === 0, detail }, examineSecret(config)];
}

/** Whether the secret opens everything that was sealed. */
export function examineSecret(config: Config): Finding {
  const { PARLEY_SECRET: configured, PARLEY_DATA_DIR: dataDir } = config;
  const check = "secret";
  const secret = findSecret(configured, dataDir);
  const box = secret === null ? null : createSecretBox(secret, createSystem());
  const trial = trySealed(databasePath(dataDir), box);
  if (trial.kind === "too_old") {
    return { check, ok: true, detail: "not checked: the database is from another version of Parley" };
  }
  const { count, closed, needsSecret } = trial;
  if (secret === null && needsSecret) {
    return { check, ok: false, detail: "it is missing: restore it, or set PARLEY_SECRET to it" };
  }
  if (count === 0) return { check, ok: true, detail: "nothing is encrypted yet" };
  if (closed.length === 0) return { check, ok: true, detail: `decrypts all ${count} encrypted values` };
  const remedy = closed.length === count ? "set the right secret" : "enter these again";
  return { check, ok: false, detail: `it cannot decrypt some values (${namesOf(closed)}): ${remedy}` };
}

async function examineModel(config: Config): Promise<Finding> {
  const { PARLEY_MODEL_URL: url } = config;
  const check = "model";
  if (url === null) return { check, ok: true, detail: "offline (PARLEY_MODEL_URL is not set)" };
  const { tryModelServer } = await import("#app/models.ts");
  const { ok, detail } = await tryModelServer(config, url);
  return { check, ok, detail: `${url} ${detail}` };
}

/** Names in the file that lead nowhere are reported, but do not keep the server from starting. */
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

export const doctorCommand: Command = {
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
