// Assistants over HTTP: create, lists, update, delete, toggles, tenants, races.
import { Value } from "@sinclair/typebox/value";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { AssistantSchema } from "#features/assistants/wire.ts";
import { insertBeside } from "#support/databases/beside.ts";
import { assistantBody, newAssistant, startTestServer } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NOT_FOUND = { message: "Assistant not found" };
const NOT_YOURS = {
  message: "Assistant not found or does not belong to the authenticated user",
};

/** The server of these tests has no model; assistants of assistantBody name the default one. */
const NO_MODEL = [{
  field: "llm_model_id",
  message: "Another model answers instead of this one. "
    + "The setting PARLEY_MODEL_URL is not set on this server.",
}];

const addNumber = (accountId: number, number: string, type = "normal"): Promise<number> =>
  insertBeside(server.dataDir, `
    INSERT INTO phone_numbers (account_id, phone_number, country_code, type, created_at)
    VALUES (@accountId, @number, 'US', @type, 1)`, { accountId, number, type });

const read = async (id: number, key = server.key) =>
  (await server.call("GET", `/user/assistant/${id}`, { key })).body;
const change = (id: number, body: object, method = "PUT") =>
  server.call(method, `/user/assistant/${id}`, { body });

test("[AS1] creating without the required fields names each of them", async () => {
  const { status, body } = await server.call("POST", "/user/assistant", { body: {} });
  assert.equal(status, 422);
  assert.deepEqual(body, {
    message: "Validation failed",
    errors: {
      name: ["The name field is required."],
      system_prompt: ["The system prompt field is required."],
    },
  });
  const blank = await server.call("POST", "/user/assistant", {
    body: assistantBody({ name: "  ", system_prompt: "" }),
  });
  assert.equal(blank.status, 422);
  assert.deepEqual(Object.keys(blank.body.errors).sort(), ["name", "system_prompt"]);
  assert.deepEqual((await server.call("GET", "/user/assistants")).body, []);
});

test("[AS203] a name and a prompt are enough for an assistant that answers; the defaults fit together", async () => {
  const { status, body } = await server.call("POST", "/user/assistant", {
    body: { name: "Front desk", system_prompt: "Be brief." },
  });
  assert.equal(status, 201, JSON.stringify(body));
  const made = await read(body.data.id);
  assert.deepEqual(
    [made.type, made.mode, made.timezone, made.language_id, made.initial_message, made.status],
    ["inbound", "pipeline", "UTC", 1, "", "inactive"]);
  const begun = await server.call("POST", "/conversations", { body: { assistant_id: made.uuid } });
  assert.equal(begun.status, 200, JSON.stringify(begun.body));
  const { body: languages } = await server.call("GET", "/user/assistants/languages");
  for (const mode of ["pipeline", "multimodal", "dualplex"]) {
    for (const { id: languageId } of languages as { id: number }[]) {
      const one = await server.call("POST", "/user/assistant", {
        body: { name: "One", system_prompt: "Be brief.", mode, language_id: languageId },
      });
      assert.equal(one.status, 201, `${mode} ${languageId}: ${JSON.stringify(one.body)}`);
      await server.call("DELETE", `/user/assistant/${one.body.data.id}`);
    }
  }
  await server.call("DELETE", `/user/assistant/${made.id}`);
});

test("[AS446] a language that does not exist is all that is refused: no voice was asked for", async () => {
  const refusal = {
    message: "Validation failed",
    errors: { language_id: ["The selected language id is invalid."] },
  };
  const made = await server.call("POST", "/user/assistant", {
    body: { name: "One", system_prompt: "Be brief.", language_id: 999 },
  });
  assert.deepEqual([made.status, made.body], [422, refusal]);
  const set = await server.call("POST", "/user/template-sets", {
    body: { template: "support", language_id: 999 },
  });
  assert.deepEqual([set.status, set.body], [422, refusal]);
});

test("[AS2] a new assistant is inactive and is answered with its ids", async () => {
  const { status, body } = await server.call("POST", "/user/assistant", {
    body: assistantBody({ name: " Front desk ", type: "outbound" }),
  });
  assert.equal(status, 201);
  const { id, uuid } = body.data;
  assert.match(uuid, UUID);
  assert.deepEqual(body, {
    message: "Assistant created successfully",
    data: {
      id, uuid, name: "Front desk", status: "inactive", type: "outbound", mode: "pipeline",
    },
    warnings: NO_MODEL,
  });
});

