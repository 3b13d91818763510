// Files visitors attach: which are taken, who reads them and how, what the model sees of them, and
// when they are gone. Through the real server.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { createSystem } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import { createAttachments, fileNameOf } from "#features/conversations/attachments.ts";
import type { Files } from "#files/files.ts";
import { newAssistant, newConversation, openBeside, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";
import { faultOf, FILE_MB_MAX, FILES_MAX } from "#ui/attachments.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: {
    PARLEY_MODEL_URL: model.url, PARLEY_MODEL_SEES: "image",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  },
});
after(async () => {
  await server.close();
  await model.close();
});

const PNG = Buffer.concat([
  Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), Buffer.from("a picture"),
]);
const PDF = Buffer.from("%PDF-1.7 a bill");
const ALLOWED = { widget_settings: { attachments: true } };

async function upload(
  uuid: string, bytes: Buffer, name: string, type = "image/png", key: string | null = null,
) {
  const form = new FormData();
  form.set("file", new Blob([new Uint8Array(bytes)], { type }), name);
  const response = await fetch(
    `${server.url}/api${key === null ? "" : "/user"}/conversations/${uuid}/attachments`, {
      method: "POST", body: form, headers: key === null ? {} : { Authorization: `Bearer ${key}` },
    });
  const body = await response.json() as {
    attachment: { id: string; name: string; type: string; bytes: number }; message?: string;
  };
  return { status: response.status, body };
}
const fresh = async (settings: object = ALLOWED): Promise<string> =>
  newConversation(server, (await newAssistant(server, settings as Record<string, unknown>)).uuid);
const send = (uuid: string, body: object, key?: string) =>
  server.call("POST", `/conversations/${uuid}/messages`, {
    body, ...key === undefined ? {} : { headers: { "Idempotency-Key": key } },
  });
const kept = (): string[] => readdirSync(join(server.dataDir, "attachments"));

test("[CV140] images and PDFs attach where the owner allows it, recognised by their bytes and bounded", async () => {
  const closed = await fresh({});
  const before = kept().length;
  assert.equal((await upload(closed, PNG, "a.png")).status, 403);
  assert.equal((await upload("0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11", PNG, "a.png")).status, 404);
  const uuid = await fresh();
  for (const [bytes, name] of [["<svg onload=alert(1)>", "a.png"], ["<script>", "a.pdf"], ["MZ", "a.exe"], ["", "a.png"]] as const) {
    assert.equal((await upload(uuid, Buffer.from(bytes), name)).status, 422, name);
  }
  const large = Buffer.concat([PNG, Buffer.alloc(LIMITS.attachmentBytesMax)]);
  const tooLarge = await upload(uuid, large, "a.png");
  assert.ok(tooLarge.status === 413 || tooLarge.status === 422, String(tooLarge.status));
  assert.equal(kept().length, before, "nothing of it stays");
  const { status, body } = await upload(uuid, PNG, "../..\\etc/pass\u0000wd x.png", "text/html");
  assert.equal(status, 201);
  const { id, ...rest } = body.attachment;
  assert.deepEqual(rest, { name: "passwd x.png", type: "image/png", bytes: PNG.length });
  assert.deepEqual(kept().includes(id), true);
  assert.equal((await send(uuid, { message: "", attachments: Array(5).fill(id) })).status, 422);
  assert.equal((await send(uuid, { message: " " })).status, 422);
  const other = await fresh();
  assert.equal((await send(other, { message: "x", attachments: [id] })).status, 422, "another's");
});

test("[CV153] uploads count towards the conversation's limit of messages, however its id is written", async () => {
  const limited = await startTestServer({
    env: { PARLEY_RATE_LIMITS: "on", PARLEY_RATE_CONVERSATION_PER_MINUTE: "2" },
  });
  const uuid = await newConversation(limited, (await newAssistant(limited, ALLOWED)).uuid);
  const uploads = [];
  for (const id of [uuid, uuid.toUpperCase(), uuid]) {
    const form = new FormData();
    form.set("file", new Blob([PNG]), "a.png");
    const path = `${limited.url}/api/conversations/${id}/attachments`;
    uploads.push((await fetch(path, { method: "POST", body: form })).status);
  }
  await limited.close();
  assert.deepEqual(uploads, [201, 201, 429]);
});

