// Webhooks of an idle server: from the commit of an event to the arrival of its first attempt. The
// receiver and the server are in this process and share its clock; compared with the same request
// sent straight to the receiver.
import { createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { request } from "undici";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createApp } from "#app/app.ts";
import { loadModels } from "#app/models.ts";
import { readConfig } from "#config/config.ts";
import { listenLocally } from "#support/local-server.ts";
import { median, percentile, print, printResult } from "./report.ts";

const EVENTS = 500;
const GAP_MS = 10;

let newest = "";
let arrived = (): void => undefined;
const receiver = await listenLocally(createServer((incoming, response) => {
  let body = "";
  incoming.setEncoding("utf8");
  incoming.on("data", (text: string) => (body += text));
  incoming.on("end", () => {
    newest = body;
    response.end();
    arrived();
  });
}));
const url = `${receiver.url}/`;

const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
const outcome = readConfig({
  PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "off", PARLEY_LOG_LEVEL: "silent",
  PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
});
if (outcome.kind === "invalid") throw new Error(outcome.problems.join("; "));
const models = loadModels(outcome.config);
if (models.kind === "invalid") throw new Error(models.problems.join("; "));
const system = createSystem();
const app = await createApp({
  config: outcome.config, models: models.entries, log: createLogger("silent"), system,
});
await app.listen();
const { accounts, delivery } = app.features;
const account = await accounts.create("Bench", "bench@example.org");
await delivery.webhooks.create(account.id, { url, events: ["balance_changed"] });

/** Milliseconds from each commit until its message has arrived. */
const fromCommitMs: number[] = [];
for (let number = 0; number < EVENTS; number += 1) {
  const next = new Promise<void>((resolve) => (arrived = resolve));
  await accounts.credit(account.id, 1);
  const committedMs = performance.now();
  await next;
  fromCommitMs.push(performance.now() - committedMs);
  await new Promise((resolve) => setTimeout(resolve, GAP_MS));
}
const body = newest;
const directMs: number[] = [];
for (let number = 0; number < EVENTS; number += 1) {
  const startedMs = performance.now();
  const next = new Promise<void>((resolve) => (arrived = resolve));
  const { body: answer } = await request(url, { method: "POST", body });
  await next;
  directMs.push(performance.now() - startedMs);
  await answer.dump();
}
await app.close();
await receiver.close();
rmSync(dataDir, { recursive: true });

const rounded = (value: number): number => Number(value.toFixed(2));
const spread = (values: number[]) => ({
  p50_ms: rounded(median(values)),
  p95_ms: rounded(percentile(values, 95)),
  p99_ms: rounded(percentile(values, 99)),
  max_ms: rounded(percentile(values, 100)),
});
const first = spread(fromCommitMs);
const direct = spread(directMs);
print(`first attempt after the commit ${JSON.stringify(first)}; the request alone ${JSON.stringify(direct)}`);
printResult("webhooks", {
  events: EVENTS, first_attempt: first, request_alone: direct,
  p50_ratio: rounded(first.p50_ms / direct.p50_ms),
});
