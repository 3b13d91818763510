// What an assistant's settings may be, alone and together.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { UpdateBody } from "#features/assistants/settings.ts";
import { assistantBody, newAssistant, startTestServer } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

const { id } = await newAssistant(server);
const create = (changes: object) =>
  server.call("POST", "/user/assistant", { body: assistantBody({ ...changes }) });
const change = (body: object, target = id) =>
  server.call("PUT", `/user/assistant/${target}`, { body });
const read = async (target = id) => (await server.call("GET", `/user/assistant/${target}`)).body;

async function assertRefused(body: object, errors: Record<string, string>): Promise<void> {
  const { status, body: reply } = await change(body);
  assert.deepEqual([status, reply], [
    422,
    {
      message: "Validation failed",
      errors: Object.fromEntries(Object.entries(errors).map(([field, text]) => [field, [text]])),
    },
  ]);
}

test("[AS7] null resets an optional field to its default", async () => {
  const { status } = await change({
    max_duration: 99, reengagement_prompt: "Hm?", fillers: true, variables: { a: "b" },
    filler_config: { neutral: ["Hm."] }, turn_detection_threshold: 0.4, status: "active",
    secondary_language_ids: [2, "3", 2], post_call_schema: [],
  });
  assert.equal(status, 200);
  const set = await read();
  assert.deepEqual(set.secondary_language_ids, [2, 3]);
  assert.deepEqual(set.filler_config, {
    neutral: ["Hm."], negative: [], positive: [], question: [],
  });
  assert.deepEqual(set.post_call_schema, []);
  await change(Object.fromEntries([
    "max_duration", "reengagement_prompt", "fillers", "variables", "filler_config",
    "turn_detection_threshold", "status", "secondary_language_ids", "post_call_schema",
    "initial_message", "folder_id", "phone_number_id", "knowledgebase_id", "label_ids",
  ].map((field) => [field, null])));
  const cleared = await read();
  assert.deepEqual(
    [cleared.max_duration, cleared.reengagement_prompt, cleared.fillers, cleared.variables,
      cleared.turn_detection_threshold, cleared.status, cleared.secondary_language_ids,
      cleared.post_call_schema.length, cleared.initial_message],
    [600, null, 0, {}, null, "inactive", [], 2, ""]);
  assert.ok(cleared.filler_config.positive.length > 0);
});

test("[AS8] lists and maps are replaced as a whole", async () => {
  await change({
    variables: { a: "1", b: "2" }, tools: [{ type: "end_call" }, { type: "dtmf_input" }],
    widget_settings: { theme: "dark", color: "#fff", position: "top-left" },
  });
  const field = { name: "goal", type: "bool", description: "Whether it was reached" };
  await change({
    variables: { c: 3 }, tools: [{ type: "dtmf_input" }], widget_settings: {},
    post_call_schema: [{ ...field, junk: 1 }],
  });
  const once = await read();
  assert.deepEqual(once.post_call_schema, [field]);
  assert.deepEqual(once.variables, { c: "3" });
  assert.deepEqual(once.tools, [{ type: "dtmf_input", data: {} }]);
  assert.deepEqual(once.widget_settings, {
    theme: "modern", color: "#2563eb", position: "bottom-right",
  });
  await change({ variables: [], tools: [] });
  const twice = await read();
  assert.deepEqual([twice.variables, twice.tools], [{}, []]);
});

test("[AS9] changing the mode resets the fields that depend on it", async () => {
  const { id: own } = await newAssistant(server, {
    synthesizer_provider_id: 1, transcriber_provider_id: 1, fillers: true,
    allow_interruptions: false, knowledgebase_mode: "prompt", max_duration: 77,
  });
  const models = (await server.call("GET", "/user/assistants/models?type=multimodal")).body;
  assert.equal((await change({ mode: "multimodal" }, own)).status, 200);
  const there = await read(own);
  assert.deepEqual(
    [there.mode, there.llm_model_id, there.multimodal_model_id, there.synthesizer_provider_id,
      there.transcriber_provider_id, there.fillers, there.allow_interruptions,
      there.knowledgebase_mode, there.max_duration],
    ["multimodal", null, models[0].id, null, null, 0, true, "function_call", 77]);
  assert.equal((await change({ mode: "pipeline", llm_model_id: 2 }, own)).status, 200);
  const back = await read(own);
  assert.deepEqual([back.llm_model_id, back.multimodal_model_id], [2, null]);
  // The same mode sent again is no change.
  await change({ synthesizer_provider_id: 4 }, own);
  await change({ mode: "pipeline" }, own);
  assert.equal((await read(own)).synthesizer_provider_id, 4);
});

