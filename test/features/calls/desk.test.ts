// People of the account in calls, over real sockets and the real media thread in the loopback
// speech: they take them over, whisper, hand them back, are gone; a process dies meanwhile.
import assert from "node:assert/strict";
import { on, once } from "node:events";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { WebSocket } from "ws";
import { joined } from "#audio/mix.ts";
import { accountEvent, type AccountEvent } from "#support/account-events.ts";
import { ask } from "#support/api.ts";
import { levelAt } from "#support/calls/spectrum.ts";
import { parseWav } from "#support/calls/wav.ts";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { auditBeside } from "#support/databases/beside.ts";
import { memberOf } from "#support/members.ts";
import { MicrophoneSocket } from "#support/pages/microphone-socket.ts";
import { startProcess } from "#support/process.ts";
import {
  assistantBody, newAssistant, newConversation, startTestServer, testDataDir,
} from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: { PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback" },
});
after(async () => {
  await server.close();
  await model.close();
});

const RATE = 16_000;
const TALK = { initial_message: "Hi there.", post_call_evaluation: false, endpoint_sensitivity: 1 };
const LONG = "one two three four five six seven eight nine ten eleven twelve.";

const { accounts } = server.app.features;
const keyOf = async (name: string): Promise<string> =>
  (await accounts.createKey(server.accountId, name)).token;
const [anaKey, benKey] = [await keyOf("Ana"), await keyOf("Ben")];
const ana = { url: server.url, key: anaKey };

async function startCall(settings: object = {}) {
  const assistant = await newAssistant(server, { ...TALK, ...settings });
  const conversation = await newConversation(server, assistant.uuid);
  const caller = await WebCaller.open(server, conversation, await callTicket(server, conversation));
  await caller.until(() => caller.words.join(" ") === "Hi there.");
  return { caller, id: caller.callId };
}

const post = (id: number, action: string, key: string | null, body: object = {}) =>
  server.call("POST", `/user/calls/${id}/${action}`, { key, body });

const eventOf = (id: number, holds: (event: AccountEvent) => boolean): Promise<AccountEvent> =>
  accountEvent(server, (event) => event.call_id === id && holds(event));

const ended = async (id: number) => {
  await eventOf(id, ({ type }) => type === "call_ended");
  return (await server.call("GET", `/user/calls/${id}`)).body;
};

const textOf = ({ content }: Record<string, unknown>): string => String(content);
/** What the model was asked the last time. */
const lastAsked = (): string => (model.requests.at(-1)?.messages ?? []).map(textOf).join("\n");

/** The level of a tone in what was heard, all together, in dB. */
const toneIn = (pcm: Int16Array, hertz: number): number => levelAt(pcm, hertz, RATE);

