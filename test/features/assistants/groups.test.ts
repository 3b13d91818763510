// Folders and labels: the same five operations, each under two paths.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { COLORS } from "#features/assistants/groups.ts";
import { newAssistant, startTestServer } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

const KINDS = [
  { noun: "Folder", single: "/user/folder", plural: "/user/folders" },
  { noun: "Label", single: "/user/label", plural: "/user/labels" },
];
const link = (noun: string, id: number) =>
  noun === "Folder" ? { folder_id: id } : { label_ids: [id] };

async function create(path: string, key: string, name: string): Promise<number> {
  const { status, body } = await server.call("POST", path, { key, body: { name } });
  assert.equal(status, 201);
  return body.data.id;
}

test("[AS50] a group is created with a name and a color and listed with its number of assistants", async () => {
  for (const { noun, single, plural } of KINDS) {
    const { key } = await server.newAccount();
    const { status, body } = await server.call("POST", single, {
      key, body: { name: " Sales ", color: "teal" },
    });
    const { id } = body.data;
    const group = { id, name: "Sales", color: "teal", assistants_count: 0 };
    assert.deepEqual(
      [status, body], [201, { message: `${noun} created successfully`, data: group }]);
    const plain = await create(plural, key, "Support");
    const first = await newAssistant(server, link(noun, id), key);
    await newAssistant(server, link(noun, id), key);
    await server.call("DELETE", `/user/assistant/${first.id}`, { key });
    const list = await server.call("GET", plural, { key });
    assert.equal(list.status, 200);
    assert.deepEqual(list.body.data, [
      { ...group, assistants_count: 1 },
      { id: plain, name: "Support", color: null, assistants_count: 0 },
    ]);
    assert.deepEqual(
      [list.body.per_page, list.body.total, list.body.path],
      [15, 2, `${server.url}/api${plural}`]);
    const page = await server.call("GET", `${plural}?per_page=1&page=2`, { key });
    assert.deepEqual(page.body.data.map(({ id: listed }: { id: number }) => listed), [plain]);
    assert.equal(page.body.from, 2);
  }
});

test("[AS51] a name is required, has at most 255 characters and is unique within the account", async () => {
  for (const { single, plural } of KINDS) {
    const { key } = await server.newAccount();
    const id = await create(single, key, "One");
    const refusals: [object, string, string][] = [
      [{}, "name", "The name field is required."],
      [{ name: " " }, "name", "The name field is required."],
      [{ name: "a".repeat(256) }, "name", "The name may not be greater than 255 characters."],
      [{ name: "Two", color: "mauve" }, "color",
        `The selected color is invalid: it is one of ${COLORS.join(", ")}.`],
      [{ name: "One" }, "name", "The name has already been taken."],
      [{ name: "One " }, "name", "The name has already been taken."],
    ];
    for (const [body, field, message] of refusals) {
      const reply = await server.call("POST", plural, { key, body });
      assert.deepEqual(
        [reply.status, reply.body], [422, { message, errors: { [field]: [message] } }]);
    }
    const two = await create(single, key, "Two");
    const renamed = await server.call("PUT", `${single}/${two}`, { key, body: { name: "One" } });
    assert.deepEqual(
      [renamed.status, renamed.body.message], [422, "The name has already been taken."]);
    const same = await server.call("PUT", `${single}/${id}`, { key, body: { name: "One" } });
    assert.equal(same.status, 200);
    await create(single, (await server.newAccount()).key, "One");
  }
});

test("[AS52] of many concurrent requests to create one name, one succeeds", async () => {
  for (const { single } of KINDS) {
    const { key } = await server.newAccount();
    const replies = await Promise.all(Array.from({ length: 8 }, () =>
      server.call("POST", single, { key, body: { name: "Same" } })));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, ...Array(7).fill(422)]);
  }
});