test("[CV141] a message with files costs as any other, shows them in history and event, and repeats as one", async () => {
  const uuid = await fresh();
  const { body: { attachment } } = await upload(uuid, PDF, "bill.pdf");
  model.script(() => ({ tokens: ["Seen."] }));
  const first = await send(uuid, { message: "", attachments: [attachment.id] }, "k1");
  assert.equal(first.body.message, "Seen.");
  const again = await send(uuid, { message: "", attachments: [attachment.id] }, "k1");
  assert.equal(again.headers.get("idempotency-replayed"), "true");
  assert.equal((await send(uuid, { message: "x", attachments: [] }, "k1")).status, 422);
  const { body: { data } } = await server.call("GET", `/user/conversations/${uuid}`);
  assert.equal(data.total_cost, 0.01);
  const { body } = await server.call("GET", `/conversations/${uuid}`);
  assert.deepEqual(body.history[1], { role: "user", content: "", attachments: [attachment] });
  const record = await server.call("GET", `/user/conversations/${uuid}/messages`);
  assert.deepEqual(record.body.data[1].attachments,
    [attachment]);
});

test("[CV142] anyone with the conversation can read its files, but never as a page", async () => {
  const uuid = await fresh();
  const [image, pdf] = [await upload(uuid, PNG, "ä b.png"), await upload(uuid, PDF, "bill.pdf")];
  const read = (of: string, id: string) =>
    fetch(`${server.url}/api/conversations/${of}/attachments/${id}`);
  const shown = await read(uuid, image.body.attachment.id);
  assert.equal(shown.headers.get("content-type"), "image/png");
  assert.equal(shown.headers.get("x-content-type-options"), "nosniff");
  assert.match(shown.headers.get("content-security-policy") ?? "", /default-src 'none'; sandbox/);
  assert.equal(shown.headers.get("content-disposition"),
    "inline; filename=\"_ b.png\"; filename*=UTF-8''%C3%A4%20b.png");
  assert.deepEqual(Buffer.from(await shown.arrayBuffer()), PNG);
  const saved = await read(uuid, pdf.body.attachment.id);
  assert.match(saved.headers.get("content-disposition") ?? "", /^attachment;/);
  await saved.body?.cancel();
  for (const [of, id] of [
    [await fresh(), image.body.attachment.id], [uuid, "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11"],
    [uuid, "..%2f..%2fsecret"],
  ] as const) {
    const { status } = await read(of, id);
    assert.equal(status, 404, id);
  }
});

test("[CV143] a model sees the files it can read, also in later turns, and is told of the others", async () => {
  const uuid = await fresh();
  const ids = [
    (await upload(uuid, PNG, "bike.png")).body.attachment.id,
    (await upload(uuid, PDF, "bill.pdf")).body.attachment.id,
  ];
  const asked: unknown[] = [];
  model.script((body) => {
    asked.push((body.messages as { role: string; content: unknown }[])
      .filter(({ role }) => role === "user").map(({ content }) => content));
    return { tokens: ["A bike."] };
  });
  await send(uuid, { message: "What is it?", attachments: ids });
  await send(uuid, { message: "Really?" });
  const question = [
    {
      type: "text",
      text: "What is it?\n[The visitor attached \"bill.pdf\" (application/pdf), which you cannot see. "
        + "People of the team can.]",
    },
    { type: "image_url", image_url: { url: `data:image/png;base64,${PNG.toString("base64")}` } },
  ];
  assert.deepEqual(asked, [[question], [question, "Really?"]]);
});

test("[CV145] people at the desk send the file types visitors may, once per key, and the model is told", async () => {
  const uuid = await fresh({});
  const asPerson = (bytes: Buffer, name: string, key = server.key) =>
    upload(uuid, bytes, name, "application/pdf", key);
  const say = (body: object) => server.call("POST", `/user/conversations/${uuid}/messages`, {
    body, headers: { "Idempotency-Key": "p1" },
  });
  const stranger = (await server.newAccount()).key;
  assert.equal((await asPerson(PDF, "offer.pdf", stranger)).status, 404);
  assert.equal((await asPerson(Buffer.from("MZ"), "offer.exe")).status, 422);
  const { status, body: { attachment } } = await asPerson(PDF, "offer.pdf");
  assert.equal(status, 201);
  const elsewhere = await server.call("POST", `/user/conversations/${await fresh()}/messages`, {
    body: { message: "x", attachments: [attachment.id] },
  });
  assert.equal(elsewhere.status, 422, "of another conversation");
  assert.equal((await say({ message: " ", attachments: [] })).status, 422);
  const said = await say({ message: "", attachments: [attachment.id] });
  assert.equal(said.status, 201);
  assert.deepEqual(said.body.message.attachments, [attachment]);
  const again = await say({ message: "", attachments: [attachment.id] });
  assert.equal(again.headers.get("idempotency-replayed"), "true");
  assert.equal((await say({ message: "", attachments: [(await asPerson(PDF, "b.pdf")).body.attachment.id] })).status, 422);
  const { body } = await server.call("GET", `/conversations/${uuid}`);
  const { author, ...shown } = body.history.at(-1);
  assert.deepEqual(shown, { role: "operator", content: "", attachments: [attachment] });
  await server.call("POST", `/user/conversations/${uuid}/hand-back`);
  let heard = "";
  model.script((asked) => {
    heard = JSON.stringify(asked.messages);
    return { tokens: ["It is an offer."] };
  });
  await send(uuid, { message: "What is that?" });
  assert.ok(heard.includes(`[${author.name}, a colleague]: \\n[The colleague attached`), heard);
});

