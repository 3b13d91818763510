// A message sent again long after its reply.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createParley } from "#client/client.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import { aboutTheFile } from "#support/engines.ts";
import {
  newAssistant, newConversation, startTestServer, testDataDir, type TestServer,
} from "#support/server.ts";

test("[CC209] a repeated send whose reply has left the log ends with a reset, and asks once", { skip: aboutTheFile }, async () => {
  const dataDir = testDataDir();
  const first = await startTestServer({ dataDir });
  const uuid = await newConversation(first, (await newAssistant(first)).uuid);
  const send = async (to: TestServer) => {
    let asked = 0;
    const parley = createParley({
      baseUrl: `${to.url}/api`,
      fetch: (...request) => {
        asked += 1;
        return fetch(...request);
      },
    });
    const types: string[] = [];
    const how = { idempotencyKey: "k", signal: AbortSignal.timeout(10_000) };
    for await (const { type } of parley.send(uuid, "Hi", how)) types.push(type);
    return { asked, types };
  };
  assert.equal((await send(first)).types.at(-1), "message_added");
  await first.close();
  const storage = await openStorage(dataDir, "inline");
  while (await storage.trimLog(Number.MAX_SAFE_INTEGER, 1000) > 0);
  await storage.close();
  const later = await startTestServer({ dataDir });
  assert.deepEqual(await send(later), { asked: 1, types: ["stream_reset"] });
  await later.close();
});
