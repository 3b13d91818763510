// What runs in a server that nobody asks anything of, and what the first call brings up.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { file } from "#bench/load.ts";
import type { Heaps } from "#bench/threads.ts";
import { ask } from "#support/api.ts";
import { MAIN } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";

test("[OP165] an idle server has two threads and no child process; sound starts one with the first call", async () => {
  const child = spawn(process.execPath, ["--import", file("threads.ts"), MAIN], {
    env: { PARLEY_PORT: "0", PARLEY_DATA_DIR: testDataDir(), PARLEY_SPEECH: "loopback" },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const exited = once(child, "exit");
  const threads = async (): Promise<string[]> => {
    const answer = once(child, "message");
    child.send("heaps");
    const [heaps] = await answer as [Heaps];
    return Object.keys(heaps).toSorted();
  };
  assert.ok(child.stdout);
  const told: Record<string, string> = {};
  for await (const line of createInterface({ input: child.stdout })) {
    const [, name = "", value = ""] = /^ +(API key|assistant) +(\S+)/.exec(line) ?? [];
    told[name] ??= value;
    if (!line.includes('"msg":"listening"')) continue;
    Object.assign(told, JSON.parse(line));
    break;
  }
  child.stdout.resume();
  assert.deepEqual(await threads(), ["main", "write"]);
  await ask({ url: told.url ?? "", key: told["API key"] ?? "" }, "/user/try_call", {
    assistant_id: told.assistant, lines: ["Hello.", "Goodbye."],
  });
  while (!(await threads()).includes("media")) await sleep(20);
  child.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
});