test("[CV146] pages refuse files by the server's own limits", () => {
  assert.deepEqual([FILES_MAX, FILE_MB_MAX * 1024 * 1024],
    [LIMITS.attachmentsOfMessageMax, LIMITS.attachmentBytesMax]);
  const file = { type: "image/png", size: LIMITS.attachmentBytesMax };
  assert.equal(faultOf(file), null);
  assert.equal(faultOf({ ...file, size: file.size + 1 }), "large");
  assert.equal(faultOf({ ...file, type: "image/svg+xml" }), "kind");
});

test("[CV144] unsent attachments are removed after a day, as are those whose conversation is gone", async () => {
  const uuid = await fresh();
  const sent = (await upload(uuid, PNG, "sent.png")).body.attachment.id;
  await send(uuid, { message: "Here", attachments: [sent] });
  const unsent = (await upload(uuid, PNG, "unsent.png")).body.attachment.id;
  const { attachments, conversations } = server.app.features;
  const { id: conversationId, accountId } = await conversations.get(uuid);
  const gone = await attachments.keep({ id: conversationId + 1_000_000, accountId }, {
    path: join(server.dataDir, "attachments", sent), name: "gone.png", bytes: PNG.length,
  });
  await attachments.sweep();
  assert.equal(kept().includes(gone.id), false, "its conversation is not there");
  assert.equal(kept().includes(unsent), true, "it is young");
  assert.equal(kept().includes(sent), true);
});

test("[SO63] an attachment sent while unsent ones are being removed stays", async (t) => {
  const uuid = await fresh();
  const unsent = (await upload(uuid, PNG, "unsent.png")).body.attachment.id;
  const late = (await upload(uuid, PNG, "late.png")).body.attachment.id;
  const beside = await openBeside(server.dataDir);
  t.after(() => beside.close());
  const removed: string[] = [];
  const system = createSystem();
  const attachments = createAttachments({
    store: beside.attachments, files: {} as Files,
    removals: {
      expect: async () => undefined,
      remove: async (name) => {
        removed.push(name);
        if (name === fileNameOf(unsent)) await send(uuid, { message: "Here", attachments: [late] });
      },
    },
    system: { ...system, now: () => system.now() + 2 * DAY_MICROS },
  });
  await attachments.sweep();
  assert.ok(removed.includes(fileNameOf(unsent)));
  assert.equal(removed.includes(fileNameOf(late)), false);
  const { id } = await server.app.features.conversations.get(uuid);
  const found = await beside.attachments.find(id, [unsent, late]);
  assert.deepEqual(found.map((one) => one.id), [late]);
});

test("[WH312] a conversation that ended is sent with its files, each with an address to download it from", async (t) => {
  const receiver = await startWebhookReceiver();
  t.after(receiver.close);
  const uuid = await fresh({
    ...ALLOWED, conversation_ended_webhook_url: receiver.url, post_call_evaluation: false,
  });
  const image = (await upload(uuid, PNG, "a.png")).body.attachment;
  const unsent = (await upload(uuid, PNG, "unsent.png")).body.attachment;
  const bill = (await upload(uuid, PDF, "bill.pdf")).body.attachment;
  await send(uuid, { message: "A picture", attachments: [image.id] });
  await send(uuid, { message: "The bill", attachments: [bill.id] });
  await server.call("POST", `/user/conversations/${uuid}/end`);
  const [message] = await receiver.until(1);
  const files = message?.body.attachments as { url: string }[];
  const root = `${server.url}/api/conversations/${uuid}/attachments`;
  assert.deepEqual(files, [
    { id: image.id, type: "image", filename: "a.png", url: `${root}/${image.id}` },
    { id: bill.id, type: "document", filename: "bill.pdf", url: `${root}/${bill.id}` },
  ], `without ${unsent.id}`);
  const contents = await Promise.all(files.map(async ({ url }) =>
    Buffer.from(await (await fetch(url)).arrayBuffer())));
  assert.deepEqual(contents, [PNG, PDF]);
});