test("[AS3] the record has the contract's fields, types and defaults", async () => {
  const { id, uuid } = await newAssistant(server, { tools: [{ type: "end_call" }] });
  const { status, body } = await server.call("GET", `/user/assistant/${id}`);
  assert.equal(status, 200);
  assert.match(body.created_at, ISO);
  assert.equal(body.updated_at, body.created_at);
  assert.deepEqual([...Value.Errors(AssistantSchema, body)], [], "what OpenAPI prints is true");
  const { created_at: _, updated_at: __, post_call_schema: schema, filler_config: fillers, ...rest }
    = body;
  assert.deepEqual(
    schema.map(({ name, type }: { name: string; type: string }) => [name, type]),
    [["status", "bool"], ["summary", "string"]]);
  assert.deepEqual(Object.keys(fillers).sort(), ["negative", "neutral", "positive", "question"]);
  assert.ok(fillers.neutral.length > 0, "English has phrases");
  assert.deepEqual(rest, {
    id, uuid, user_id: server.accountId, name: "Front desk", type: "inbound",
    status: "inactive", mode: "pipeline", folder_id: null, label_ids: [], phone_number_id: null,
    engine_id: null, synthesizer_id: null, transcriber_id: null, instance_id: 1, language: null,
    flows_platform_id: null, secondary_language_ids: [], tool_ids: [],
    tools: [{ type: "end_call", data: {} }], tts_emotion_enabled: true, voice_stability: "0.70",
    voice_similarity: "0.50", speech_speed: "1.00", llm_temperature: "0.10",
    allow_interruptions: true, fillers: 0, record: false, enable_noise_cancellation: true,
    noise_cancellation: "web",
    wait_for_customer: false, max_duration: 600, max_silence_duration: 40, ringing_time: 30,
    reengagement_interval: 30, end_call_on_voicemail: 1, endpoint_type: "vad",
    endpoint_sensitivity: 0.5, interrupt_sensitivity: 0.5, min_interrupt_words: 0,
    ambient_sound: "off", ambient_sound_volume: "0.50", is_webhook_active: false,
    send_webhook_only_on_completed: true, include_recording_in_webhook: true,
    post_call_evaluation: true, variables: {}, conversation_inactivity_timeout: 30,
    conversation_ended_retrigger: false,
    widget_settings: { theme: "modern", color: "#2563eb", position: "bottom-right" },
    llm_model_id: 1, multimodal_model_id: null, chat_llm_fallback_id: null,
    turn_detection_threshold: null, knowledgebase_id: null, knowledgebase_mode: null,
    synthesizer_provider_id: null, transcriber_provider_id: null,
    max_initial_silence_duration: null, recogniser_hints: [],
    reengagement_prompt: null, voice_mail_message: null, warnings: NO_MODEL,
    webhook_url: null, inbound_webhook_url: null, conversation_ended_webhook_url: null,
    desk: {
      visitor_may_ask: false, assistant_may_ask: false, after_tool_failures: null,
      after_unanswered: null, words: [], notify_emails: [], office_hours: null,
    },
    allowed_origins: null, daily_spend_cap: null, voice_id: 1, language_id: 1, timezone: "UTC",
    initial_message: "Hello", system_prompt: "You are helpful.", deleted_at: null,
  });
});

test("[AS202] the record says which calls get noise cancellation, and sending it back changes nothing", async () => {
  const { id } = await newAssistant(server);
  const { assistants } = server.app.features;
  const states = [];
  for (const sent of [
    {}, { enable_noise_cancellation: true }, { enable_noise_cancellation: false },
    { enable_noise_cancellation: null }, { noise_cancellation: "everywhere" },
    { noise_cancellation: "off" }, { noise_cancellation: null },
    { enable_noise_cancellation: true, noise_cancellation: "web" },
  ]) {
    const { status } = await server.call("PATCH", `/user/assistant/${id}`, { body: sent });
    assert.equal(status, 200);
    const { body } = await server.call("GET", `/user/assistant/${id}`);
    const found = await assistants.find(server.accountId, id);
    const stored = found?.settings.enable_noise_cancellation;
    states.push([body.enable_noise_cancellation, body.noise_cancellation, stored]);
  }
  const [off, web, everywhere] = [
    [false, "off", false], [true, "web", null], [true, "everywhere", true],
  ];
  assert.deepEqual(states, [web, everywhere, off, web, everywhere, off, web, web]);
});

