// Calls whose model hears by itself over Gemini's Live interface, beside one of OpenAI's Realtime,
// against servers that the vendors' SDKs accept (providers/speech/gemini-live.test.ts).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { newAssistant, newConversation, startTestServer, type TestServer } from "#support/server.ts";
import { startGeminiServer, type GeminiReply } from "#support/vendors/gemini-server.ts";
import { startRealtimeServer } from "#support/vendors/realtime-server.ts";

const MULTIMODAL = 105;
const DUALPLEX = 205;
const tone = (seconds: number): Int16Array =>
  Int16Array.from({ length: 24_000 * seconds }, (_, at) => 8000 * Math.sin(at / 8));

let answer: (heard: string, outputs: unknown[]) => GeminiReply = () => ({ text: "Yes." });
const gemini = await startGeminiServer({
  isHeardOut: true,
  hear: () => "When are you open?",
  // What it is asked to say, it says.
  reply: (text, outputs) => {
    const [, wanted] = text.split(":\n\n");
    return wanted === undefined ? answer(text, outputs) : { text: wanted, pcm: tone(0.4) };
  },
});
const openai = await startRealtimeServer({ reply: () => ({ text: "Hi there.", pcm: tone(0.2) }) });
const both = await startTestServer({
  env: {
    PARLEY_SPEECH: "loopback", PARLEY_REALTIME_URL: openai.url,
    PARLEY_GEMINI_KEY: "a-key", PARLEY_GEMINI_URL: gemini.url,
  },
});
const alone = await startTestServer({
  env: { PARLEY_SPEECH: "loopback", PARLEY_GEMINI_KEY: "a-key", PARLEY_GEMINI_URL: gemini.url },
});
after(async () => {
  await Promise.all([both.close(), alone.close()]);
  await Promise.all([openai.close(), gemini.close()]);
});

let peers = 0;
async function startCall(at: TestServer, settings: object) {
  const assistant = await newAssistant(at, {
    llm_model_id: null, initial_message: "Hi there.", post_call_evaluation: false, record: true,
    system_prompt: "You are {{who}}.", variables: { who: "the front desk" }, ...settings,
  });
  const conversation = await newConversation(at, assistant.uuid);
  return await WebCaller.open(at, conversation, await callTicket(at, conversation));
}
async function startGeminiCall(at: TestServer, settings: object) {
  const caller = await startCall(at, settings);
  const peer = await gemini.peer(peers);
  peers += 1;
  return { caller, peer };
}

async function ended(caller: WebCaller, at: TestServer) {
  await caller.closed();
  for (;;) {
    const { body } = await at.call("GET", `/user/calls/${caller.callId}`);
    if (body.status.startsWith("ended_by")) return body;
    await new Promise(setImmediate);
  }
}

test("[SP199] multimodal with Gemini: the model hears and speaks; transcript, latency and recording as in every call", async () => {
  answer = () => ({ text: "We open at nine.", pcm: tone(0.8) });
  const { caller, peer } = await startGeminiCall(both, {
    mode: "multimodal", multimodal_model_id: MULTIMODAL,
  });
  await caller.until(() => caller.lines.length === 1);
  caller.say("When are you open?");
  await caller.until(() => caller.lines.length === 3);
  caller.send({ type: "end" });
  const call = await ended(caller, both);
  assert.equal(
    call.transcript, "AI: Hi there.\nCustomer: When are you open?\nAI: We open at nine.");
  const { setup } = peer.messages[0]!;
  assert.equal(setup?.model, "models/gemini-3.8-live");
  assert.match(JSON.stringify(setup.systemInstruction), /You are the front desk\./);
  // The assistant's voice is one of OpenAI's: the nearest of Gemini's speaks.
  assert.equal(
    setup.generationConfig?.speechConfig?.voiceConfig?.prebuiltVoiceConfig?.voiceName, "Kore");
  assert.equal(call.latency.length, 1);
  const [turn] = call.latency;
  assert.ok(turn.heard_ms >= turn.first_audio_ms && turn.first_audio_ms >= 0);
  assert.ok(call.recording_url);
  await peer.vendor.until(({ isClosed }) => isClosed);
});