test("[AS10] features of pipeline mode alone are refused in the other modes", async () => {
  for (const mode of ["multimodal", "dualplex"]) {
    await assertRefused(
      { mode, allow_interruptions: false, fillers: true, knowledgebase_mode: "prompt" },
      {
        allow_interruptions: "Interruptions cannot be disabled in multimodal or dualplex mode.",
        fillers: "Fillers are only available in pipeline mode.",
        knowledgebase_mode: "Only function_call mode is available for multimodal assistants.",
      },
    );
  }
  assert.equal((await read()).mode, "pipeline");
});

test("[AS11] the voice must exist and fit the mode", async () => {
  await assertRefused({ voice_id: 99_999 }, { voice_id: "The selected voice id is invalid." });
  const message = "The selected voice is not compatible with the chosen engine type.";
  await assertRefused({ voice_id: 9 }, { voice_id: message });
  const { status, body } = await create({ voice_id: 13, mode: "multimodal", multimodal_model_id: 101 });
  assert.deepEqual([status, body.errors], [422, { voice_id: [message] }]);
  const { id: own } = await newAssistant(server, { voice_id: 13 });
  const turned = await change({ mode: "multimodal" }, own);
  assert.deepEqual([turned.status, turned.body.errors], [422, { voice_id: [message] }]);
});

test("[AS12] each mode needs a model of its own type", async () => {
  const missing = await create({ llm_model_id: null });
  assert.deepEqual(missing.body.errors, {
    llm_model_id: ["The llm model id field is required when mode is pipeline."],
  });
  const multimodal = await create({ mode: "multimodal", multimodal_model_id: null });
  assert.deepEqual(multimodal.body.errors, {
    multimodal_model_id: ["The multimodal model id field is required when mode is multimodal."],
  });
  const wrong = await create({ mode: "dualplex", multimodal_model_id: 101 });
  assert.deepEqual(wrong.body.errors, {
    multimodal_model_id: ["The selected multimodal model id is invalid."],
  });
  await assertRefused(
    { llm_model_id: 99_999, chat_llm_fallback_id: 101 },
    {
      llm_model_id: "The selected llm model id is invalid.",
      chat_llm_fallback_id: "The selected chat llm fallback id is invalid.",
    },
  );
});

test("[AS13] speech providers must exist, fit the mode and support the language", async () => {
  await assertRefused(
    { synthesizer_provider_id: 5, transcriber_provider_id: 99, language_id: 5 },
    {
      synthesizer_provider_id: "The selected synthesizer provider does not support the language.",
      transcriber_provider_id: "The selected transcriber provider id is invalid.",
    },
  );
  await assertRefused(
    { mode: "multimodal", synthesizer_provider_id: 1, transcriber_provider_id: 1 },
    {
      synthesizer_provider_id:
        "The synthesizer provider can only be chosen in pipeline or dualplex mode.",
      transcriber_provider_id: "The transcriber provider can only be chosen in pipeline mode.",
    },
  );
  const { status } = await create({
    mode: "dualplex", multimodal_model_id: (
      await server.call("GET", "/user/assistants/models?type=dualplex")).body[0].id,
    synthesizer_provider_id: 5,
  });
  assert.equal(status, 201);
});

test("[AS16] an active webhook needs a URL, and every URL must be valid", async () => {
  await assertRefused(
    { is_webhook_active: true },
    { webhook_url: "The webhook url field is required when is webhook active is true." });
  await assertRefused(
    { webhook_url: "nope", inbound_webhook_url: "ftp://x.example", is_webhook_active: true },
    {
      webhook_url: "The webhook url must be a valid URL.",
      inbound_webhook_url: "The inbound webhook url must be a valid URL.",
    },
  );
  assert.equal(
    (await change({ is_webhook_active: 1, webhook_url: "http://127.0.0.1:9/x" })).status, 200);
  await assertRefused(
    { webhook_url: "" },
    { webhook_url: "The webhook url field is required when is webhook active is true." });
  assert.equal((await change({ is_webhook_active: false, webhook_url: null })).status, 200);
});

