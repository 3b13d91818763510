// Secrets on the wire: an account that has every kind of them, read through every GET of the
// OpenAPI document by a key that only reads, and by one that may write.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { accountEvent } from "#support/account-events.ts";
import type { Document } from "#support/document.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { newTrunk } from "#support/sip/sip-trunks.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const SECRETS: Record<string, string> = {
  header: "hush-header-1f0c", field: "hush-field-2e1d", trunk: "hush-trunk-3d2e",
  calcom: "cal_live_hush4c3f", server: "hush-server-5b4a", model: "hush-model-6a5b",
};
const endpoint = await startEndpoint();
const receiver = await startWebhookReceiver();
const model = await startScriptedModel();
const server = await startTestServer({
  env: {
    PARLEY_SPEECH: "loopback", PARLEY_MODEL_URL: model.url,
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
    PARLEY_SECRET: SECRETS.server ?? "", PARLEY_MODEL_KEY: SECRETS.model ?? "",
  },
});
after(async () => {
  await server.close();
  await Promise.all([model.close(), endpoint.close(), receiver.close()]);
});
model.script(({ messages }) => {
  const { role, content } = messages.at(-1) ?? {};
  if (role === "tool") return { tokens: ["Done."] };
  const name = content === "Good bye" ? "end_conversation" : "order_status";
  return { toolCalls: [{ id: "c1", name, arguments: "{}" }] };
});

