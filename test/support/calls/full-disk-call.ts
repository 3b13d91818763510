// A program on a small disk of its own: the end of a call is sent to the writer's thread after the
// thread has refused the call's start, before that refusal is received, and once there is room.
// Prints the call's status and the money that is still reserved for it.
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import { createWorld, system } from "#support/databases/contract-world.ts";

const folder = process.env.PARLEY_DATA_DIR ?? "";
const storage = await openStorage(folder, "thread");
const { newConversation, newCall, money } = createWorld(storage);
const conversation = await newConversation(1e6);
const { accountId } = conversation;
const callId = await newCall(conversation);

const filler = join(folder, "full");
spawnSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=4k"]);
const isStored = (): Promise<boolean> => storage.accounts
  .setPlan({ accountId, plan: randomBytes(4000).toString("hex") })
  .then(() => true, () => false);
while (await isStored()) continue;

const ref = { accountId, callId, now: system.now() };
/** Waits for the refusal; a thread that is slower runs start and end in their order. */
const refused = (): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
// An idle writer gets its first command at once, and the next when that is over.
const start = storage.calls.change({ ...ref, to: "in-progress" });
setImmediate(() => {
  refused();
  rmSync(filler);
});
const end = storage.calls.end({
  ...ref, finalStatus: "completed", reason: "completed", turns: [], hasRecording: false,
} as never);
await Promise.all([start, end]);
const { status } = (await storage.calls.find(accountId, ref.callId)) ?? {};
const [, reserved] = await money(accountId);
await storage.close();
process.stdout.write(JSON.stringify({ status, reserved }));
