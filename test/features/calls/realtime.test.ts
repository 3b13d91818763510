// Calls whose model hears by itself: with its own voice (multimodal) or with ours (dualplex),
// against a server of OpenAI's Realtime protocol that its SDK accepts
// (providers/speech/realtime.test.ts).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import type { RealtimeReply, RealtimeTurn } from "#support/vendors/realtime-peer.ts";
import { startRealtimeServer } from "#support/vendors/realtime-server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

type Answer = (heard: string, turn: RealtimeTurn) => RealtimeReply;

const WIRE_RATE = 24_000;
const tone = (seconds: number): Int16Array =>
  Int16Array.from({ length: WIRE_RATE * seconds }, (_, at) => 8000 * Math.sin(at / 8));

let answer: Answer = () => ({ text: "Yes." });
let peers = 0;
let heardText = "When are you open?";
const realtime = await startRealtimeServer({
  hear: () => heardText,
  // What it is asked to say, it says.
  reply: (heard, turn) => {
    const [, wanted] = turn.instructions?.split(":\n\n") ?? [];
    return wanted === undefined ? answer(heard, turn) : { text: wanted, pcm: tone(0.4) };
  },
});
const model = await startScriptedModel();
const server = await startTestServer({
  env: {
    PARLEY_SPEECH: "loopback", PARLEY_MODEL_URL: model.url, PARLEY_REALTIME_URL: realtime.url,
  },
});
after(async () => {
  await server.close();
  await realtime.close();
  await model.close();
});

async function startCall(mode: "multimodal" | "dualplex", settings: object = {}, at = server) {
  const models = await at.call("GET", `/user/assistants/models?type=${mode}`);
  const assistant = await newAssistant(at, {
    mode, multimodal_model_id: models.body[0].id, llm_model_id: null, initial_message: "Hi there.",
    post_call_evaluation: false, record: true, system_prompt: "You are {{who}}.",
    variables: { who: "the front desk" }, ...settings,
  });
  const conversation = await newConversation(at, assistant.uuid);
  const caller = await WebCaller.open(at, conversation, await callTicket(at, conversation));
  return caller;
}

async function startRealtimeCall(...args: Parameters<typeof startCall>) {
  const caller = await startCall(...args);
  const peer = await realtime.peer(peers);
  peers += 1;
  return { caller, peer };
}

/** What a call may still be shown as when its socket has closed: what ended it is being written. */
const UNDER_WAY = ["initiated", "in-progress", "ended"];

async function ended(caller: WebCaller, status: string, at = server) {
  await caller.closed();
  for (;;) {
    const { body } = await at.call("GET", `/user/calls/${caller.callId}`);
    if (body.status === status) return body;
    assert.ok(UNDER_WAY.includes(body.status), body.status);
    await new Promise(setImmediate);
  }
}

interface SentSession {
  instructions: string;
  output_modalities: string[];
  audio: { output: { voice?: string } };
}

test("[CR30] multimodal: the model hears and speaks; transcript, latency and recording as in every call", async () => {
  answer = () => ({ text: "We open at nine.", pcm: tone(0.8) });
  const { caller, peer } = await startRealtimeCall("multimodal");
  await caller.until(() => caller.lines.length === 1);
  caller.say("When are you open?");
  await caller.until(() => caller.lines.length === 3);
  caller.send({ type: "end" });
  const call = await ended(caller, "ended_by_customer");
  assert.equal(
    call.transcript, "AI: Hi there.\nCustomer: When are you open?\nAI: We open at nine.");
  const session = peer.received("session.update")[0]?.session as SentSession;
  assert.match(session.instructions, /You are the front desk\./);
  assert.deepEqual(session.output_modalities, ["audio"]);
  assert.equal(session.audio.output.voice, "alloy");
  assert.equal(call.latency.length, 1);
  const [turn] = call.latency;
  assert.ok(turn.heard_ms >= turn.first_audio_ms && turn.first_audio_ms >= 0);
  assert.ok(call.recording_url);
  assert.ok(peer.isClosed || (await peer.until(() => peer.isClosed), true));
});

test("[CR31] multimodal: speaking over a reply clears it and truncates it at what was played", async () => {
  const words = "one two three four five six seven eight nine ten";
  answer = () => ({ text: words, pcm: tone(5) });
  const { caller, peer } = await startRealtimeCall("multimodal");
  await caller.until(() => caller.lines.length === 1);
  caller.say("Count.");
  await caller.until(() => caller.messages.some(({ type, role, text = "", final }) =>
    type === "transcript" && role === "assistant" && !final && text.includes("three")));
  answer = () => ({ text: "Good.", pcm: tone(0.4) });
  caller.say("Stop now please.");
  await peer.until(() => peer.received("conversation.item.truncate").length === 1);
  await caller.until(() => caller.lines.at(-1) === "assistant: Good.");
  caller.send({ type: "end" });
  const call = await ended(caller, "ended_by_customer");
  const cut = call.transcript_entries.find((entry: { interrupted: boolean }) => entry.interrupted);
  assert.ok(cut && words.startsWith(cut.text) && cut.text.includes("three"), cut?.text);
  const playedMs = Number(peer.received("conversation.item.truncate")[0]?.audio_end_ms);
  const heard = cut.text.split(" ").length;
  assert.ok(playedMs > (heard - 1) * 500 && playedMs < (heard + 2) * 500, `${playedMs}: ${heard}`);
});