async function made(path: string, body: object): Promise<Record<string, unknown>> {
  const answer = await server.call("POST", path, { body });
  assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`);
  return answer.body as Record<string, unknown>;
}
const idOf = ({ data }: Record<string, unknown>): number => (data as { id: number }).id;

/** What the account has: the values of the paths' placeholders, by the beginning of a path. */
type Places = Record<string, Record<string, unknown>>;

async function newTalkingAssistant() {
  const tool = idOf(await made("/user/tools", {
    name: "order_status", description: "Where it is", method: "POST", endpoint: endpoint.url,
    headers: [{ name: "Authorization", value: `Bearer ${SECRETS.header}` }],
    static_fields: [{ key: "tenant", value: SECRETS.field }],
  }));
  const assistant = await newAssistant(server, {
    status: "active", record: true, post_call_evaluation: false, tool_ids: [tool],
    widget_settings: { attachments: true },
    is_webhook_active: true, webhook_url: receiver.url, inbound_webhook_url: receiver.url,
    conversation_ended_webhook_url: receiver.url,
    tools: [
      { type: "end_call", description: "" },
      { type: "calendar_integration", calcom_api_key: SECRETS.calcom, calcom_event_slug: "intro" },
    ],
  });
  return { tool, ...assistant };
}

/** A chat whose model calls the tool and ends it, and a call that is answered and ended. */
async function talkWith({ id, uuid }: { id: number; uuid: string }) {
  const conversation = await newConversation(server, uuid);
  for (const message of ["Where is it?", "Good bye"]) {
    await made(`/conversations/${conversation}/messages`, { message });
  }
  const { call_id: call } = await made("/user/try_call", { assistant_id: id, lines: ["Hello?"] });
  await accountEvent(server, ({ type, call_id: of }) => type === "transcript_added" && of === call);
  await made(`/user/calls/${String(call)}/end`, {});
  await accountEvent(server, ({ type, call_id: of }) => type === "call_ended" && of === call);
  return { conversation, call: Number(call) };
}

async function uploaded(
  path: string, file: { name: string; text: string }, fields: Record<string, string> = {},
): Promise<Record<string, unknown>> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set("file", new Blob([file.text]), file.name);
  const response = await fetch(`${server.url}/api${path}`, {
    method: "POST", headers: { Authorization: `Bearer ${server.key}` }, body: form,
  });
  assert.equal(response.status, 201);
  return await response.json() as Record<string, unknown>;
}

const newDocument = async (knowledgebase: number): Promise<number> => idOf(await uploaded(
  `/user/knowledgebases/${knowledgebase}/documents`,
  { name: "notes.txt", text: "Open from nine to five." }, { name: "Notes", type: "txt" }));

async function newAttachment(conversation: string): Promise<string> {
  const { attachment } = await uploaded(
    `/conversations/${conversation}/attachments`, { name: "bill.pdf", text: "%PDF-1.7 a bill" });
  return (attachment as { id: string }).id;
}

const read = async (path: string) => {
  const { status, body } = await server.call("GET", path);
  assert.equal(status, 200, path);
  return body;
};

/** Adds to `SECRETS` those the server makes itself. */
async function newPossessions(): Promise<Places> {
  const trunk = await newTrunk(server, { sip_password: SECRETS.trunk });
  const hook = idOf(await made("/user/webhook-endpoints", { url: receiver.url, events: ["*"] }));
  const { tool, ...assistant } = await newTalkingAssistant();
  const { conversation, call } = await talkWith(assistant);
  const knowledgebase = idOf(await made("/user/knowledgebases", { name: "Manual" }));
  const campaign = idOf(await made("/user/campaigns", {
    name: "Spring", assistant_id: (await newAssistant(server, { type: "outbound" })).id,
  }));
  const lead = idOf(await made("/user/lead", { campaign_id: campaign, phone_number: "+15550100042" }));
  await made("/user/folder", { name: "Desks" });
  await made("/user/label", { name: "Day" });
  const { api_key: other } = await made("/user/api-keys", { name: "Another" });
  SECRETS.key = (other as { token: string }).token;
  SECRETS.session = String((await made("/user/dashboard-sessions", {})).token);
  const { data: hooks } = await read("/user/webhook-endpoints");
  for (const { purpose, secret } of hooks) SECRETS[purpose] = secret;
  const deliveries = await read("/user/webhook-deliveries");
  const { data: { feed_url: feed } } = await read(`/user/assistants/${assistant.id}/calendar`);
  SECRETS.feed = String(feed.split("/").at(-1));
  const { recording_url: recording } = await read(`/user/calls/${call}`);
  const link = new URL(recording);
  return {
    "/voices/": { id: 1 }, "/widget/": assistant, "/v1/models/": { model: assistant.uuid },
    "/user/assistant/": assistant, "/user/assistants/": assistant, "/user/tools/": { id: tool },
    "/user/phone-numbers/": trunk, "/user/leads/": { id: lead }, "/user/campaign/": { id: campaign },
    "/user/knowledgebases/": { id: knowledgebase, document_id: await newDocument(knowledgebase) },
    "/user/campaigns/": { id: campaign }, "/calendars/": { uuid: SECRETS.feed },
    "/conversations/": {
      uuid: conversation, chat: "one", attachment_id: await newAttachment(conversation),
    },
    "/user/conversations/": { uuid: conversation }, "/user/calls/": { id: call },
    "/user/webhook-endpoints/": { id: hook },
    "/user/webhook-deliveries/": { id: deliveries.data[0].id },
    "/recordings/": { uuid: link.pathname.split("/").at(-1), query: link.search },
  };
}

/** How far each stream is read: to the newest of what the account has. */
async function endOf(path: string): Promise<string> {
  const ends: Record<string, string> = {
    "/user/stream": `id: ${(await read("/user/events?limit=500")).next}\n`,
    "/user/audit/stream": `id: ${(await read("/user/audit")).data[0].number}\n`,
    "/conversations/{uuid}/stream": "conversation_ended",
    "/user/calls/{id}/stream": "call_ended",
  };
  return ends[path] ?? assert.fail(`${path} streams: to where is it to be read?`);
}

async function textOf(path: string, response: Response): Promise<string> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (!isStream || !response.body) return response.text();
  const end = await endOf(path);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes(end)) {
    const { value, done } = await reader.read();
    assert.equal(done, false, `${path} ended at ${text}`);
    text += value;
  }
  await reader.cancel();
  return text;
}

function addressOf(path: string, places: Places): string {
  const [place = ""] = Object.keys(places).filter((one) => path.startsWith(one));
  const { query = path.endsWith("/stream") ? "?after=0" : "", ...values } = places[place] ?? {};
  const whole = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    String(values[name] ?? assert.fail(`${path}: make the ${name} it is to be asked for`)));
  return whole + String(query);
}

/** Each GET of the document, asked with the key: what it answered. */
async function answersTo(key: string, places: Places): Promise<Map<string, string>> {
  const { paths, servers } = server.app.openApi() as unknown as Document;
  const answers = new Map<string, string>();
  for (const [path, item] of Object.entries(paths)) {
    if (!item.get) continue;
    const { servers: own = servers } = item as { servers?: Document["servers"] };
    const root = (own[0]?.url ?? "").replace(/\/$/, "");
    const response = await fetch(server.url + root + addressOf(path, places), {
      headers: { Authorization: `Bearer ${key}` },
    });
    const text = await textOf(path, response);
    assert.ok(response.ok, `${path} answered ${response.status}: ${text}`);
    answers.set(path, JSON.stringify([...response.headers]) + text);
  }
  return answers;
}

const foundIn = (answers: Map<string, string>): Record<string, string[]> =>
  Object.fromEntries([...answers]
    .map(([path, text]): [string, string[]] => [
      path, Object.keys(SECRETS).filter((name) => text.includes(SECRETS[name] ?? "")).sort(),
    ])
    .filter(([, names]) => names.length > 0));

test("[SE63] a read-only key sees no secret; a key that may write sees only those it may", async () => {
  const places = await newPossessions();
  const { accounts } = server.app.features;
  const reader = await accounts.createKey(server.accountId, "reads", { scopes: ["read"] });
  const answers = await answersTo(reader.token, places);
  assert.ok(answers.size > 60, String(answers.size));
  assert.deepEqual(foundIn(answers), {});
  for (const [path, masked] of [
    ["/user/assistant/{id}", '"calcom_api_key":"***"'], ["/user/tools/{id}", '"value":"***"'],
    ["/user/webhook-endpoints/{id}", '"secret":"***"'],
    ["/user/assistants/{id}/calendar", '/calendars/***"'],
  ] as const) assert.ok(answers.get(path)?.includes(masked), `${path}: ${answers.get(path)}`);

  // The same walk finds what is shown to who may change it, so it would have found it above.
  const signing = ["account", "conversation_ended", "inbound_call", "post_call"];
  assert.deepEqual(foundIn(await answersTo(server.key, places)), {
    "/user/assistants/{id}/calendar": ["feed"],
    "/user/tools": ["field", "header"], "/user/tools/{id}": ["field", "header"],
    "/user/webhook-endpoints": signing, "/user/webhook-endpoints/{id}": ["account"],
  });
});