test("[AS17] built-in tools are accepted flat and returned as {type, data}", async () => {
  const other = await newAssistant(server);
  const { status } = await change({
    tools: [
      { type: "call_transfer", phone_number: "+4930123456", junk: 1 },
      { type: "collect_keypad", data: { timeout: "9", stop_key: "*" } },
      { type: "assistant_transfer", assistant_id: String(other.id) },
      {
        type: "calendar_integration", calcom_api_key: "k", calcom_event_slug: "s",
        calcom_booking_fields: [{ slug: "a", type: "text", label: "A" }],
      },
    ],
  });
  assert.equal(status, 200);
  assert.deepEqual((await read()).tools, [
    {
      type: "call_transfer",
      data: { phone_number: "+4930123456", custom: false, warm_transfer: false },
    },
    { type: "collect_keypad", data: { timeout: 9, stop_key: "*" } },
    {
      type: "assistant_transfer", data: { assistant_id: other.id, speak_transfer_greeting: true },
    },
    {
      type: "calendar_integration",
      data: {
        calcom_api_key: "***", calcom_event_slug: "s", calcom_endpoint: "us",
        calcom_booking_fields: [{ slug: "a", type: "text", label: "A", required: false }],
      },
    },
  ]);
});

test("[AS18] every invalid member of a built-in tool is named; an assistant cannot transfer to itself", async () => {
  await assertRefused(
    {
      tools: [
        { type: "nothing" },
        { type: "call_transfer", phone_number: "call me" },
        { type: "warm_call_transfer", hold_music_volume: 101, caller_id_mode: "mine" },
        { type: "collect_keypad", timeout: 31 },
        "end_call",
      ],
    },
    {
      "tools.0": "The tool type must be one of call_transfer, warm_call_transfer, end_call, "
        + "dtmf_input, collect_keypad, calendar_integration, calendar, assistant_transfer.",
      "tools.1.phone_number":
        "The phone number must be in E.164 format (e.g. +1234567890) or a SIP URI.",
      "tools.2.supervisor_phone": "The tools.2.supervisor phone field is required.",
      "tools.2.outbound_phone_id": "The tools.2.outbound phone id field is required.",
      "tools.2.description": "The tools.2.description field is required.",
      "tools.2.caller_id_mode": "The selected tools.2.caller id mode is invalid: it is one of outbound_number, customer_number, custom.",
      "tools.2.hold_music_volume": "The tools.2.hold music volume may not be greater than 100.",
      "tools.3.timeout": "The tools.3.timeout may not be greater than 30.",
      "tools.4": "The tool type must be one of call_transfer, warm_call_transfer, end_call, "
        + "dtmf_input, collect_keypad, calendar_integration, calendar, assistant_transfer.",
    },
  );
  await assertRefused(
    {
      tools: [
        { type: "assistant_transfer", assistant_id: id },
        {
          type: "calendar_integration", calcom_api_key: "k", calcom_event_slug: "s",
          calcom_endpoint: "custom",
        },
      ],
    },
    {
      "tools.0.assistant_id": "An assistant cannot be transferred to itself.",
      "tools.1.calcom_custom_endpoint":
        "The calcom custom endpoint field is required when calcom endpoint is custom.",
    },
  );
});

test("[AS19] every bounded setting refuses values outside its bounds", async () => {
  const bounds: Record<string, [number, number]> = {
    turn_detection_threshold: [0, 1], voice_stability: [0, 1], voice_similarity: [0, 1],
    llm_temperature: [0, 1], max_duration: [20, 1200], max_silence_duration: [1, 360],
    max_initial_silence_duration: [1, 120], ringing_time: [1, 60],
    reengagement_interval: [7, 600], endpoint_sensitivity: [0, 5],
    interrupt_sensitivity: [0, 5], min_interrupt_words: [0, 10], ambient_sound_volume: [0, 1],
    conversation_inactivity_timeout: [1, 1440],
  };
  const all = (pick: (bound: [number, number]) => number) =>
    Object.fromEntries(Object.entries(bounds).map(([field, bound]) => [field, pick(bound)]));
  type Bound = [number, number];
  for (const outside of [([low]: Bound) => low - 1, ([, high]: Bound) => high + 1]) {
    const { status, body } = await change(all(outside));
    assert.equal(status, 422);
    assert.deepEqual(Object.keys(body.errors).sort(), Object.keys(bounds).sort());
  }
  assert.equal((await change(all(([low]) => low))).status, 200);
  assert.equal((await change(all(([, high]) => high))).status, 200);
  const name = "a".repeat(256);
  await assertRefused(
    { speech_speed: 1.3, name, initial_message: "a".repeat(201), max_duration: 20.5 },
    {
      speech_speed: "Speech speed must be between 0.7 and 1.2.",
      name: "The name may not be greater than 255 characters.",
      initial_message: "The initial message may not be greater than 200 characters.",
      max_duration: "The max duration must be an integer.",
    },
  );
});