test("[CR575] keys interrupt a realtime reply: recorded and given to the model after what was heard", async () => {
  const words = "one two three four five six seven eight nine ten";
  answer = () => ({ text: words, pcm: tone(5) });
  const { caller, peer } = await startRealtimeCall("dualplex", { tools: [{ type: "collect_keypad" }] });
  await caller.until(() => caller.lines.length === 1);
  caller.say("What can I choose?");
  await caller.until(() => caller.words.includes("three"));
  answer = () => ({ text: "Sales." });
  const press = async (number: number): Promise<void> => {
    for (const digit of ["1", "#"]) caller.send({ type: "dtmf", digit });
    await caller.until(() =>
      caller.lines.filter((line) => line === "assistant: Sales.").length === number);
  };
  await press(1);
  await press(2);
  caller.send({ type: "end" });
  const call = await ended(caller, "ended_by_customer");
  const [, , menu, ...rest] = call.transcript.split("\n");
  assert.match(menu, /^AI: one two three/);
  assert.deepEqual(rest, [
    "Customer: [Keypad input: 1]", "AI: Sales.", "Customer: [Keypad input: 1]", "AI: Sales.",
  ]);
  assert.ok(!caller.words.includes("ten"), caller.words.join(" "));
  const items = peer.received("conversation.item.create").map(({ item }) =>
    (item as { content: { text: string }[] }).content[0]?.text);
  assert.deepEqual(items, [menu.slice(4), "[Keypad input: 1]", "[Keypad input: 1]"]);
});

test("[CR32] multimodal: a tool is called and answered; speech before it is heard to its end", async () => {
  answer = (_, { outputs }) => outputs.length > 0
    ? { text: "Goodbye.", pcm: tone(0.4) }
    : { text: "One moment.", pcm: tone(1), calls: [{ name: "hang_up", arguments: "{}" }] };
  const { caller, peer } = await startRealtimeCall("multimodal", {
    tools: [{ type: "end_call", description: "" }],
  });
  await caller.until(() => caller.lines.length === 1);
  caller.say("That is all.");
  const call = await ended(caller, "ended_by_assistant");
  assert.deepEqual(
    call.transcript_entries.map(({ sender, text }: { sender: string; text: string }) =>
      `${sender}: ${text}`),
    ["bot: Hi there.", "human: When are you open?", "bot: One moment.", "bot: Goodbye."]);
  const made = call.transcript_entries.flatMap(
    ({ function_calls = [] }: { function_calls?: { name: string }[] }) => function_calls);
  assert.deepEqual(made, [{ name: "hang_up", arguments: {}, result: { ended: true } }]);
  assert.equal(peer.received("conversation.item.create").length, 1);
});

test("[CR33] dualplex: the model writes, our voice speaks; the model keeps only the words heard", async () => {
  answer = () => ({ text: "one two three four five six seven eight nine ten." });
  const { caller, peer } = await startRealtimeCall("dualplex");
  await caller.until(() => caller.words.join(" ") === "Hi there.");
  const session = peer.received("session.update")[0]?.session as SentSession;
  assert.deepEqual(session.output_modalities, ["text"]);
  await caller.until(() => caller.lines.length === 1);
  caller.say("Count.");
  await caller.until(() => caller.words.length >= 5);
  answer = () => ({ text: "Good." });
  caller.say("Stop now please.");
  await peer.until(() => peer.received("conversation.item.delete").length === 1);
  await caller.until(() => caller.words.at(-1) === "Good.");
  await caller.until(() => caller.lines.at(-1) === "assistant: Good.");
  caller.send({ type: "end" });
  const call = await ended(caller, "ended_by_customer");
  const heard = caller.words.slice(2, -1).join(" ");
  const cut = call.transcript_entries.find((entry: { interrupted: boolean }) => entry.interrupted);
  assert.equal(cut.text, heard);
  assert.deepEqual(peer.received("conversation.item.create")[0]?.item, {
    type: "message", role: "assistant", content: [{ type: "output_text", text: heard }],
  });
});