test("[SP199] multimodal with Gemini: speech over a reply clears it, the transcript keeps the words heard", async () => {
  const words = "one two three four five six seven eight nine ten";
  answer = () => ({ text: words, pcm: tone(5) });
  const { caller } = await startGeminiCall(both, {
    mode: "multimodal", multimodal_model_id: MULTIMODAL,
  });
  await caller.until(() => caller.lines.length === 1);
  caller.say("Count.");
  await caller.until(() => caller.messages.some(({ type, role, text = "", final }) =>
    type === "transcript" && role === "assistant" && !final && text.includes("three")));
  answer = () => ({ text: "Good.", pcm: tone(0.4) });
  caller.say("Stop now please.");
  await caller.until(() => caller.lines.at(-1) === "assistant: Good.");
  caller.send({ type: "end" });
  const call = await ended(caller, both);
  const cut = call.transcript_entries.find((entry: { interrupted: boolean }) => entry.interrupted);
  assert.ok(cut && words.startsWith(cut.text) && cut.text.includes("three"), cut?.text);
  assert.ok(!cut.text.includes("ten"));
});

test("[SP199] dualplex with Gemini: our voice speaks its words, tools are called, another assistant takes over", async () => {
  const second = await newAssistant(alone, {
    system_prompt: "You are the billing desk.", initial_message: "Billing here.",
    tools: [{ type: "end_call", description: "" }],
  });
  const call = { id: "c", name: "transfer_to_assistant", args: {} };
  answer = (_, outputs) => outputs.length > 0
    ? { text: "Handing over." }
    : { text: "", calls: [call] };
  const { caller, peer } = await startGeminiCall(alone, {
    mode: "dualplex", multimodal_model_id: DUALPLEX,
    tools: [{ type: "assistant_transfer", description: "", assistant_id: second.id }],
  });
  await caller.until(() => caller.words.length === 2);
  caller.say("Billing please.");
  await caller.until(() => caller.words.slice(-2).join(" ") === "Billing here.");
  peer.handle("a-handle");
  const next = await gemini.peer(peers);
  peers += 1;
  await next.vendor.until(() => next.messages.length === 1);
  assert.match(JSON.stringify(next.messages[0]?.setup?.systemInstruction), /billing desk/);
  answer = (_, outputs) => outputs.length > 0
    ? { text: "Goodbye." }
    : { text: "One moment please.", calls: [{ ...call, name: "hang_up" }] };
  caller.say("That is all.");
  assert.equal((await ended(caller, alone)).status, "ended_by_assistant");
  assert.equal(caller.words.at(-1), "Goodbye.");
});

test("[SP200] the assistant's model decides the vendor; if that one is not set up another serves, and the owner reads so", async () => {
  const { caller } = await startGeminiCall(alone, { mode: "multimodal", multimodal_model_id: 104 });
  caller.hangUp();
  await ended(caller, alone);
  const other = await startCall(both, { mode: "multimodal", multimodal_model_id: 104 });
  assert.equal((await openai.peer(0)).query.get("model"), "gpt-realtime");
  other.hangUp();
  await ended(other, both);
  const missingOf = async (at: TestServer, list: string) =>
    Object.fromEntries((await at.call("GET", `/user/assistants/${list}`)).body.map(
      ({ id, missing }: { id: number; missing: string | null }) => [id, missing]));
  const unset = "The setting PARLEY_REALTIME_URL is not set on this server.";
  const models = await missingOf(alone, "models?type=multimodal");
  assert.deepEqual([models[101], models[104], models[MULTIMODAL]], [null, unset, null]);
  const voices = await missingOf(alone, "voices?mode=multimodal");
  assert.deepEqual([voices[9], voices[37]], [unset, null]);
});
