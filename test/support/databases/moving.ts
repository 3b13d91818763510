// A data folder that has been used, and databases it may move to: what tests of `parley move` begin
// with. All of it is removed when all tests of the process are over.
import { rmSync } from "node:fs";
import { withoutPostgres } from "#support/engines.ts";
import { copied, liveIn, SECRET, type LivedFolder } from "./lived-folder.ts";
import { parley } from "#support/process.ts";
import { afterAll } from "#support/runner/one-process.ts";
import { testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { emptyDatabase, virginDatabase, type VirginDatabase } from "./virgin-database.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

export const model = await startScriptedModel();
export const receiver = await startWebhookReceiver();
export const cleanups: (() => unknown)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups) await cleanup();
  await receiver.close();
  await model.close();
});

export function newDir(): string {
  const dir = testDataDir();
  cleanups.push(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** `hasSchema`: a server has started on it before. */
export async function newDatabase(
  name: string, { hasSchema = false } = {},
): Promise<VirginDatabase> {
  const database = await (hasSchema ? emptyDatabase : virginDatabase)(name);
  cleanups.push(database.drop);
  return database;
}

const lived = withoutPostgres === false ? await liveIn(newDir(), model, receiver.url) : null;
/** A copy of the used folder, for one test. */
export const newFolder = (): LivedFolder => copied(lived!, newDir());

export const move = (
  dataDir: string, { url }: { url: string }, more: Record<string, string> = {},
) =>
  parley(dataDir, ["move", "--to", url, "--json"], { PARLEY_SECRET: SECRET, ...more });