test("[AS20] one refusal names every invalid field and every conflict between fields", async () => {
  const { status, body } = await create({
    name: "", mode: "sideways", voice_id: 77_777, timezone: "+02:00", ambient_sound: "rain",
    language_id: 99, secondary_language_ids: [1, 98], is_webhook_active: "yes", label_ids: [5],
    post_call_schema: [
      { name: "goal", type: "bool", description: "Whether it was reached" },
      { name: "goal", type: "int", description: "x" },
    ],
  });
  assert.equal(status, 422);
  assert.equal(body.message, "Validation failed");
  assert.deepEqual(body.errors, {
    name: ["The name field is required."],
    mode: ["The selected mode is invalid: it is one of pipeline, multimodal, dualplex."],
    timezone: ["The timezone must be a valid time zone."],
    ambient_sound: ["The selected ambient sound is invalid: it is one of off, office, city, forest, crowded_room, cafe, nature."],
    is_webhook_active: ["The is webhook active field must be true or false."],
    "post_call_schema.1.type": [
      "The selected post call schema.1.type is invalid: it is one of string, number, bool."],
    "post_call_schema.1.description": [
      "The post call schema.1.description must be at least 3 characters."],
    voice_id: ["The selected voice id is invalid."],
    language_id: ["The selected language id is invalid."],
    "secondary_language_ids.1": ["The selected secondary language ids.1 is invalid."],
    "label_ids.0": ["The selected label ids.0 is invalid."],
  });
  await assertRefused(
    {
      post_call_schema: [
        { name: "goal", type: "bool", description: "Whether it was reached" },
        { name: "goal", type: "string", description: "The same again" },
      ],
    },
    { "post_call_schema.1.name": "The post call schema.1.name has a duplicate value." });
});

test("[AS24] what the API returns can be sent back, and clients' spellings are accepted", async () => {
  await change({
    tools: [{ type: "end_call", description: "When done" }], allowed_origins: ["*"],
    daily_spend_cap: "2.50", widget_settings: { position: "right-top" },
  });
  const { updated_at: _, ...before } = await read();
  assert.equal((await change(before)).status, 200);
  const { updated_at: __, ...after } = await read();
  assert.deepEqual(after, before);
  const spelled = await change({
    voice_id: "1", record: 1, fillers: "true", end_call_on_voicemail: "0",
    speech_speed: "1.10", folder_id: "", reengagement_prompt: " ", knowledgebase_mode: "",
  });
  assert.equal(spelled.status, 200);
  const read1 = await read();
  assert.deepEqual(
    [read1.record, read1.fillers, read1.end_call_on_voicemail, read1.speech_speed,
      read1.folder_id, read1.reengagement_prompt, read1.knowledgebase_mode],
    [true, 1, 0, "1.10", null, null, null]);
});

test("[AS27] variables map names to text; numbers, booleans and objects become text", async () => {
  await change({ variables: { _a1: 1.5, B: true, toString: "x", long: "y".repeat(4000) } });
  const { variables } = await read();
  assert.deepEqual(variables, { _a1: "1.5", B: "true", toString: "x", long: "y".repeat(4000) });
  const wrong: Record<string, unknown>[] = [
    { "a}b": "x" }, { " ": "x" }, { ["a".repeat(65)]: "x" }, { a: "y".repeat(4001) },
    Object.fromEntries(
      Array.from({ length: 51 }, (_, index) => [`v${index}`, ""])),
  ];
  for (const given of wrong) {
    const { status, body } = await change({ variables: given });
    assert.equal(status, 422, JSON.stringify(given).slice(0, 60));
    assert.ok(Object.keys(body.errors).every((field) => field.startsWith("variables")));
  }
  assert.equal((await change({ variables: "a" })).status, 422);
  assert.deepEqual((await read()).variables, variables);
});