test("[AS53] an update changes only what was sent; null clears the color", async () => {
  for (const { noun, single, plural } of KINDS) {
    const { key } = await server.newAccount();
    const { body: made } = await server.call("POST", single, {
      key, body: { name: "Old", color: "pink" },
    });
    const { id } = made.data;
    await newAssistant(server, link(noun, id), key);
    const renamed = await server.call("PUT", `${plural}/${id}`, { key, body: { name: "New" } });
    const data = { id, name: "New", color: "pink", assistants_count: 1 };
    assert.deepEqual(
      [renamed.status, renamed.body], [200, { message: `${noun} updated successfully`, data }]);
    const cleared = await server.call("PUT", `${single}/${id}`, { key, body: { color: null } });
    assert.deepEqual(cleared.body.data, { ...data, color: null });
    const blank = await server.call("PUT", `${single}/${id}`, { key, body: { name: "" } });
    assert.deepEqual(
      [blank.status, blank.body.message], [422, "The name field is required."]);
  }
});

test("[AS54] deleting a group leaves its assistants and removes only the link", async () => {
  for (const { noun, single } of KINDS) {
    const { key } = await server.newAccount();
    const [id, kept] = [await create(single, key, "Gone"), await create(single, key, "Kept")];
    const linked = noun === "Folder" ? { folder_id: id } : { label_ids: [id, kept] };
    const assistant = await newAssistant(server, linked, key);
    const path = `/user/assistant/${assistant.id}`;
    const before = (await server.call("GET", path, { key })).body;
    const gone = await server.call("DELETE", `${single}/${id}`, { key });
    assert.deepEqual(
      [gone.status, gone.body], [200, { message: `${noun} deleted successfully` }]);
    const then = (await server.call("GET", path, { key })).body;
    const without = noun === "Folder" ? { folder_id: null } : { label_ids: [kept] };
    assert.deepEqual(then, { ...before, ...without, updated_at: then.updated_at });
    const again = await server.call("DELETE", `${single}/${id}`, { key });
    assert.deepEqual([again.status, again.body], [404, { message: `${noun} not found` }]);
  }
});

test("[AS55] an assistant's labels and folder are replaced as a whole", async () => {
  const { key } = await server.newAccount();
  const [a, b] = [await create("/user/label", key, "a"), await create("/user/label", key, "b")];
  const folder = await create("/user/folder", key, "f");
  const { id } = await newAssistant(server, { label_ids: [b, a, b], folder_id: folder }, key);
  const path = `/user/assistant/${id}`;
  const read = async () => {
    const { body } = await server.call("GET", path, { key });
    return [body.label_ids, body.folder_id];
  };
  assert.deepEqual(await read(), [[a, b], folder]);
  await server.call("PUT", path, { key, body: { label_ids: [b] } });
  assert.deepEqual(await read(), [[b], folder]);
  await server.call("PUT", path, { key, body: { label_ids: [], folder_id: null } });
  assert.deepEqual(await read(), [[], null]);
});

test("[AS56] another account's key gets 404 on groups and changes nothing", async () => {
  for (const { noun, single, plural } of KINDS) {
    const owner = await server.newAccount();
    const id = await create(single, owner.key, "Mine");
    const assistant = await newAssistant(server, link(noun, id), owner.key);
    const read = async () => [
      (await server.call("GET", plural, { key: owner.key })).body.data,
      (await server.call("GET", `/user/assistant/${assistant.id}`, { key: owner.key })).body,
    ];
    const before = await read();
    const { key } = await server.newAccount();
    for (const path of [`${single}/${id}`, `${plural}/${id}`]) {
      for (const [method, body] of [["PUT", { name: "Theirs" }], ["DELETE", undefined]] as const) {
        const reply = await server.call(method, path, { key, ...(body ? { body } : {}) });
        assert.deepEqual([reply.status, reply.body], [404, { message: `${noun} not found` }]);
      }
    }
    assert.deepEqual((await server.call("GET", plural, { key })).body.data, []);
    assert.deepEqual(await read(), before);
  }
});