test("[AS4] assistants/get pages the account's records, filtered by type when asked", async () => {
  const { key } = await server.newAccount();
  const ids: number[] = [];
  for (let index = 0; index < 11; index += 1) {
    const type = index % 2 === 0 ? "inbound" : "outbound";
    ids.push((await newAssistant(server, { name: `A${index}`, type }, key)).id);
  }
  const first = await server.call("GET", "/user/assistants/get", { key });
  assert.equal(first.status, 200);
  assert.deepEqual(
    first.body.data.map(({ id }: { id: number }) => id), ids.slice(0, 10));
  const { data: _, links, ...envelope } = first.body;
  const path = `${server.url}/api/user/assistants/get`;
  assert.deepEqual(envelope, {
    current_page: 1, first_page_url: `${path}?page=1`, from: 1, last_page: 2,
    last_page_url: `${path}?page=2`, next_page_url: `${path}?page=2`, path, per_page: 10,
    prev_page_url: null, to: 10, total: 11,
  });
  assert.equal(links.length, 4);
  const filtered = await server.call(
    "GET", "/user/assistants/get?type=outbound&per_page=2&page=3", { key });
  assert.deepEqual(filtered.body.data.map(({ id }: { id: number }) => id), [ids[9]]);
  assert.equal(filtered.body.total, 5);
  const wrong = await server.call("GET", "/user/assistants/get?per_page=101", { key });
  assert.equal(wrong.status, 422);
  assert.deepEqual(wrong.body.errors, {
    per_page: ["The per page may not be greater than 100."],
  });
});

test("[AS5] the unpaged lists are bare arrays: all in full, or the outbound ones in short form", async () => {
  const { key, accountId } = await server.newAccount();
  await newAssistant(server, {}, key);
  const { id } = await newAssistant(server, { type: "outbound", variables: { a: "b" } }, key);
  const all = await server.call("GET", "/user/assistants", { key });
  assert.equal(all.status, 200);
  assert.deepEqual(all.body.map(({ type }: { type: string }) => type), ["inbound", "outbound"]);
  assert.deepEqual(all.body[1], await read(id, key));
  const { status, body } = await server.call("GET", "/user/assistants/outbound", { key });
  assert.equal(status, 200);
  assert.match(body[0].created_at, ISO);
  assert.deepEqual(body, [{
    id, user_id: accountId, name: "Front desk", type: "outbound", mode: "pipeline",
    status: "inactive", voice_id: 1, language_id: 1, timezone: "UTC", initial_message: "Hello",
    system_prompt: "You are helpful.", variables: { a: "b" }, webhook_url: null,
    is_webhook_active: false, created_at: body[0].created_at, updated_at: body[0].updated_at,
  }]);
});

test("[AS6] PUT and PATCH change only the fields that were sent", async () => {
  const { id, uuid } = await newAssistant(server, { max_duration: 100 });
  const before = await read(id);
  const put = await change(id, { name: "Renamed", status: "active", no_such_field: 1, toString: 2 });
  assert.equal(put.status, 200);
  assert.deepEqual(put.body, {
    message: "Assistant updated successfully",
    data: { id, uuid, name: "Renamed", status: "active", type: "inbound", mode: "pipeline" },
    warnings: NO_MODEL,
  });
  assert.equal((await change(id, { system_prompt: "New" }, "PATCH")).status, 200);
  const now = await read(id);
  assert.ok(now.updated_at > before.updated_at);
  assert.deepEqual(now, {
    ...before, name: "Renamed", status: "active", system_prompt: "New", updated_at: now.updated_at,
  });
  assert.equal((await change(id, {})).status, 200);
  assert.equal((await change(id, { name: null })).body.errors.name[0], "The name field is required.");
  assert.equal((await change(id, { name: " " })).body.errors.name[0], "The name field is required.");
});

test("[AS21] a deleted assistant is found nowhere, and its number is free again", async () => {
  const { key, accountId } = await server.newAccount();
  const number = await addNumber(accountId, "+15550001");
  const { id, uuid } = await newAssistant(server, { phone_number_id: number }, key);
  const path = `/user/assistant/${id}`;
  const gone = await server.call("DELETE", path, { key });
  assert.equal(gone.status, 200);
  assert.deepEqual(gone.body, { message: "Assistant deleted successfully" });
  const again = await server.call("DELETE", path, { key });
  assert.deepEqual([again.status, again.body], [404, NOT_YOURS]);
  const found = await server.call("GET", path, { key });
  assert.deepEqual([found.status, found.body], [404, NOT_FOUND]);
  const put = await server.call("PUT", path, { key, body: { name: "x" } });
  assert.deepEqual([put.status, put.body], [404, NOT_FOUND]);
  assert.deepEqual((await server.call("GET", "/user/assistants", { key })).body, []);
  assert.equal((await server.call("GET", "/user/assistants/get", { key })).body.total, 0);
  const chat = await server.call("POST", "/conversations", { body: { assistant_id: uuid } });
  assert.deepEqual(
    [chat.status, chat.body], [404, { status: false, error: "Assistant not found" }]);
  await newAssistant(server, { phone_number_id: number }, key);
});