test("[CR420] a person takes the call over mid-reply: heard, recorded, alone; handed back, the model knows", async () => {
  model.script(({ messages }) => messages.map(textOf).join().includes("handed the call back")
    ? { tokens: ["I ", "go ", "on."] } : { tokens: LONG.split(/(?<= )/) });
  const { caller, id } = await startCall({ record: true });
  caller.say("Count please.");
  await caller.until(() => caller.words.length >= 5);
  const stranger = await server.newAccount();
  assert.equal((await post(id, "take-over", stranger.key)).status, 404);
  await assert.rejects(MicrophoneSocket.open(ana, id), /409/);
  const { status, body: taken } = await post(id, "take-over", anaKey);
  assert.deepEqual([status, taken.desk, taken.desk_holder.name, taken.desk_reason],
    [200, "person", "Ana", "taken_over"]);
  const microphone = await MicrophoneSocket.open(ana, id);
  const refused = await post(id, "take-over", benKey);
  assert.deepEqual([refused.status, refused.body.message], [409, "Ana has this call."]);
  await assert.rejects(MicrophoneSocket.open({ url: server.url, key: benKey }, id), /409/);
  assert.equal((await post(id, "say", anaKey, { text: "Not now." })).body.ok, false);
  await caller.until(() => caller.lines.length >= 3);
  const wordsBefore = caller.words.length;
  const soundBefore = caller.sound.length;
  assert.ok(LONG.startsWith(caller.lines[2]?.slice("assistant: ".length) ?? "?"));
  microphone.say("This is Ana speaking.");
  await caller.until(() => caller.lines.includes("operator: This is Ana speaking."));
  microphone.tone(1000);
  caller.say("Thank you Ana.");
  await caller.until(() => caller.lines.includes("customer: Thank you Ana."));
  await caller.until(() => caller.sound.length >= soundBefore + 250);
  const heard = joined(caller.sound.slice(soundBefore));
  assert.ok(toneIn(heard, 1000) > -45, `${toneIn(heard, 1000)} dB`);
  // A word of the person's may come through as it is: their loudness is not known yet.
  assert.ok(!caller.words.slice(wordsBefore).some((word) => LONG.includes(word)));
  assert.ok(microphone.peaks.some((peak) => peak > 3000), "the person hears the caller");
  const { body: back } = await post(id, "hand-back", anaKey);
  assert.deepEqual([back.desk, back.desk_holder, back.desk_reason], ["assistant", null, "handed_back"]);
  await microphone.closed();
  assert.equal(microphone.closeCode, 1000);
  await caller.until(() => caller.words.join(" ").endsWith("I go on."));
  const asked = lastAsked();
  assert.match(asked, /\[Ana, a colleague\]: This is Ana speaking\./);
  assert.ok(asked.indexOf("This is Ana") < asked.indexOf("Thank you Ana."), asked);
  assert.match(asked, /begins like "\[Name, a colleague\]:"/);
  caller.send({ type: "end" });
  const call = await ended(id);
  assert.match(call.transcript, /AI: one.*\nAna: This is Ana speaking\.\nCustomer: Thank you Ana\.\nAI: I go on\./);
  const said = call.transcript_entries.find(({ sender }: { sender: string }) => sender === "operator");
  assert.equal(said.author.name, "Ana");
  const sound = parseWav(Buffer.from(await (await fetch(call.recording_url)).arrayBuffer()));
  const [customer, voice] = sound.channels;
  assert.ok(customer && voice);
  assert.ok(toneIn(voice, 1000) > -60 && toneIn(customer, 1000) < toneIn(voice, 1000) - 10);
  const changes: unknown[] = [];
  await eventOf(id, (event) => {
    if (event.type === "desk_changed") {
      changes.push([event.desk, (event.by as { name?: string }).name, event.reason]);
    }
    return event.type === "call_ended";
  });
  assert.deepEqual(changes, [["person", "Ana", "taken_over"], ["assistant", "Ana", "handed_back"]]);
  assert.equal((await post(id, "take-over", anaKey)).status, 409);
  model.script(null);
});

test("[CR421] a person back in time keeps the call; otherwise the assistant has it again, and says so", async () => {
  model.script(({ messages }) => messages.map(textOf).join().includes("connection was lost")
    ? { tokens: ["Ana ", "is ", "gone."] } : { tokens: ["Yes."] });
  const { caller, id } = await startCall();
  await post(id, "take-over", anaKey);
  const first = await MicrophoneSocket.open(ana, id);
  first.drop();
  await first.closed();
  const second = await MicrophoneSocket.open(ana, id);
  assert.equal((await server.call("GET", `/user/calls/${id}`)).body.desk, "person");
  second.drop();
  const lost = await eventOf(id, ({ type, reason }) => type === "desk_changed" && reason === "lost");
  assert.deepEqual([lost.desk, lost.by, lost.holder], ["assistant", { role: "rule" }, null]);
  await caller.until(() => caller.words.slice(2).join(" ") === "Ana is gone.");
  caller.send({ type: "end" });
  const { desk, transcript } = await ended(id);
  assert.deepEqual([desk, transcript], ["assistant", "AI: Hi there.\nAI: Ana is gone."]);
  model.script(null);
});

