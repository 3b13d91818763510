// What a model does with a call: ends it, hands it on, presses keys; and the work after the call.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { createStereoRecorder } from "#audio/wav.ts";
import { parseWav } from "#support/calls/wav.ts";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import {
  startScriptedModel, type Plan, type Script, type ScriptedRequest,
} from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: {
    PARLEY_SPEECH: "loopback", PARLEY_MODEL_URL: model.url, PARLEY_CALL_PRICE: "0.01",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
    PARLEY_CALLS_MAX: "100", // A dozen at a time make a busy machine late.
  },
});
after(async () => {
  await server.close();
  await model.close();
});

const TALK = {
  initial_message: "Hi there.", post_call_evaluation: false, endpoint_sensitivity: 1,
  status: "active",
};

/** Each test has an account and a script of its own: they run together, at talking speed. */
const scripts = new Map<string, Script>();
model.script((request, call) => {
  const text = JSON.stringify(request.messages);
  const [, script] = [...scripts].find(([name]) => text.includes(name)) ?? [];
  return script?.(request, call) ?? { tokens: ["Nine ", "to ", "five."] };
});

async function newDesk(script?: Script) {
  const { key } = await server.newAccount();
  const name = `desk-${randomUUID()}`;
  if (script) scripts.set(name, script);
  const assistant = (settings: object) =>
    newAssistant(server, { ...TALK, system_prompt: `You are ${name}.`, ...settings }, key);
  return {
    key,
    name,
    assistant,
    call: (method: string, path: string, options: object = {}) =>
      server.call(method, path, { key, ...options }),
    dial: async (settings: object = {}, number = "+15550100042"): Promise<number> => {
      const { id } = await assistant({ type: "outbound", ...settings });
      const { status, body } = await server.call("POST", "/user/make_call", {
        key, body: { phone_number: number, assistant_id: id },
      });
      assert.equal(status, 200, JSON.stringify(body));
      return body.call_id as number;
    },
  };
}
type Desk = Awaited<ReturnType<typeof newDesk>>;

/** The record once the call and the work after it are over. */
async function ended(desk: Desk, callId: number) {
  const bus = server.app.features.bus;
  const over = Promise.withResolvers<void>();
  const stop = bus.subscribe(`call:${callId}`, (notice) => {
    if (notice.kind === "committed" && notice.event.type === "call_ended") over.resolve();
  });
  const { body } = await desk.call("GET", `/user/calls/${callId}`);
  if (["initiated", "ringing", "in-progress", "ended"].includes(body.status)) await over.promise;
  stop();
  return (await desk.call("GET", `/user/calls/${callId}`)).body;
}

const toolNames = ({ tools }: ScriptedRequest): string[] =>
  (tools ?? []).map((tool) => (tool.function as { name: string }).name);
const lastRole = ({ messages }: ScriptedRequest): unknown => messages.at(-1)?.role;
const calling = (name: string, args: object = {}): Plan =>
  ({ toolCalls: [{ id: "c1", name, arguments: JSON.stringify(args) }] });
interface Entry {
  function_calls?: { result: unknown }[];
}
const resultsOf = (call: { transcript_entries: Entry[] }): unknown[] =>
  call.transcript_entries.flatMap(({ function_calls: made = [] }) => made)
    .map(({ result }) => result);

/** Where the recording of a link is. */
const fileOf = (url: string): string =>
  join(server.dataDir, "recordings", `${new URL(url).pathname.split("/").at(-1)}.wav`);