test("[AS22] another account's key gets 404 on every id route and changes nothing", async () => {
  const { id } = await newAssistant(server);
  const before = await read(id);
  const { key } = await server.newAccount();
  const attempts: [string, string, object | undefined, object][] = [
    ["GET", `/user/assistant/${id}`, undefined, NOT_FOUND],
    ["PUT", `/user/assistant/${id}`, { name: "Mine" }, NOT_FOUND],
    ["PATCH", `/user/assistant/${id}`, { name: "Mine" }, NOT_FOUND],
    ["DELETE", `/user/assistant/${id}`, undefined, NOT_YOURS],
    ...["webhook", "inbound-webhook", "conversation-ended-webhook"].flatMap(
      (hook): [string, string, object, object][] => [
        ["POST", `/user/assistants/enable-${hook}`,
          { assistant_id: id, webhook_url: "https://evil.example/x" }, NOT_FOUND],
        ["POST", `/user/assistants/disable-${hook}`, { assistant_id: id }, NOT_FOUND],
      ]),
  ];
  for (const [method, path, body, expected] of attempts) {
    const reply = await server.call(method, path, { key, ...(body ? { body } : {}) });
    assert.deepEqual([reply.status, reply.body], [404, expected], `${method} ${path}`);
  }
  assert.deepEqual((await server.call("GET", "/user/assistants", { key })).body, []);
  assert.deepEqual(await read(id), before);
  for (const bad of ["0", "abc", "9999999999", "-1", "1.5"]) {
    const reply = await server.call("GET", `/user/assistant/${bad}`);
    assert.deepEqual([reply.status, reply.body], [404, NOT_FOUND], bad);
  }
  const anonymous = await server.call("GET", `/user/assistant/${id}`, { key: null });
  assert.equal(anonymous.status, 401);
});

test("[AS14] an assistant that names rows of another account is refused", async () => {
  const other = await server.newAccount();
  const folder = await server.call("POST", "/user/folder", {
    key: other.key, body: { name: "Theirs" },
  });
  const label = await server.call("POST", "/user/label", {
    key: other.key, body: { name: "Theirs" },
  });
  const number = await addNumber(other.accountId, "+15550002");
  const theirs = await newAssistant(server, {}, other.key);
  const { id } = await newAssistant(server);
  const before = await read(id);
  const references = {
    folder_id: folder.body.data.id,
    label_ids: [label.body.data.id],
    phone_number_id: number,
    knowledgebase_id: 1,
    tool_ids: [1],
    tools: [
      { type: "assistant_transfer", assistant_id: theirs.id },
      {
        type: "warm_call_transfer", supervisor_phone: "+15550100", outbound_phone_id: number,
        description: "x",
      },
    ],
  };
  const errors = {
    folder_id: ["The selected folder id is invalid."],
    "label_ids.0": ["The selected label ids.0 is invalid."],
    phone_number_id: ["The selected phone number id is invalid."],
    knowledgebase_id: ["The selected knowledgebase id is invalid."],
    "tool_ids.0": ["The selected tool ids.0 is invalid."],
    "tools.0.assistant_id": ["The selected tools.0.assistant id is invalid."],
    "tools.1.outbound_phone_id": ["The selected tools.1.outbound phone id is invalid."],
  };
  const put = await change(id, references);
  assert.deepEqual([put.status, put.body], [422, { message: "Validation failed", errors }]);
  const post = await server.call("POST", "/user/assistant", { body: assistantBody(references) });
  assert.deepEqual([post.status, post.body], [422, { message: "Validation failed", errors }]);
  assert.deepEqual(await read(id), before);
});

test("[AS15] an inbound assistant takes a free number that can be called", async () => {
  const { key, accountId } = await server.newAccount();
  const [normal, callerId] = [
    await addNumber(accountId, "+15550003"), await addNumber(accountId, "+15550004", "caller_id"),
  ];
  const post = (changes: object) =>
    server.call("POST", "/user/assistant", { key, body: assistantBody({ ...changes }) });
  const { id } = await newAssistant(server, { phone_number_id: String(normal) }, key);
  assert.equal((await read(id, key)).phone_number_id, normal);
  const taken = await post({ phone_number_id: normal });
  assert.equal(taken.status, 422);
  assert.deepEqual(taken.body.errors, {
    phone_number_id: [
      "The selected phone number is already assigned to another inbound assistant."],
  });
  const shown = await post({ phone_number_id: callerId });
  assert.deepEqual(shown.body.errors, {
    phone_number_id: ["A caller ID number cannot be assigned to an inbound assistant."],
  });
  assert.equal((await post({ phone_number_id: normal, type: "outbound" })).status, 201);
  const outbound = await newAssistant(
    server, { phone_number_id: callerId, type: "outbound" }, key);
  const turned = await server.call(
    "PUT", `/user/assistant/${outbound.id}`, { key, body: { type: "inbound" } });
  assert.deepEqual(Object.keys(turned.body.errors), ["phone_number_id"]);
  // Its own number is not taken by another.
  const same = { key, body: { phone_number_id: normal, name: "Same" } };
  assert.equal((await server.call("PUT", `/user/assistant/${id}`, same)).status, 200);
});

