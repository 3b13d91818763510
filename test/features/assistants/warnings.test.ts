// What this server has for assistants, and what it says where something is missing.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { loadCatalogs } from "#features/assistants/catalogs.ts";
import { whySynthesizerMissing, whyTranscriberMissing } from "#providers/speech/engines.ts";
import { parseWav } from "#support/calls/wav.ts";
import { newAssistant, startTestServer, type TestServer } from "#support/server.ts";
import { NOTHING_SET_UP } from "#support/vendors/nothing-set-up.ts";

const bare = await startTestServer();
const rich = await startTestServer({
  env: {
    PARLEY_MODEL_URL: "http://127.0.0.1:9/v1", PARLEY_ELEVENLABS_KEY: "key",
    PARLEY_DEEPGRAM_KEY: "key", PARLEY_REALTIME_URL: "http://127.0.0.1:9/v1",
  },
});
after(() => Promise.all([bare.close(), rich.close()]));

interface Row {
  id: number;
  code?: string;
  available: boolean;
  missing: string | null;
  preview_url?: string | null;
}

const lookup = async (at: TestServer, path: string): Promise<Row[]> => {
  const { status, body } = await at.call("GET", `/user/assistants/${path}`);
  assert.equal(status, 200);
  return body as Row[];
};
const missingOf = async (at: TestServer, path: string, id: number) => {
  const row = (await lookup(at, path)).find((one) => one.id === id);
  assert.ok(row, `${path} ${id}`);
  assert.equal(row.available, row.missing === null);
  return row.missing;
};

test("[AS57] lists say whether this server can use each model, voice and vendor, and what is missing", async () => {
  const unset = (setting: string) => `The setting ${setting} is not set on this server.`;
  for (const [path, id, setting] of [
    ["models", 1, "PARLEY_MODEL_URL"], ["models?type=multimodal", 101, "PARLEY_REALTIME_URL"],
    ["models?type=dualplex", 201, "PARLEY_REALTIME_URL"], ["voices", 10, "PARLEY_ELEVENLABS_KEY"],
    ["synthesizer-providers", 1, "PARLEY_ELEVENLABS_KEY"],
    ["transcriber-providers", 1, "PARLEY_DEEPGRAM_KEY"],
  ] as const) {
    assert.equal(await missingOf(bare, path, id), unset(setting));
    assert.equal(await missingOf(rich, path, id), null);
  }
  assert.equal(await missingOf(bare, "models", 2), null);
  // A vendor's model without that vendor's key.
  assert.equal(await missingOf(rich, "models", 3), unset("OPENAI_API_KEY"));
  const flite = (await lookup(bare, "synthesizer-providers")).find(({ code }) => code === "flite");
  assert.equal(flite?.available, true);
});

test("[AS58] anyone can hear a voice that has a preview; a voice that cannot be heard has none", async () => {
  const voices = await lookup(bare, "voices");
  assert.equal(voices.find(({ id }) => id === 10)?.preview_url, null);
  const url = voices.find(({ id }) => id === 1)?.preview_url;
  assert.ok(url);
  const [first, again] = await Promise.all([fetch(url), fetch(url)]);
  assert.equal(first.status, 200);
  assert.equal(first.headers.get("content-type"), "audio/wav");
  const bytes = Buffer.from(await first.arrayBuffer());
  const { rate, channels } = parseWav(bytes);
  const [samples = new Int16Array(0)] = channels;
  assert.ok(samples.length > rate / 2, "more than half a second is said");
  assert.ok(samples.some((sample) => Math.abs(sample) > 1000), "and it is loud enough to hear");
  assert.deepEqual(Buffer.from(await again.arrayBuffer()), bytes);
  for (const id of [10, 999]) {
    const { status, body } = await bare.call("GET", `/voices/${id}/preview`);
    assert.deepEqual([status, body], [404, { message: "This voice cannot be heard on this server." }]);
  }
});

test("[AS59] create, update and read name each field of an assistant that has no effect on this server", async () => {
  const changes = {
    llm_model_id: 1, voice_id: 10, transcriber_provider_id: 1,
    tools: [{ type: "call_transfer", phone_number: "+12025550100", warm_transfer: true }],
  };
  const { id } = await newAssistant(bare, changes);
  const path = `/user/assistant/${id}`;
  const fields = (body: { warnings: { field: string; message: string }[] }) => {
    assert.ok(body.warnings.every(({ message }) => /^[A-Z].*\.$/.test(message)));
    return body.warnings.map(({ field }) => field);
  };
  const read = (await bare.call("GET", path)).body;
  assert.deepEqual(fields(read), ["llm_model_id", "voice_id", "transcriber_provider_id"]);
  const updated = await bare.call("PATCH", path, { body: { voice_id: 1, llm_model_id: 2, tools: [] } });
  assert.equal(updated.status, 200);
  assert.deepEqual(fields(updated.body), ["transcriber_provider_id"]);
  const quiet = await bare.call("PATCH", path, { body: { transcriber_provider_id: null } });
  assert.deepEqual(fields(quiet.body), []);
  const realtime = { mode: "multimodal", multimodal_model_id: 101, voice_id: 1 };
  const created = await newAssistant(bare, realtime);
  assert.deepEqual(fields((await bare.call("GET", `/user/assistant/${created.id}`)).body), ["mode"]);
  const acting = await newAssistant(rich, { ...changes, tools: [] });
  assert.deepEqual(fields((await rich.call("GET", `/user/assistant/${acting.id}`)).body), []);
});

