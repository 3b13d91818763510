// Warm transfers with Debian's baresip as both telephones, the caller's and the colleague's, judged
// by what each of them wrote down: hold, briefing, the talk of the two, and who is let go when.
import assert from "node:assert/strict";
import { after, test, type TestContext } from "node:test";
import { parseWav } from "#support/calls/wav.ts";
import { createReceived } from "#support/received.ts";
import { noBaresip, RATE, startBaresip, type Baresip } from "#support/sip/baresip.ts";
import { newNumber, startSipWorld, type SipWorld } from "#support/sip/server-with-sip.ts";
import { startScriptedModel, type ScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = noBaresip();
const LIMITED = { skip, timeout: 180_000 };
const model: ScriptedModel | null = skip ? null : await startScriptedModel();
const world: SipWorld | null = skip ? null : await startSipWorld({ PARLEY_MODEL_URL: model!.url });
const closing: { close(): Promise<unknown> }[] = [];
after(async () => {
  for (const one of closing) await one.close();
  await world?.server.close();
  await model?.close();
});
model?.script(({ messages }) => {
  if (JSON.stringify(messages[0]).includes("handed to a colleague")) return { tokens: ["Eva calls."] };
  return messages.at(-1)?.role === "user" && /Keypad input: 5/.test(JSON.stringify(messages.at(-1)))
    ? { toolCalls: [{ id: "c1", name: "transfer_to_colleague", arguments: "{}" }] }
    : { tokens: ["One ", "moment."] };
});

const CALLER_HZ = 330;
const COLLEAGUE_HZ = 250;
const silence = (seconds: number): Int16Array => new Int16Array(Math.round(seconds * RATE));
const tone = (hertz: number, seconds: number): Int16Array =>
  Int16Array.from({ length: seconds * RATE }, (_, at) =>
    4000 * Math.sin((2 * Math.PI * hertz * at) / RATE));
const joined = (...parts: Int16Array[]): Int16Array =>
  Int16Array.from(parts.flatMap((part) => [...part]));

/** In how many tenths of a second the tone is what is heard. */
function tenths(pcm: Int16Array, hertz: number): number {
  const length = RATE / 10;
  let found = 0;
  for (let from = 0; from + length <= pcm.length; from += length) {
    let [real, imaginary, energy] = [0, 0, 0];
    for (let at = 0; at < length; at += 1) {
      const sample = pcm[from + at]!;
      real += sample * Math.cos((2 * Math.PI * hertz * at) / RATE);
      imaginary += sample * Math.sin((2 * Math.PI * hertz * at) / RATE);
      energy += sample ** 2;
    }
    const share = (2 * (real ** 2 + imaginary ** 2)) / (length * Math.max(1, energy));
    if (energy / length > 500 ** 2 && share > 0.6) found += 1;
  }
  return found;
}

const loudTenths = (pcm: Int16Array): number => {
  let found = 0;
  for (let from = 0; from + RATE / 10 <= pcm.length; from += RATE / 10) {
    if (pcm.subarray(from, from + RATE / 10).some((sample) => Math.abs(sample) > 400)) found += 1;
  }
  return found;
};

interface Pair {
  caller: Baresip;
  colleague: Baresip;
  callId: number;
  /** Once the transfer is at that stage. */
  stage(stage: string): Promise<{ outcome: string | null }>;
  /** Ends both telephones and reads what they wrote down. */
  recordings(): Promise<{ caller: Int16Array; colleague: Int16Array }>;
}

async function putThrough(changes: Record<string, unknown> = {}): Promise<Pair> {
  const to = newNumber();
  const colleague = await startBaresip({ microphone: tone(COLLEAGUE_HZ, 60), number: to });
  const { id: outboundId } = await world!.trunk({ sip_port: colleague.port });
  const { number } = await world!.desk({
    initial_message: "Hello", record: true,
    tools: [
      {
        type: "warm_call_transfer", supervisor_phone: to, outbound_phone_id: outboundId,
        description: "When a person is asked for", hold_message: "Please hold",
        briefing_initial_message: "A caller", connected_message: "Connected", ...changes,
      },
      { type: "collect_keypad", timeout: 1, stop_key: "#" },
    ],
  });
  const caller = await startBaresip({ microphone: joined(silence(8), tone(CALLER_HZ, 60)) });
  closing.push(caller, colleague);
  await caller.command("dial", `sip:${number}@127.0.0.1:${world!.sipPort}`);
  const callId = await world!.nextCall(number);
  const stages = createReceived<{ kind: string; outcome: string | null }>();
  world!.server.app.features.bus.subscribe(`call:${callId}`, (notice) => {
    if (notice.kind !== "committed" || notice.event.type !== "call_transfer_changed") return;
    const { transfer } = JSON.parse(notice.event.json);
    stages.receive({ kind: transfer.stage, outcome: transfer.outcome });
  });
  await world!.when(callId, "in-progress");
  for (const key of ["5", "#"]) await caller.command("sndcode", key);
  return {
    caller, colleague, callId,
    stage: (stage) => stages.event<string>(stage) as Promise<{ outcome: string | null }>,
    recordings: async () => ({
      caller: (await caller.close()).heard, colleague: (await colleague.close()).heard,
    }),
  };
}

/** Once that is on record, said by the assistant to the caller. */
async function saidTo(callId: number, words: string): Promise<void> {
  const { calls, bus } = world!.server.app.features;
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = async (): Promise<void> => {
    const said = await calls.transcript(callId);
    const own = said.filter(({ transfer }) => transfer === undefined);
    if (own.some(({ text }) => text.includes(words))) resolve();
  };
  const stop = bus.subscribe(`call:${callId}`, () => void look());
  await look();
  await promise.finally(stop);
}

const transferOf = async (callId: number): Promise<Record<string, unknown>> =>
  (await world!.server.call("GET", `/user/calls/${callId}`)).body.transfers[0];

/** Longer than the tones have to be heard. */
const TALK_MS = 13_000;

test("[WT20] [WT27] a caller hears music, a colleague the briefing; then each hears the other, and both lines end together", LIMITED, async (t: TestContext) => {
  const pair = await putThrough();
  await pair.stage("dialling");
  await pair.stage("asking");
  await pair.colleague.command("sndcode", "1");
  await pair.stage("connected");
  // Both tones are there by then, whenever the two were connected.
  await new Promise((resolve) => setTimeout(resolve, TALK_MS));
  await pair.colleague.command("hangup");
  assert.equal((await pair.stage("over")).outcome, "completed");
  const call = await world!.when(pair.callId, "completed");
  const heard = await pair.recordings();
  const found = {
    callerHearsColleague: tenths(heard.caller, COLLEAGUE_HZ),
    colleagueHearsCaller: tenths(heard.colleague, CALLER_HZ),
    callerLoud: loudTenths(heard.caller), colleagueLoud: loudTenths(heard.colleague),
    callerTenths: Math.floor((heard.caller.length * 10) / RATE),
  };
  t.diagnostic(JSON.stringify(found));
  t.diagnostic(String(call.transcript).replaceAll("\n", " | "));
  assert.ok(found.callerHearsColleague > 100, JSON.stringify(found));
  assert.ok(found.colleagueHearsCaller > 20, JSON.stringify(found));
  assert.equal(call.end_reason, "transferred");
  const transfer = await transferOf(pair.callId);
  assert.deepEqual(
    [transfer.kind, transfer.outcome, transfer.status], ["warm", "completed", "completed"]);
  assert.ok(Number(transfer.duration) * 1000 >= TALK_MS, String(transfer.duration));
  assert.match(String(transfer.formatted_transcript), /AI: A caller\nAI: Eva calls\./);
  assert.match(String(call.transcript), /AI: Please hold/);

  const url = String(transfer.recording_url);
  const soundOf = async (link: string) =>
    parseWav(Buffer.from(await (await fetch(link)).arrayBuffer()));
  const { rate, channels: [left, right] } = await soundOf(url);
  const recorded = {
    colleague: tenths(left!, COLLEAGUE_HZ), callerToColleague: tenths(right!, CALLER_HZ),
    briefing: loudTenths(right!), callerOnLeft: tenths(left!, CALLER_HZ),
  };
  t.diagnostic(JSON.stringify(recorded));
  assert.equal(rate, RATE);
  assert.ok(recorded.colleague > 100 && recorded.callerToColleague > 20, JSON.stringify(recorded));
  assert.ok(recorded.briefing > recorded.callerToColleague, "the briefing was before");
  assert.equal(recorded.callerOnLeft, 0);
  const { channels: [caller, given] } = await soundOf(String(call.recording_url));
  assert.ok(tenths(caller!, CALLER_HZ) > 20, "the caller's own line");
  assert.ok(tenths(given!, COLLEAGUE_HZ) > 100, "what the caller heard");
  assert.equal((await fetch(url.replace("leg=1", "leg=2"))).status, 404);
  await world!.server.call("DELETE", `/user/calls/${pair.callId}`);
  assert.equal((await fetch(url)).status, 404, "gone with its call");
});

test("[WT21] a telephone that declines by key leaves the caller with the assistant, which is told", LIMITED, async (t: TestContext) => {
  const pair = await putThrough({ hold_music: "none" });
  await pair.stage("briefing");
  await pair.colleague.command("sndcode", "2");
  assert.equal((await pair.stage("over")).outcome, "declined");
  await pair.colleague.events.event("CALL_CLOSED");
  await saidTo(pair.callId, "could not put you through");
  await pair.caller.command("hangup");
  const call = await world!.when(pair.callId, "ended_by_customer");
  const heard = await pair.recordings();
  t.diagnostic(String(call.transcript).replaceAll("\n", " | "));
  assert.equal(tenths(heard.caller, COLLEAGUE_HZ), 0);
  assert.equal(tenths(heard.colleague, CALLER_HZ), 0);
  const { outcome, failure_reason: why } = await transferOf(pair.callId);
  assert.deepEqual([outcome, why], ["declined", "The colleague did not take the call."]);
});

test("[WT21] a telephone that hangs up during the briefing has declined", LIMITED, async () => {
  const pair = await putThrough();
  await pair.stage("briefing");
  await pair.colleague.command("hangup");
  assert.equal((await pair.stage("over")).outcome, "declined");
  await saidTo(pair.callId, "could not put you through");
  await world!.server.call("POST", `/user/calls/${pair.callId}/end`);
  await pair.caller.events.event("CALL_CLOSED");
  await pair.recordings();
});

test("[WT22] a caller who hangs up while the colleague is asked leaves no line open", LIMITED, async () => {
  const pair = await putThrough();
  await pair.stage("asking");
  await pair.caller.command("hangup");
  assert.equal((await pair.stage("over")).outcome, "caller_left");
  await pair.colleague.events.event("CALL_CLOSED");
  const call = await world!.when(pair.callId, "ended_by_customer");
  assert.equal((call.transfers as { outcome: string }[])[0]!.outcome, "caller_left");
  await pair.recordings();
});

test("[WT21] an unknown number reaches no colleague", LIMITED, async () => {
  const pair = await putThrough({ supervisor_phone: "sip:nobody@127.0.0.1" });
  assert.equal((await pair.stage("over")).outcome, "failed");
  await saidTo(pair.callId, "could not put you through");
  const { failure_reason: why } = await transferOf(pair.callId);
  assert.match(String(why), /^The colleague could not be called: the trunk answered 404 .*\.$/);
  await pair.caller.command("hangup");
  await world!.when(pair.callId, "ended_by_customer");
  await pair.recordings();
});