test("[AS26] of many concurrent requests for one number, one inbound assistant gets it", async () => {
  const { key, accountId } = await server.newAccount();
  const number = await addNumber(accountId, "+15550005");
  const replies = await Promise.all(Array.from({ length: 8 }, () =>
    server.call("POST", "/user/assistant", {
      key, body: assistantBody({ phone_number_id: number }),
    })));
  assert.deepEqual(replies.map(({ status }) => status).sort(), [201, ...Array(7).fill(422)]);
  const refused = replies.find(({ status }) => status === 422);
  assert.deepEqual(Object.keys(refused?.body.errors), ["phone_number_id"]);
});

test("[AS25] concurrent updates of different fields lose nothing", async () => {
  const { id } = await newAssistant(server);
  const changes = {
    name: "N", max_duration: 21, ringing_time: 7, record: true, fillers: true,
    llm_temperature: 0.9, ambient_sound: "cafe", min_interrupt_words: 3, timezone: "Asia/Tokyo",
    status: "active", type: "outbound", reengagement_prompt: "Still there?",
  };
  const replies = await Promise.all(
    Object.entries(changes).map(([field, value]) => change(id, { [field]: value })));
  assert.ok(replies.every(({ status }) => status === 200));
  const after = await read(id);
  const expected = { ...changes, fillers: 1, llm_temperature: "0.90" };
  for (const [field, value] of Object.entries(expected)) assert.equal(after[field], value, field);
});

test("[AS23] the webhook toggles set and clear their URL", async () => {
  const { id } = await newAssistant(server);
  const url = "https://hooks.example/one";
  const toggles: [string, string, string, string][] = [
    ["webhook", "webhook_url",
      "Webhook enabled successfully", "Webhook disabled successfully"],
    ["inbound-webhook", "inbound_webhook_url",
      "Webhook enabled successfully", "Inbound webhook disabled successfully"],
    ["conversation-ended-webhook", "conversation_ended_webhook_url",
      "Conversation ended webhook enabled successfully",
      "Conversation ended webhook disabled successfully"],
  ];
  for (const [path, field, enabled, disabled] of toggles) {
    const on = await server.call("POST", `/user/assistants/enable-${path}`, {
      body: { assistant_id: String(id), webhook_url: url },
    });
    assert.deepEqual([on.status, on.body], [200, { message: enabled, data: [] }]);
    const during = await read(id);
    assert.deepEqual([during[field], during.is_webhook_active], [url, path === "webhook"]);
    const off = await server.call("POST", `/user/assistants/disable-${path}`, {
      body: { assistant_id: id },
    });
    assert.deepEqual([off.status, off.body], [200, { message: disabled, data: [] }]);
    const then = await read(id);
    assert.deepEqual([then[field], then.is_webhook_active], [null, false]);
    const missing = await server.call("POST", `/user/assistants/enable-${path}`, { body: {} });
    assert.equal(missing.status, 422);
    assert.deepEqual(missing.body, {
      message: "The given data was invalid.",
      errors: {
        assistant_id: ["The assistant id field is required."],
        webhook_url: ["The webhook url field is required."],
      },
    });
    const bad = await server.call("POST", `/user/assistants/enable-${path}`, {
      body: { assistant_id: id, webhook_url: "ftp://x" },
    });
    assert.deepEqual([bad.status, Object.keys(bad.body.errors)], [422, ["webhook_url"]]);
    const unknown = await server.call("POST", `/user/assistants/disable-${path}`, {
      body: { assistant_id: 999_999 },
    });
    assert.deepEqual([unknown.status, unknown.body], [404, NOT_FOUND]);
  }
  const plain = await server.call("POST", "/user/assistants/enable-conversation-ended-webhook", {
    body: { assistant_id: id, webhook_url: "http://hooks.example/one" },
  });
  assert.deepEqual([plain.status, plain.body.errors], [
    422, { webhook_url: ["The webhook url must be a valid HTTPS URL."] }]);
});