test("[CR34] another assistant takes over: new instructions and tools, the same line", async () => {
  const second = await newAssistant(server, {
    system_prompt: "You are the billing desk.", initial_message: "Billing here.",
    tools: [{ type: "end_call", description: "" }],
  });
  answer = (_, { outputs }) => outputs.length > 0
    ? { text: "Handing over." }
    : { text: "", calls: [{ name: "transfer_to_assistant", arguments: "{}" }] };
  const { caller, peer } = await startRealtimeCall("dualplex", {
    tools: [{ type: "assistant_transfer", description: "", assistant_id: second.id }],
  });
  await caller.until(() => caller.words.length === 2);
  caller.say("Billing please.");
  await peer.until(() => peer.received("session.update").length === 2);
  await caller.until(() => caller.words.slice(-2).join(" ") === "Billing here.");
  const session = peer.received("session.update")[1]?.session as SentSession & { tools: object[] };
  assert.match(session.instructions, /billing desk/);
  assert.deepEqual(session.tools.map((tool) => (tool as { name: string }).name), ["hang_up"]);
  caller.send({ type: "end" });
  await ended(caller, "ended_by_customer");
});

test("[CR122] the model requested is the assistant's; if it has none, the server's", async () => {
  for (const [id, name] of [[104, "gpt-realtime"], [103, "gpt-4o-mini-realtime-preview"], [101, "gpt-realtime"]] as const) {
    const { caller, peer } = await startRealtimeCall("multimodal", { multimodal_model_id: id });
    assert.equal(peer.query.get("model"), name);
    caller.hangUp();
    await ended(caller, "ended_by_customer");
  }
});

test("[CR123] in a silence the model does what reengagement_prompt says", async () => {
  answer = (heard) => ({ text: heard.includes("Offer help") ? "May I help?" : "Yes.", pcm: tone(0.2) });
  const { caller } = await startRealtimeCall("multimodal", {
    max_silence_duration: 1, reengagement_prompt: "Offer help once more.",
  });
  await caller.until(() => caller.lines.at(-1) === "assistant: May I help?");
  caller.send({ type: "end" });
  await ended(caller, "ended_by_customer");
});

/** What a call comes to that a machine answers. */
async function callMachine(settings: object) {
  const models = await server.call("GET", "/user/assistants/models?type=multimodal");
  const assistant = await newAssistant(server, {
    type: "outbound", status: "active", mode: "multimodal", llm_model_id: null,
    multimodal_model_id: models.body[0].id, initial_message: "Hi there.",
    post_call_evaluation: false, ...settings,
  });
  const over = Promise.withResolvers<void>();
  const { body: made } = await server.call("POST", "/user/make_call", {
    body: { assistant_id: assistant.id, phone_number: "+15550100003" },
  });
  const stop = server.app.features.bus.subscribe(`call:${made.call_id}`, (notice) => {
    if (notice.kind === "committed" && notice.event.type === "call_ended") over.resolve();
  });
  peers += 1;
  await over.promise;
  stop();
  return (await server.call("GET", `/user/calls/${made.call_id}`)).body;
}

test("[CR124] a machine answering a realtime call is left the message, and the call ends as set", async () => {
  answer = () => ({ text: "I am talking to a machine.", pcm: tone(0.2) });
  const message = "Please call us back.";
  heardText = "Please leave a message after the tone.";
  const [left, silent, kept] = await Promise.all([
    callMachine({ voice_mail_message: message }),
    callMachine({}),
    callMachine({
      voice_mail_message: message, end_call_on_voicemail: false, max_duration: 20,
    }),
  ]);
  heardText = "When are you open?";
  assert.equal(left.answered_by, "machine");
  assert.equal(left.end_reason, "voicemail");
  // The machine may go on: its beep was still heard when the call ended.
  const ours = left.transcript_entries.filter(({ sender }: { sender: string }) => sender === "bot");
  assert.equal(ours.at(-1).text, message);
  assert.deepEqual([silent.answered_by, silent.end_reason], ["machine", "voicemail"]);
  assert.equal(kept.answered_by, "machine");
  assert.notEqual(kept.end_reason, "voicemail");
  assert.match(kept.transcript, /Please call us back\./);
});

test("[CR35] a realtime model that refuses or dies fails the call; without one the pipeline is used", async () => {
  realtime.refuse(401);
  const refused = await startCall("multimodal");
  const failed = await ended(refused, "failed");
  assert.deepEqual([failed.end_reason, failed.total_cost], ["speech_failed", 0]);
  assert.match(failed.failure_reason, /^Speech on this server failed: .+\. Check the speech engine and its key/);
  realtime.refuse(null);
  const { caller, peer } = await startRealtimeCall("multimodal");
  await caller.until(() => caller.lines.length === 1);
  peer.cut();
  assert.equal((await ended(caller, "failed")).transcript, "AI: Hi there.");

  const plain = await startTestServer({
    env: { PARLEY_SPEECH: "loopback", PARLEY_MODEL_URL: model.url },
  });
  try {
    model.script(() => ({ tokens: ["We ", "open ", "at ", "nine."] }));
    const other = await startCall("multimodal", { endpoint_sensitivity: 1 }, plain);
    await other.until(() => other.words.length === 2);
    other.say("When are you open?");
    await other.until(() => other.words.slice(2).join(" ") === "We open at nine.");
    other.send({ type: "end" });
    await ended(other, "ended_by_customer", plain);
  } finally {
    await plain.close();
  }
});
