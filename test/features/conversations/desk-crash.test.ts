// SIGKILL of the real process while a visitor and a person write in one conversation.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { test } from "node:test";
import { ask, callApi } from "#support/api.ts";
import { startProcess } from "#support/process.ts";
import { IS_PROOF } from "#support/proof.ts";
import { testDataDir } from "#support/server.ts";

const KILLS = IS_PROOF ? 5 : 2;
const MESSAGES = 40;

test("[DK10] killed at any moment while visitor and person write: no message is lost, doubled or reordered", async (context) => {
  const dataDir = testDataDir();
  let server = await startProcess(dataDir);
  context.after(() => server.process.kill("SIGKILL"));
  const { key, assistant } = server;
  const { conversation_id: uuid } = await ask(server, "/conversations", { assistant_id: assistant });
  await ask(server, `/user/conversations/${uuid}/take-over`, {});
  let isOver = false;
  /** Writes one after the other; what a dead server leaves unanswered is sent again. */
  const write = async (path: string, by: string | null, name: string): Promise<void> => {
    for (let number = 1; number <= MESSAGES; number += 1) {
      for (;;) {
        assert.ok(!isOver);
        try {
          const message = `${name}${number}`;
          const { status } = await callApi(server.url, "POST", path, {
            key: by, body: { message }, headers: { "Idempotency-Key": message },
          });
          assert.ok(status === 200 || status === 201, String(status));
          break;
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          await delay(20);
        }
      }
    }
  };
  const written = Promise.all([
    write(`/conversations/${uuid}/messages`, null, "v"),
    write(`/user/conversations/${uuid}/messages`, key, "p"),
  ]);
  for (let kill = 0; kill < KILLS; kill += 1) {
    await delay(40);
    const gone = once(server.process, "exit");
    server.process.kill("SIGKILL");
    await gone;
    server = await startProcess(dataDir);
  }
  await written;
  isOver = true;
  const read = await ask(server, `/conversations/${uuid}`);
  const history = (read.history as { role: string; content: string }[])
    .filter(({ content }, at) => at > 0 || content === "v1" || content === "p1");
  for (const [role, name] of [["user", "v"], ["operator", "p"]] as const) {
    assert.deepEqual(
      history.filter((message) => message.role === role).map(({ content }) => content),
      Array.from({ length: MESSAGES }, (_, index) => `${name}${index + 1}`));
  }
  assert.equal(history.length, 2 * MESSAGES, "and the assistant said nothing");
  const gone = once(server.process, "exit");
  server.process.kill("SIGTERM");
  await gone;
  rmSync(dataDir, { recursive: true });
});