test("[AS204] a warning says when the offline model calls no tools, and what a model that does needs", async () => {
  const served = await startTestServer({ env: { PARLEY_MODEL_URL: "http://127.0.0.1:9/v1" } });
  const told = async (at: TestServer, settings: object): Promise<string[]> => {
    const made = await at.call("POST", "/user/tools", {
      body: { name: "order", description: "Looks up", method: "GET", endpoint: "https://a.example/" },
    });
    const { id } = await newAssistant(at, { tool_ids: [made.body.data.id], ...settings });
    return (await at.call("GET", `/user/assistant/${id}`)).body.warnings
      .flatMap(({ field, message }: { field: string; message: string }) =>
        field === "tool_ids" ? [message] : []);
  };
  const none = "No tool is called, because the offline model answers and does not call tools. ";
  const unset = (setting: string) => `${none}The setting ${setting} is not set on this server.`;
  try {
    assert.deepEqual(await told(bare, { llm_model_id: 1 }), [unset("PARLEY_MODEL_URL")]);
    assert.deepEqual(await told(bare, { llm_model_id: 3 }), [unset("OPENAI_API_KEY")]);
    assert.deepEqual(await told(bare, { llm_model_id: 1, tool_ids: [] }), []);
    assert.deepEqual(await told(served, { llm_model_id: 2 }), [`${none}Choose another model.`]);
    for (const id of [1, 3]) assert.deepEqual(await told(served, { llm_model_id: id }), []);
  } finally {
    await served.close();
  }
});

test("[AS201] an assistant that transfers to a deleted assistant has a warning about it", async () => {
  const other = await newAssistant(bare, { llm_model_id: 2 });
  const { id } = await newAssistant(bare, {
    llm_model_id: 2, voice_id: 1,
    tools: [{ type: "end_call" }, { type: "assistant_transfer", assistant_id: other.id }],
  });
  const warnings = async () => {
    const { status, body } = await bare.call("GET", `/user/assistant/${id}`);
    assert.equal(status, 200);
    return body.warnings;
  };
  assert.deepEqual(await warnings(), []);
  assert.equal((await bare.call("DELETE", `/user/assistant/${other.id}`)).status, 200);
  assert.deepEqual(await warnings(), [{
    field: "tools.1.assistant_id",
    message: "The caller is not handed over: that assistant no longer exists.",
  }]);
});

test("[SP129] settings that this server's engines cannot use are warned about, others are not", async () => {
  const wishes = {
    llm_model_id: 2, synthesizer_provider_id: null, voice_stability: 0.2, voice_similarity: 0.9,
    recogniser_hints: ["Zwickau"], secondary_language_ids: [2],
  };
  const warned = async (at: TestServer, settings: object): Promise<string[]> => {
    const { id } = await newAssistant(at, { ...wishes, ...settings });
    const { status, body } = await at.call("GET", `/user/assistant/${id}`);
    assert.equal(status, 200);
    return body.warnings.map(({ field }: { field: string }) => field);
  };
  const flite = (await lookup(bare, "synthesizer-providers")).find(({ code }) => code === "flite");
  assert.deepEqual(await warned(bare, { synthesizer_provider_id: flite?.id }), [
    "tts_emotion_enabled", "voice_stability", "voice_similarity", "recogniser_hints",
    "secondary_language_ids",
  ]);
  assert.deepEqual(await warned(rich, { voice_id: 10 }), []);
  // A model that hears and speaks by itself follows any language, and takes no more than that.
  const realtime = { mode: "multimodal", llm_model_id: null, multimodal_model_id: 101 };
  assert.deepEqual(await warned(rich, realtime),
    ["voice_stability", "voice_similarity", "recogniser_hints"]);
});

test("[AS60] every vendor row of the catalog has an adaptor", () => {
  const catalogs = loadCatalogs();
  const none = "This server has no such engine.";
  assert.equal(whySynthesizerMissing(NOTHING_SET_UP, { code: "nonesuch", language: null }), none);
  for (const { code } of catalogs.synthesizers()) {
    assert.notEqual(whySynthesizerMissing(NOTHING_SET_UP, { code, language: null }), none, code);
  }
  for (const { code } of catalogs.transcribers()) {
    assert.notEqual(whyTranscriberMissing(NOTHING_SET_UP, { code, language: null }), none, code);
  }
});