test("[AS28] widget settings accept both spellings of the position", async () => {
  for (const [given, kept] of [
    ["left-bottom", "bottom-left"], ["bottom-center", "bottom-center"],
    ["center-top", "top-center"], ["middle-right", "middle-right"],
  ]) {
    assert.equal((await change({ widget_settings: { position: given } })).status, 200);
    assert.equal((await read()).widget_settings.position, kept);
  }
  await assertRefused(
    { widget_settings: { position: "center", color: "blue", theme: "" } },
    {
      "widget_settings.theme": "The widget settings.theme field is required.",
      "widget_settings.color": "The color must be a hex colour such as #2563eb.",
      "widget_settings.position": "The selected widget settings.position is invalid: it is one of bottom-right, bottom-left, bottom-center, middle-right, middle-left, top-right, top-left, top-center.",
    },
  );
});

test("[AS29] allowed origins are exact origins or *; null means the server's setting", async () => {
  const { status } = await change({
    allowed_origins: ["HTTPS://Shop.Example:443/", "http://localhost:3000", "*"],
  });
  assert.equal(status, 200);
  assert.deepEqual(
    (await read()).allowed_origins, ["https://shop.example", "http://localhost:3000", "*"]);
  const message = "Each allowed origin must be like https://example.com, or *.";
  await assertRefused(
    { allowed_origins: ["https://a.example/x", "a.example", "https://*.example", "null", "*"] },
    {
      "allowed_origins.0": message, "allowed_origins.1": message, "allowed_origins.2": message,
      "allowed_origins.3": message,
    });
  await assertRefused(
    { allowed_origins: Array.from({ length: 51 }, (_, index) => `https://a${index}.example`) },
    { allowed_origins: "The allowed origins may not have more than 50 items." });
  await change({ allowed_origins: null });
  assert.equal((await read()).allowed_origins, null);
});

test("[AS30] the daily spend cap is in USD with at most six decimals", async () => {
  for (const [given, kept] of [[0, 0], ["0.5", 0.5], [0.000001, 0.000001], [null, null]]) {
    assert.equal((await change({ daily_spend_cap: given })).status, 200);
    assert.equal((await read()).daily_spend_cap, kept);
  }
  await assertRefused(
    { daily_spend_cap: -1 }, { daily_spend_cap: "The daily spend cap must be at least 0." });
  for (const given of [0.0000001, 1.1234567]) {
    await assertRefused(
      { daily_spend_cap: given },
      { daily_spend_cap: "The daily spend cap may not have more than 6 decimals." });
  }
});

test("[AS39] any input is answered with 200 or with a 422 about fields that were sent", async () => {
  const { id: own } = await newAssistant(server);
  const field = fc.constantFrom(...Object.keys(UpdateBody.properties), "toString", "zz");
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 4 }), fc.integer(), fc.double({ noNaN: true }),
    fc.constantFrom("", "*", "\u0000", [], {}, [null], [[]], { type: "end_call" }, 1e308, -0),
    fc.array(fc.record({ type: fc.constantFrom("end_call", "call_transfer"), data: fc.jsonValue() })),
    fc.dictionary(fc.string(), fc.jsonValue()),
  );
  const unsafe = /__proto__|constructor|prototype/;
  await fc.assert(
    fc.asyncProperty(fc.dictionary(field, value, { maxKeys: 5 }), async (sent) => {
      if (unsafe.test(JSON.stringify(sent))) return;
      const { status, body } = await change(sent, own);
      assert.ok(status === 200 || status === 422, `${status} ${JSON.stringify(sent)}`);
      assert.equal((await server.call("GET", `/user/assistant/${own}`)).status, 200);
      const bound = ["voice_id", "multimodal_model_id", "llm_model_id", "webhook_url"];
      for (const name of Object.keys(body.errors ?? {})) {
        const top = name.split(".")[0] ?? "";
        assert.ok(Object.hasOwn(sent, top) || bound.includes(top) || top.endsWith("provider_id"), name);
      }
    }),
    { numRuns: 300 },
  );
});
