// Several nodes over one database and one NATS server, behind a door that takes another node for
// every request.
import { rmSync } from "node:fs";
import { databaseAt } from "#support/engines.ts";
import { startNats, type NatsServer } from "./nats.ts";
import { closing, startTestServer, testDataDir, type TestServer } from "#support/server.ts";

export interface Nodes {
  all: TestServer[];
  /** The next node in turn. */
  next(): TestServer;
  /** As the first node's server, but each call goes to another node. */
  door: TestServer;
  nats: NatsServer;
  close(): Promise<void>;
}

export async function startNodes(count: number, env: Record<string, string> = {}): Promise<Nodes> {
  const nats = await startNats();
  const dataDir = testDataDir();
  const database = await databaseAt(dataDir, "durable");
  const all: TestServer[] = [];
  for (let index = 0; index < count; index += 1) {
    all.push(await startTestServer({
      dataDir,
      env: {
        PARLEY_DATABASE_URL: `postgres://parley@127.0.0.1:${database.port}/${database.name}`,
        PARLEY_NATS_URL: nats.url, PARLEY_FILES_URL: `file://${dataDir}`,
        PARLEY_SECRET: "the same at every node, and long enough", ...env,
      },
    }));
  }
  const [first] = all;
  if (!first) throw new Error("there is no node");
  const close = closing(async () => {
    for (const node of all) await node.close();
    await nats.kill();
    await database.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  let turn = 0;
  const next = (): TestServer => all[(turn += 1) % count] ?? first;
  return {
    all, next, nats,
    door: {
      ...first,
      // Accounts and keys are the first node's.
      call: (method, path, options = {}) => {
        const key = options.key === undefined && /^\/(user|automate|ai)\b/.test(path)
          ? first.key
          : options.key;
        return next().call(method, path, { ...options, ...key === undefined ? {} : { key } });
      },
    },
    close,
  };
}
