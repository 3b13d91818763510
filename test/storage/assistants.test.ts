// Assistants below the wire: what other processes and other features do to their rows.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { createAssistants, type Assistant } from "#features/assistants/assistants.ts";
import type { BuiltInTool } from "#features/assistants/built-in-tools.ts";
import { loadCatalogs } from "#features/assistants/catalogs.ts";
import type { References } from "#features/assistants/rules.ts";
import type { Given } from "#features/assistants/settings.ts";
import { Fault } from "#core/faults.ts";
import { createSystem } from "#core/system.ts";
import { createSecretBox } from "#core/secrets.ts";
import { createDetacher } from "#storage/assistants/assistants.ts";
import { openWriter } from "#storage/engines/sqlite/database.ts";
import { createSql } from "#storage/engines/sqlite/sql.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import { assistantBody, testDataDir } from "#support/server.ts";

const dataDir = testDataDir();
const storage = await openStorage(dataDir, "inline");
const foreign = openWriter(dataDir, { migrate: false });
after(async () => {
  foreign.close();
  await storage.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const system = createSystem();
const mine = await storage.accounts.createAccount({ name: "", email: "", plan: "", now: 1 });
const references: References = {
  model: () => true,
  defaultModel: () => null,
  tool: async (accountId, id) => accountId === mine.id && id <= 9,
  knowledgebase: async (accountId, id) => accountId === mine.id && id <= 9,
};
const box = createSecretBox("secret", system);
const assistants = createAssistants({
  store: storage.assistants, phoneNumbers: storage.phoneNumbers, catalogs: loadCatalogs(),
  references, system, box,
});
const given = (changes: Given = {}): Given => ({ ...assistantBody(), ...changes });
const created = (changes?: Given) => assistants.create(mine.id, given(changes));

const numbersOf = async (id: number) =>
  (await assistants.findById(id))!.settings.tools.map((tool) => (tool.type === "warm_call_transfer" ? tool.outbound_phone_id : undefined));

async function errorsOf(promise: Promise<unknown>): Promise<string[]> {
  const fault = await promise.then(() => null, (error: unknown) => error);
  assert.ok(fault instanceof Fault && fault.status === 422);
  return Object.keys(fault.errors ?? {});
}

test("[AS31] a change made by another process is visible at the next read", async () => {
  const { id, uuid } = await created();
  assert.equal((await assistants.findByUuid(uuid))?.settings.system_prompt, "You are helpful.");
  assert.equal(
    (await assistants.findByUuid(uuid))?.settings.variables,
    (await assistants.findById(id))?.settings.variables,
    "settings are parsed once");
  foreign.prepare(`UPDATE assistants SET updated_at = updated_at + 1,
    settings = replace(settings, 'You are helpful.', 'You are rude.') WHERE id = ?`).run(id);
  const findAll = () => Promise.all([
    assistants.findByUuid(uuid), assistants.findById(id), assistants.find(mine.id, id),
  ]);
  for (const found of await findAll()) {
    assert.equal(found?.settings.system_prompt, "You are rude.");
  }
  foreign.prepare("UPDATE assistants SET deleted_at = 1 WHERE id = ?").run(id);
  assert.deepEqual(await findAll(), [null, null, null]);
});

test("[AS32] an account has a bounded number of assistants", async () => {
  const other = await storage.accounts.createAccount({ name: "", email: "", plan: "", now: 1 });
  const { settings } = await created();
  const columns = {
    name: "A", type: "inbound", status: "active", mode: "pipeline", folderId: null,
    phoneNumberId: null, labelIds: [],
  } as const;
  const create = () => storage.assistants.create({
    accountId: other.id, uuid: system.uuid(), columns: { ...columns, labelIds: [] }, settings,
    assistantsMax: 1, now: 1,
  });
  const first = await create();
  assert.equal(first.kind, "created");
  assert.deepEqual(await create(), { kind: "too_many" });
  const assistantId = first.kind === "created" ? first.assistantId : 0;
  assert.equal(await storage.assistants.remove({ accountId: other.id, assistantId, now: 2 }), true);
  assert.equal((await create()).kind, "created");
});

test("[AS33] what is deleted elsewhere is removed from its account's assistants only", async () => {
  const { id } = await created({ knowledgebase_id: 3, tool_ids: [1, 2] });
  const kept = await created({ knowledgebase_id: 4, tool_ids: [1] });
  const detach = createDetacher(createSql(foreign));
  const before = (await assistants.findById(id))!;
  assert.equal(before.settings.knowledgebase_mode, "function_call", "the default beside one");
  await detach.knowledgebase(mine.id + 1, 3, system.now());
  await detach.tool(mine.id + 1, 2, system.now());
  assert.deepEqual(await assistants.findById(id), before);
  await detach.knowledgebase(mine.id, 3, 5);
  await detach.tool(mine.id, 2, 5);
  const after = (await assistants.findById(id))!;
  assert.deepEqual([after.settings.knowledgebase_id, after.settings.tool_ids], [null, [1]]);
  assert.equal(after.updatedAt, before.updatedAt + 2, "updated_at grows though the clock stood");
  assert.deepEqual(await assistants.findById(kept.id), kept);
});

test("[AS98] a deleted number is removed from the transfers that call from it; the rest stays", async () => {
  const transfer = (outbound_phone_id: number) => ({
    type: "warm_call_transfer" as const, supervisor_phone: "+15550001", outbound_phone_id,
    description: "Sales", hold_message: "A moment.",
  });
  const holding = async (...tools: BuiltInTool[]): Promise<Assistant> => {
    const { id } = await created();
    await storage.assistants.setTools({
      accountId: mine.id, assistantId: id, tools, now: system.now(),
    });
    return (await assistants.findById(id))!;
  };
  const { id } = await holding(transfer(21), transfer(22), { type: "end_call" });
  const kept = await holding(transfer(22));
  const detach = createDetacher(createSql(foreign));
  await detach.phoneNumber(mine.id + 1, 21, system.now());
  assert.equal((await numbersOf(id))[0], 21, "another account's number of that id");
  await detach.phoneNumber(mine.id, 21, system.now());
  assert.deepEqual(await numbersOf(id), [null, 22, undefined]);
  const [left] = (await assistants.findById(id))!.settings.tools;
  assert.deepEqual(left, { ...transfer(21), outbound_phone_id: null });
  assert.deepEqual(await assistants.findById(kept.id), kept);
  assert.equal((await assistants.update(mine.id, id, { name: "Still" })).name, "Still");
  const { tools } = (await assistants.findById(id))!.settings;
  assert.deepEqual(
    await errorsOf(assistants.update(mine.id, id, { tools })),
    ["tools.0.outbound_phone_id", "tools.1.outbound_phone_id"]);
});

test("[AS34] a setting newer than the stored row has its default", async () => {
  const { id } = await created({ max_duration: 50 });
  const row = foreign.prepare<[number], { settings: string }>(
    "SELECT settings FROM assistants WHERE id = ?").get(id)!;
  const { ringing_time: _, widget_settings: __, ...older } = JSON.parse(row.settings);
  foreign.prepare("UPDATE assistants SET settings = ?, updated_at = updated_at + 1 WHERE id = ?")
    .run(JSON.stringify(older), id);
  const found = (await assistants.findById(id))!;
  const { max_duration: kept, ringing_time: newer, widget_settings: widget } = found.settings;
  assert.deepEqual([kept, newer, widget.theme], [50, 30, "modern"]);
  assert.equal((await assistants.update(mine.id, id, { name: "B" })).settings.ringing_time, 30);
});

test("[AS35] tools and knowledgebases must belong to the account", async () => {
  const { id } = await created({ tool_ids: [1, 9, 1], knowledgebase_id: 9 });
  assert.deepEqual((await assistants.findById(id))?.settings.tool_ids, [1, 9]);
  const wrong = { tool_ids: [1, 10, 11], knowledgebase_id: 10 };
  assert.deepEqual(
    await errorsOf(assistants.update(mine.id, id, wrong)),
    ["knowledgebase_id", "tool_ids.1", "tool_ids.2"]);
  const other = await storage.accounts.createAccount({ name: "", email: "", plan: "", now: 1 });
  assert.deepEqual(
    await errorsOf(assistants.create(other.id, given({ tool_ids: [1], knowledgebase_id: 1 }))),
    ["knowledgebase_id", "tool_ids.0"]);
});

test("[AS36] references to deleted things do not block other changes", async () => {
  const { id } = await created({ tool_ids: [9], knowledgebase_id: 9, folder_id: null });
  const narrow = createAssistants({
    store: storage.assistants, phoneNumbers: storage.phoneNumbers, catalogs: loadCatalogs(),
    references: {
      ...references, tool: async () => false, knowledgebase: async () => false, model: () => false,
    },
    system, box,
  });
  assert.equal((await narrow.update(mine.id, id, { name: "Still" })).name, "Still");
});

test("[AS37] a mode without a default model requires one to be named", async () => {
  const { id } = await created();
  assert.deepEqual(
    await errorsOf(assistants.update(mine.id, id, { mode: "dualplex" })), ["multimodal_model_id"]);
  const there = await assistants.update(mine.id, id, { mode: "dualplex", multimodal_model_id: 7 });
  assert.deepEqual([there.mode, there.settings.multimodal_model_id], ["dualplex", 7]);
});

test("[AS38] a reference deleted between validation and writing is refused, not left dangling", async () => {
  const { id, updatedAt, settings } = await created();
  const columns = {
    name: "A", type: "inbound", status: "active", mode: "pipeline", folderId: null,
    phoneNumberId: null, labelIds: [] as number[],
  } as const;
  const write = (changes: object) => storage.assistants.update({
    accountId: mine.id, assistantId: id, expectedUpdatedAt: updatedAt, settings,
    columns: { ...columns, labelIds: [], ...changes }, now: system.now(),
  });
  assert.deepEqual(await write({ folderId: 77 }), { kind: "reference_gone", field: "folder_id" });
  assert.deepEqual(await write({ labelIds: [77] }), { kind: "reference_gone", field: "label_ids" });
  assert.deepEqual(
    await write({ phoneNumberId: 77 }), { kind: "reference_gone", field: "phone_number_id" });
  assert.equal((await write({})).kind, "updated");
  assert.deepEqual(await write({}), { kind: "changed" });
});