/** Sends a command over a call's socket and gives its answer. */
const asking = (socket: WebSocket) => async (command: "mute" | "end"): Promise<object> => {
  const frames = on(socket, "message");
  socket.send(JSON.stringify({ type: command, on: false, request_id: command }));
  for await (const [data] of frames) {
    const frame = JSON.parse((data as Buffer).toString()) as { request_id?: string };
    if (frame.request_id === command) return frame;
  }
  return {};
};

test("[AU308] a member who may no longer answer steers no call over an open socket", async () => {
  const cleo = await memberOf(server, "operator", server.key);
  const { caller, id } = await startCall();
  const { body: { ticket } } = await cleo.call("POST", "/user/stream-tickets");
  const socket = new WebSocket(
    `${server.url.replace("http", "ws")}/api/user/calls/${id}/socket?ticket=${ticket as string}`);
  await once(socket, "open");
  const ask = asking(socket);
  assert.deepEqual(await ask("mute"), { type: "mute_result", ok: true, request_id: "mute" });
  await server.call("PATCH", `/user/members/${cleo.id}`, { body: { role: "viewer" } });
  assert.deepEqual(await ask("end"), {
    type: "error", status: 403, error: "You do not have permission for this resource",
    request_id: "end",
  });
  socket.close();
  caller.send({ type: "end" });
  await ended(id);
});

test("[AU308] a member who may no longer answer speaks in no call, whatever is open", async () => {
  const cleo = await memberOf(server, "operator", server.key);
  const { caller, id } = await startCall();
  assert.equal((await cleo.call("POST", `/user/calls/${id}/take-over`)).status, 200);
  const { body: { ticket } } = await cleo.call("POST", "/user/stream-tickets");
  const socket = new WebSocket(
    `${server.url.replace("http", "ws")}/api/user/calls/${id}/speak?ticket=${ticket as string}`);
  const closed = once(socket, "close") as Promise<[code: number]>;
  await once(socket, "message");
  await server.call("PATCH", `/user/members/${cleo.id}`, { body: { role: "viewer" } });
  const [code] = await closed;
  assert.equal(code, 4501);
  caller.send({ type: "end" });
  await ended(id);
});

test("[AU318] a read-only key can listen to a call, but neither steer it nor speak in it", async () => {
  const { key, token } = await accounts.createKey(
    server.accountId, "Wallboard", { scopes: ["read"] });
  const { caller, id } = await startCall();
  const open = (what: string): WebSocket => new WebSocket(
    `${server.url.replace("http", "ws")}/api/user/calls/${id}/${what}`,
    { headers: { authorization: `Bearer ${token}` } });
  const socket = open("socket");
  await once(socket, "open");
  assert.deepEqual(await asking(socket)("end"), {
    type: "error", status: 403, error: "You do not have permission for this resource",
    request_id: "end",
  });
  assert.equal((await post(id, "take-over", token)).status, 403);
  const [, { statusCode }] = await once(open("speak"), "unexpected-response") as
    [unknown, { statusCode: number }];
  assert.equal(statusCode, 403);
  socket.close();
  caller.send({ type: "end" });
  await ended(id);
  await server.call("DELETE", `/user/api-keys/${key.id}`);
});

test("[CR422] a whisper reaches only the model, and is acted on at once when nobody speaks", async () => {
  const secret = "Offer them ten percent off.";
  model.script(({ messages }) => messages.map(textOf).join().includes("Act now")
    ? { tokens: ["We ", "have ", "a ", "discount."] } : { tokens: ["Yes."] });
  const { caller, id } = await startCall();
  assert.deepEqual((await post(id, "whisper", anaKey, { text: secret })).body, { ok: true });
  await caller.until(() => caller.words.slice(2).join(" ") === "We have a discount.");
  assert.match(lastAsked(), /\[Ana, a colleague, whispers to you alone: Offer them ten percent off\.\]/);
  caller.say("Is that so?");
  await caller.until(() => caller.lines.includes("assistant: Yes."));
  assert.match(lastAsked(), /Offer them ten percent off\./);
  caller.send({ type: "end" });
  const call = await ended(id);
  assert.ok(![...caller.words, ...caller.messages.map((message) => JSON.stringify(message))]
    .some((text) => text.includes("ten percent")));
  assert.doesNotMatch(JSON.stringify(call), /ten percent/);
  const event = await eventOf(id, ({ type }) => type === "call_whispered");
  assert.deepEqual([event.text, (event.by as { name: string }).name], [secret, "Ana"]);
  assert.deepEqual((await post(id, "whisper", anaKey, { text: secret })).body, { ok: false });
  model.script(null);
});