void suite("at the same time", { concurrency: true }, () => {
  test("[CR20] hang_up: the farewell is heard, then the call ends; all of it is recorded", async () => {
    let tools: string[] = [];
    const desk = await newDesk((request) => {
      tools = toolNames(request);
      return lastRole(request) === "tool" ? { tokens: ["Good", "bye", "."] } : calling("hang_up");
    });
    const call = await ended(desk, await desk.dial({ tools: [{ type: "end_call", description: "" }] }));
    assert.deepEqual(tools, ["hang_up"]);
    assert.equal(call.status, "ended_by_assistant");
    assert.equal(call.end_reason, "assistant_ended");
    assert.equal(call.transcript, "AI: Hi there.\nCustomer: Hello. When are you open?\nAI: Goodbye.");
    assert.deepEqual(resultsOf(call), [{ ended: true }]);
  });

  test("[CR21] a transfer waits for the current speech and completes the call; a web call cannot transfer", async () => {
    const transfer = { type: "call_transfer", description: "", phone_number: "+15550177" };
    const desk = await newDesk((request) =>
      lastRole(request) === "tool" ? { tokens: ["One ", "moment."] } : calling("transfer_call"));
    const call = await ended(desk, await desk.dial({ tools: [transfer] }));
    assert.equal(call.status, "completed");
    assert.equal(call.end_reason, "transferred");
    assert.match(call.transcript, /AI: One moment\.$/);
    assert.deepEqual(resultsOf(call), [{ transferring: true }]);

    const assistant = await desk.assistant({ tools: [transfer] });
    const conversation = await newConversation(server, assistant.uuid);
    const ticket = await callTicket(server, conversation);
    const caller = await WebCaller.open(server, conversation, ticket);
    await caller.until(() => caller.words.length === 2);
    caller.say("A person please.");
    await caller.until(() => caller.words.join(" ").endsWith("One moment."));
    caller.send({ type: "end" });
    const web = await ended(desk, caller.callId);
    assert.equal(web.status, "ended_by_customer");
    assert.deepEqual(resultsOf(web), [{ error: "This call cannot be transferred." }]);
  });

  test("[CR346] every attempted transfer is on record and in the webhook: to whom, how, when and its outcome", async (context) => {
    const receiver = await startWebhookReceiver();
    context.after(receiver.close);
    const hook = { is_webhook_active: true, webhook_url: receiver.url };
    const wanted = [
      calling("transfer_call", { phone_number: "+19005550199" }), calling("transfer_to_assistant"),
      calling("transfer_call_2"),
    ];
    const desk = await newDesk(({ messages }) =>
      wanted[messages.filter(({ role }) => role === "tool").length] ?? { tokens: ["One ", "moment."] });
    const second = await desk.assistant({ name: "Billing", ...hook });
    const call = await ended(desk, await desk.dial({
      ...hook,
      tools: [
        { type: "call_transfer", description: "", phone_number: "+15550177", custom: true },
        {
          type: "assistant_transfer", description: "", assistant_id: second.id,
          message_before_transfer: "", speak_transfer_greeting: false,
        },
        { type: "call_transfer", description: "", phone_number: "+15550166" },
      ],
    }));
    const empty = { transcript: null, formatted_transcript: "", recording_url: null };
    const talkless = { ...empty, duration: 0, carrier_cost: 0, kind: "cold", stage: null };
    const tried = call.transfers as Record<string, unknown>[];
    assert.deepEqual(tried.map((
      { created_at: _asked, finished_at: _done, started_at: _begun, ended_at: _over, ...one },
    ) => one), [
      {
        id: 1, type: "call_transfer", status: "failed", transfer_to: "+19005550199", assistant_id: null,
        failure_reason: "Premium-rate phone numbers cannot be called.", ...talkless,
      },
      {
        id: 2, type: "assistant_transfer", status: "completed", transfer_to: "Billing",
        assistant_id: second.uuid, failure_reason: null, ...talkless,
      },
      {
        id: 3, type: "call_transfer", status: "completed", transfer_to: "+15550166",
        assistant_id: null, failure_reason: null, ...talkless,
      },
    ].map((one) => ({ ...one, outcome: one.status, to: one.transfer_to })));
    for (const { created_at: asked, finished_at: done } of tried) {
      assert.match(String(asked), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
      assert.ok(String(asked) <= String(done));
    }
    const [message] = await receiver.until(1);
    assert.deepEqual(message?.body.transfers, tried);
    const listed = await desk.call("GET", "/user/calls");
    assert.deepEqual(listed.body.data[0].transfers, tried);

    const asked = Promise.withResolvers<void>();
    scripts.set(desk.name, (request) => {
      if (lastRole(request) !== "tool") return calling("transfer_call");
      asked.resolve();
      return { tokens: Array<string>(60).fill("wait ") };
    });
    const tools = [{ type: "call_transfer", description: "", phone_number: "+15550177" }];
    const leftId = await desk.dial({ tools });
    await asked.promise.then(() => desk.call("POST", `/user/calls/${leftId}/end`));
    const [left] = (await ended(desk, leftId)).transfers;
    assert.equal(left.failure_reason, "The call ended before the transfer was made.");

    scripts.set(desk.name, () => ({ tokens: ["Nine ", "to ", "five."] }));
    const plain = await ended(desk, await desk.dial(hook));
    assert.deepEqual(plain.transfers, []);
    const [, other] = await receiver.until(2);
    assert.equal("transfers" in (other?.body ?? {}), false);
  });

  test("[CR22] transfer to a number the model names: E.164, not premium rate, or not at all", async () => {
    const numbers = ["123", "+19005550199", "+15550188"];
    const desk = await newDesk((request) => {
      const used = request.messages.filter(({ role }) => role === "tool").length;
      const next = numbers[used];
      return next === undefined ? { tokens: ["Done."] } : calling("transfer_call", { phone_number: next });
    });
    const call = await ended(desk, await desk.dial({
      tools: [{ type: "call_transfer", description: "", phone_number: "+15550177", custom: true }],
    }));
    assert.deepEqual(resultsOf(call), [
      { error: "The phone number must be in E.164 format (e.g. +1234567890)." },
      { error: "Premium-rate phone numbers cannot be called." },
      { transferring: true },
    ]);
    assert.equal(call.end_reason, "transferred");
  });

  test("[CR23] another assistant takes over with its own greeting, prompt and functions", async () => {
    const prompts: string[] = [];
    const tools: string[][] = [];
    const desk = await newDesk((request) => {
      prompts.push(String(request.messages[0]?.content));
      tools.push(toolNames(request));
      if (prompts.length === 1) return calling("transfer_to_assistant");
      return { tokens: [lastRole(request) === "tool" ? "Handing over." : "We bill monthly."] };
    });
    const second = await desk.assistant({
      type: "outbound", system_prompt: `You are the billing desk of ${desk.name}.`,
      initial_message: "Billing here.", tools: [{ type: "end_call", description: "" }],
    });
    const call = await ended(desk, await desk.dial({
      tools: [{
        type: "assistant_transfer", description: "", assistant_id: second.id,
        message_before_transfer: "I connect you.", speak_transfer_greeting: true,
      }],
    }));
    assert.match(call.transcript, /AI: Handing over\./);
    assert.match(call.transcript, /AI: I connect you\.\n?/);
    assert.match(call.transcript, /AI: Billing here\./);
    assert.doesNotMatch(prompts[0] ?? "", /billing desk/);
    assert.match(prompts.at(-1) ?? "", /billing desk/);
    assert.deepEqual(tools.at(-1), ["hang_up"]);
    assert.deepEqual(resultsOf(call), [{ transferred: true }]);
  });

  test("[CR410] tool results of a call's earlier turns are in the model's context, in their place", async () => {
    const asked: ScriptedRequest["messages"][] = [];
    const desk = await newDesk(({ messages }) => {
      asked.push(messages);
      if (asked.length === 1) return calling("send_dtmf", { digits: "12#" });
      return { tokens: [asked.length === 2 ? "Pressed." : "You pressed 12."] };
    });
    const { id } = await desk.assistant({ tools: [{ type: "dtmf_input", description: "" }] });
    const { status, body } = await desk.call("POST", "/user/try_call", {
      body: { assistant_id: id, lines: ["Press it please.", "What was it?"] },
    });
    assert.equal(status, 200, JSON.stringify(body));
    const call = await ended(desk, body.call_id as number);
    assert.deepEqual(resultsOf(call), [{ sent: "12#" }]);
    const [, ...before] = asked.find((messages) => messages.at(-1)?.content === "What was it?") ?? [];
    const from = before.findIndex(({ tool_calls: calls }) => calls !== undefined);
    const [made, said, words] = before.slice(from);
    const [made1] = made?.tool_calls as { id: string; function: object }[];
    assert.deepEqual(made1?.function, { name: "send_dtmf", arguments: '{"digits":"12#"}' });
    assert.deepEqual(
      [said?.role, said?.tool_call_id, said?.content], ["tool", made1?.id, '{"sent":"12#"}']);
    assert.deepEqual([words?.role, words?.content], ["assistant", "Pressed."]);
  });

  test("[CR24] keypad digits: valid ones are pressed, others refused", async () => {
    const wanted = ["12x", "12#"];
    const desk = await newDesk((request) => {
      const used = request.messages.filter(({ role }) => role === "tool").length;
      const next = wanted[used];
      return next === undefined ? { tokens: ["Pressed."] } : calling("send_dtmf", { digits: next });
    });
    const call = await ended(desk, await desk.dial({ tools: [{ type: "dtmf_input", description: "" }] }));
    assert.deepEqual(resultsOf(call).slice(0, 2), [{ error: "These keys do not exist." }, { sent: "12#" }]);
  });

  const SCHEMA = [
    { name: "happy", type: "bool", description: "Were they happy?" },
    { name: "guests", type: "number", description: "How many?" },
    { name: "summary", type: "string", description: "In one line" },
  ];

  test("[CR25] the evaluation: typed, repeated when it is not, its failure recorded", async () => {
    const evaluated = async (answers: string[]) => {
      let asked = 0;
      const desk = await newDesk(({ messages }) => {
        const isEvaluation = String(messages[0]?.content).includes("evaluate finished");
        if (!isEvaluation) return { tokens: ["Nine ", "to ", "five."] };
        asked += 1;
        return { tokens: [answers[Math.min(asked, answers.length) - 1] ?? ""] };
      });
      const callId = await desk.dial({ post_call_evaluation: true, post_call_schema: SCHEMA });
      return { call: await ended(desk, callId), asked };
    };
    const [fenced, again, never] = await Promise.all([
      evaluated([
        "Here it is:\n```json\n"
          + "{\"happy\": \"true\", \"guests\": \"4\", \"summary\": \"Asked.\", \"extra\": 1}\n```",
      ]),
      evaluated([
        "I cannot.", "{\"happy\": 7}", "{\"happy\": null, \"guests\": 2, \"summary\": \"x\"}",
      ]),
      evaluated(["{\"happy\": 7}"]),
    ]);
    assert.deepEqual(fenced.call.evaluation, { happy: true, guests: 4, summary: "Asked." });
    assert.equal(fenced.call.evaluation_error, null);
    assert.equal(fenced.asked, 1);
    assert.deepEqual(again.call.evaluation, { happy: null, guests: 2, summary: "x" });
    assert.equal(again.asked, 3);
    assert.deepEqual(never.call.evaluation, {});
    assert.equal(never.call.evaluation_error, "The member happy was not of type bool.");
    assert.equal(never.call.status, "ended_by_customer");
    assert.equal(never.asked, 3);
  });

  test("[CR26] a recording: both sides aligned, behind a signed link with ranges; deleted with its call", async () => {
    const desk = await newDesk();
    const call = await ended(desk, await desk.dial({ record: true }));
    const url = call.recording_url;
    const whole = Buffer.from(await (await fetch(url)).arrayBuffer());
    const { rate, channels: [customer, assistant] } = parseWav(whole);
    assert.ok(customer && assistant);
    assert.equal(customer.length, assistant.length);
    const bounds = (side: Int16Array, from = 0): number =>
      side.findIndex((sample, at) => at >= from && Math.abs(sample) > 1000) / rate;
    // The assistant greets, the customer answers a second after it is quiet.
    assert.ok(bounds(assistant) < 0.2);
    assert.ok(bounds(customer) > 1 && bounds(customer) < 4);
    const entries = call.transcript_entries as { sender: string; start_ms: number }[];
    const said = entries.find(({ sender }) => sender === "human");
    assert.ok(Math.abs((said?.start_ms ?? 0) / 1000 - bounds(customer)) < 0.3);
    const part = await fetch(url, { headers: { range: "bytes=44-143" } });
    assert.equal(part.status, 206);
    assert.equal(part.headers.get("content-range"), `bytes 44-143/${whole.length}`);
    assert.deepEqual(Buffer.from(await part.arrayBuffer()), whole.subarray(44, 144));
    const past = await fetch(url, { headers: { range: `bytes=${whole.length}-` } });
    assert.equal(past.status, 416);
    const late = new URL(url);
    late.searchParams.set("expires", "1");
    assert.equal((await fetch(late)).status, 404);
    assert.ok(existsSync(fileOf(url)));
    const { status } = await desk.call("DELETE", `/user/calls/${call.id}`);
    assert.equal(status, 200);
    assert.ok(!existsSync(fileOf(url)));
    assert.equal((await fetch(url)).status, 404);
  });

  test("[CR325] a recording's link is absolute, with the request's host", async () => {
    const desk = await newDesk();
    const { id } = await ended(desk, await desk.dial({ record: true }));
    const link = /http:\/\/parley\.test:81\/api\/recordings\/[\w-]+\?expires=\d+&signature=[\w-]+"/;
    for (const path of [`/user/calls/${id}`, "/user/calls", `/user/calls/${id}/stream`]) {
      const asked = get(`${server.url}/api${path}`, {
        headers: { authorization: `Bearer ${desk.key}`, host: "parley.test:81" },
      });
      const [response] = await once(asked, "response") as [IncomingMessage];
      assert.equal(response.statusCode, 200);
      let text = "";
      for await (const chunk of response) {
        text += String(chunk);
        if (link.test(text)) break;
      }
      assert.match(text, link, path);
    }
    assert.ok((await ended(desk, id)).recording_url.startsWith(`${server.url}/api/recordings/`));
  });

  test("[CR29] try_call: the server's own caller rings an inbound assistant and says the lines", async () => {
    const asked: string[] = [];
    const desk = await newDesk(({ messages }) => {
      asked.push(String(messages.at(-1)?.content));
      return { tokens: ["Answer ", `${asked.length}.`] };
    });
    const { id, uuid } = await desk.assistant({});
    const { status, body } = await desk.call("POST", "/user/try_call", {
      body: { assistant_id: uuid, lines: ["First question.", "Second question."] },
    });
    assert.equal(status, 200);
    const call = await ended(desk, body.call_id as number);
    assert.deepEqual(asked, ["First question.", "Second question."]);
    assert.equal(call.transcript, [
      "AI: Hi there.", "Customer: First question.", "AI: Answer 1.", "Customer: Second question.",
      "AI: Answer 2.",
    ].join("\n"));
    assert.deepEqual([call.type, call.status], ["inbound", "ended_by_customer"]);
    const bad: [object, number][] = [
      [{ assistant_id: id, lines: [] }, 422], [{ assistant_id: id, lines: [""] }, 422],
      [{ assistant_id: id, lines: Array(21).fill("x") }, 422], [{ assistant_id: 0 }, 404],
      [{ assistant_id: id, phone_number: "12" }, 400],
    ];
    for (const [wrong, expected] of bad) {
      assert.equal((await desk.call("POST", "/user/try_call", { body: wrong })).status, expected);
    }
    const { body: list } = await desk.call("GET", "/user/calls");
    assert.equal(list.total, 1);
  });

  test("[CR28] live calls beyond the plan's limit are refused; running ones go on", async () => {
    const desk = await newDesk();
    const assistant = await desk.assistant({ type: "outbound" });
    const make = () => desk.call("POST", "/user/make_call", {
      body: { phone_number: "+15550100006", assistant_id: assistant.id },
    });
    const made: number[] = [];
    for (let answer = await make(); ; answer = await make()) {
      if (answer.status !== 200) {
        assert.equal(answer.status, 429);
        assert.ok(Number(answer.headers.get("retry-after")) > 0);
        break;
      }
      made.push(answer.body.call_id as number);
      assert.ok(made.length <= 200);
    }
    const plans = JSON.parse(readFileSync("data/plans.json", "utf8")) as {
      "self-hosted": { parallel_calls: number };
    };
    assert.equal(made.length, plans["self-hosted"].parallel_calls);
    for (const id of made) {
      await desk.call("POST", `/user/calls/${id}/end`);
    }
    assert.equal((await make()).status, 200);
  });
});

test("[CR27] unanswered calls leave no recording; expired recordings go, their calls stay", async () => {
  const desk = await newDesk();
  const busy = await ended(desk, await desk.dial({ record: true }, "+15550100001"));
  assert.deepEqual([busy.status, busy.recording_url], ["busy", null]);
  const file = join(server.dataDir, "never.wav");
  const { bytes } = await createStereoRecorder({ file, rate: 16_000 }).close();
  assert.deepEqual([bytes, existsSync(file)], [0, false]);
  const call = await ended(desk, await desk.dial({ record: true }));
  const recording = fileOf(call.recording_url);
  assert.ok(existsSync(recording));
  // The other tests are over.
  const { calls } = server.app.features;
  await calls.expireRecordings(Date.now() * 1000 + 1_000_000, 100);
  const { body } = await desk.call("GET", `/user/calls/${call.id}`);
  assert.equal(body.recording_url, null);
  assert.equal(body.transcript, call.transcript);
  assert.ok(!existsSync(recording));
});