test("[CR424] with the assistant: the person is heard, and the assistant keeps answering", async () => {
  model.script(() => ({ tokens: ["At ", "nine."] }));
  const { caller, id } = await startCall();
  const { body } = await post(id, "take-over", anaKey, { with_assistant: true });
  assert.equal(body.desk, "person");
  const microphone = await MicrophoneSocket.open(ana, id);
  const before = caller.sound.length;
  microphone.say("I am listening too.");
  await caller.until(() => caller.lines.includes("operator: I am listening too."));
  assert.ok(caller.sound.slice(before).some((frame) => frame.some((sample) => sample > 1000)));
  caller.say("When do you open?");
  await caller.until(() => caller.words.slice(2).join(" ").endsWith("At nine."));
  assert.match(lastAsked(), /\[Ana, a colleague\]: I am listening too\./);
  assert.equal((await post(id, "hand-back", benKey)).body.desk, "assistant");
  caller.send({ type: "end" });
  assert.match((await ended(id)).transcript, /Ana: I am listening too\.\nCustomer: When do you open\?\nAI: At nine\./);
  model.script(null);
});

test("[CR423] killed while a person has a call: it failed, is charged once, and nobody has it any more", async () => {
  const folder = testDataDir();
  const env = { PARLEY_SPEECH: "loopback" };
  let child = await startProcess(folder, env);
  const { key } = child;
  after(async () => {
    const exited = once(child.process, "exit");
    child.process.kill("SIGTERM");
    await exited;
    rmSync(folder, { recursive: true });
  });
  const askChild = (path: string, body?: object) => ask({ url: child.url, key }, path, body);
  const { data } = await askChild("/user/assistant", assistantBody({
    type: "outbound", status: "active", initial_message: "Hi there.", post_call_evaluation: false,
  })) as { data?: { id: number } };
  const { call_id: id } = await askChild("/user/make_call", {
    phone_number: "+15550100006", assistant_id: data?.id,
  });
  await accountEvent({ url: child.url, key }, ({ type, call_id: of }) =>
    type === "transcript_added" && of === id);
  assert.equal((await askChild(`/user/calls/${String(id)}/take-over`, {})).desk, "person");
  const microphone = await MicrophoneSocket.open({ url: child.url, key: key ?? "" }, Number(id));
  microphone.tone(2000);
  const exited = once(child.process, "exit");
  child.process.kill("SIGKILL");
  await exited;
  child = await startProcess(folder, env);
  assert.deepEqual((await auditBeside(folder)).problems, []);
  const call = await askChild(`/user/calls/${String(id)}`);
  assert.deepEqual(
    [call.status, call.end_reason, call.desk, call.desk_holder, call.desk_reason],
    ["failed", "server_restarted", "assistant", null, "ended"]);
  assert.ok(Number(call.total_cost) <= Number(call.duration) * (0.1 / 60), String(call.total_cost));
  const changes: unknown[] = [];
  let charges = 0;
  await accountEvent({ url: child.url, key }, (event) => {
    if (event.type === "desk_changed") changes.push([event.desk, event.reason]);
    if (event.type === "balance_changed" && event.kind === "call") charges += 1;
    return event.type === "call_ended" && event.call_id === id;
  });
  assert.deepEqual(changes, [["person", "taken_over"], ["assistant", "ended"]]);
  assert.ok(charges <= 1, `${charges}`);
});
