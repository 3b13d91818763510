// Appointments at Cal.com: what a model looks up and books, and who ever sees the key.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { rowsBeside, runBeside } from "#support/databases/beside.ts";
import {
  assistantBody, newAssistant, newConversation, startTestServer, testDataDir,
} from "#support/server.ts";
import { startCalcom } from "#support/vendors/calcom-server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const [MORNING, NOON, LATER] = [
  "2031-03-03T09:00:00.000Z", "2031-03-03T11:30:00.000Z", "2031-03-05T09:00:00.000Z",
];
const calcom = await startCalcom([MORNING, NOON, LATER]);
const model = await startScriptedModel();
const dataDir = testDataDir();
const env = {
  PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  PARLEY_CALCOM_URL: calcom.url,
};
let server = await startTestServer({ env, dataDir });
after(async () => {
  await server.close();
  await Promise.all([model.close(), calcom.close()]);
});

const integration = (changes: object = {}) => ({
  type: "calendar_integration", calcom_api_key: calcom.key, calcom_event_slug: "intro", ...changes,
});
const withCalendar = (...tools: object[]) =>
  newAssistant(server, { timezone: "Europe/Berlin", tools });

type Call = [name: string, args: object];

/** One turn in which the model calls these functions, step by step; what each gave back. */
async function turn(
  assistant: string, ...steps: Call[][]
): Promise<Record<string, unknown>[]> {
  const uuid = await newConversation(server, assistant);
  const waiting = steps.map((calls, step) => calls.map(([name, args], index) =>
    ({ id: `c${step}-${index}`, name, arguments: JSON.stringify(args) })));
  model.script(() => {
    const toolCalls = waiting.shift();
    return toolCalls
      ? { tokens: [], toolCalls, finishReason: "tool_calls" }
      : { tokens: ["Done."] };
  });
  const { status, body } = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "An appointment please" },
  });
  model.script(null);
  assert.equal(status, 200, JSON.stringify(body));
  return body.function_calls.map(({ result }: { result: object }) => result);
}

const toolsOf = async (id: number) =>
  (await server.call("GET", `/user/assistant/${id}`)).body.tools;

test("[CA33] free times are looked up and one is booked, once however often it is asked", async () => {
  const { uuid } = await withCalendar(integration({
    calcom_booking_fields: [
      { slug: "plate-number", type: "text", label: "Number plate", required: true },
      { slug: "wheels", type: "multiselect", label: "Which", options: ["front", "rear"] },
    ],
  }));
  const booking = {
    start: "2031-03-03T12:30:00+01:00", name: "Eva", email: "eva@example.com", notes: "Squeaks",
    "plate-number": "B 77", wheels: ["front"],
  };
  const [times, missing, booked, again] = await turn(uuid, [
    ["check_availability", { date: "2031-03-03", days: 2 }],
    ["book_appointment", { ...booking, "plate-number": undefined }],
  ], [["book_appointment", booking]], [["book_appointment", booking]]);
  assert.deepEqual(times, {
    time_zone: "Europe/Berlin",
    free_times: [
      { start: "2031-03-03T10:00:00+01:00", label: "Mon 3 March at 10:00" },
      { start: "2031-03-03T12:30:00+01:00", label: "Mon 3 March at 12:30" },
    ],
  });
  assert.deepEqual(missing, { error: "The argument plate-number is missing." });
  assert.equal(booked?.booked, true);
  assert.equal(booked?.booking_uid, "uid-1");
  assert.equal(booked?.start, "2031-03-03T12:30:00+01:00");
  assert.deepEqual(again, booked);
  assert.deepEqual(calcom.asked, [{
    start: "2031-03-03T11:30:00Z", eventTypeSlug: "intro", username: "bob",
    attendee: { name: "Eva", timeZone: "Europe/Berlin", email: "eva@example.com" },
    bookingFieldsResponses: { notes: "Squeaks", "plate-number": "B 77", wheels: ["front"] },
  }]);
  assert.equal(calcom.paths.filter((path) => path === "/v2/me").length, 1);
  const { tools = [] } = model.requests.findLast((request) => request.tools) ?? {};
  const told = tools.map((tool) => (tool.function as { name: string }).name);
  assert.deepEqual(told, ["check_availability", "book_appointment"]);
});

test("[CA34] Cal.com's refusals are given in words a model can act on, and nothing more", async () => {
  const { uuid } = await withCalendar(integration({ calcom_team_slug: "front-desk" }));
  const person = { name: "Eva", email: "eva@example.com" };
  const [taken, noEmail, noTime, noDay] = await turn(uuid, [
    ["book_appointment", { ...person, start: "2031-03-03T12:30:00+01:00" }],
    ["book_appointment", { name: "Eva", start: "2031-03-05T10:00:00+01:00" }],
    ["book_appointment", { ...person, start: "soon" }],
    ["check_availability", { date: "tomorrow" }],
  ]);
  assert.match(String(taken?.error), /no longer free/);
  assert.equal(noEmail?.error, "The calendar refused it: email_validation_error");
  assert.match(String(noTime?.error), /as check_availability gave it/);
  assert.match(String(noDay?.error), /YYYY-MM-DD/);
  assert.equal(calcom.asked.at(-1)?.teamSlug, "front-desk");
  const strange = await withCalendar(integration({ calcom_api_key: "cal_live_wrong" }));
  const wrong = await turn(strange.uuid, [["check_availability", {}]]);
  assert.deepEqual(wrong, [{ error: "The calendar does not accept its key." }]);
  const elsewhere = await withCalendar(integration({
    calcom_endpoint: "custom", calcom_custom_endpoint: "http://10.0.0.1:8080/v2",
  }));
  assert.deepEqual(
    await turn(elsewhere.uuid, [["check_availability", {}]]),
    [{ error: "The calendar could not be reached." }]);
});

test("[CV555] a deleted conversation takes with it what Cal.com answered in it", async () => {
  const { uuid } = await withCalendar(integration());
  const person = { name: "Eva", email: "eva@example.com" };
  const [booked] = await turn(
    uuid, [["book_appointment", { ...person, start: "2031-03-03T10:00:00+01:00" }]]);
  const { booking_uid: booking } = booked ?? {};
  assert.equal(typeof booking, "string", JSON.stringify(booked));
  const [spoken] = await rowsBeside<{ uuid: string }>(
    dataDir, "SELECT uuid FROM conversations ORDER BY id DESC LIMIT 1");
  const saying = () => rowsBeside(
    dataDir, "SELECT id FROM tool_calls WHERE result LIKE @what", { what: `%${booking}%` });
  assert.equal((await saying()).length, 1);
  const gone = await server.call("POST", "/user/people/delete", {
    body: { conversation_id: spoken?.uuid },
  });
  assert.deepEqual([gone.status, gone.body.conversations], [200, 1], JSON.stringify(gone.body));
  assert.deepEqual(await saying(), []);
});

test("[CA35] the key is never shown, kept when its mask is sent back, and stored sealed", async () => {
  const { id, uuid } = await withCalendar(integration(), { type: "end_call" });
  const [shown] = await toolsOf(id);
  assert.equal(shown.data.calcom_api_key, "***");
  const list = await server.call("GET", "/user/assistants");
  assert.ok(!JSON.stringify(list.body).includes("canary"));
  // As an editor does it: read, change something else, write back.
  const changed = await server.call("PATCH", `/user/assistant/${id}`, {
    body: { tools: [{ ...shown, data: { ...shown.data, description: "Only mornings." } }] },
  });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  const [times] = await turn(uuid, [["check_availability", { date: "2031-03-05", days: 1 }]]);
  assert.equal((times?.free_times as object[]).length, 1);
  const none = await server.call("POST", "/user/assistant", {
    body: assistantBody({
      tools: [integration({ calcom_api_key: "***" })],
    }),
  });
  assert.equal(none.status, 422);
  assert.deepEqual(none.body.errors, {
    "tools.0.calcom_api_key": ["The calcom api key field is required."],
  });
  const rows = JSON.stringify(await rowsBeside(dataDir, "SELECT settings FROM assistants"));
  assert.ok(rows.includes("calcom_api_key"));
  assert.ok(!rows.includes("canary"));
});

test("[CA36] keys an older version stored unsealed are sealed at the next start", async () => {
  const { id, uuid } = await withCalendar(integration());
  const gone = await withCalendar(integration());
  await server.call("DELETE", `/user/assistant/${gone.id}`);
  const { key } = server;
  await server.close();
  const all = await rowsBeside<{ id: number; settings: string }>(
    dataDir, "SELECT id, settings FROM assistants");
  for (const { id: one, settings } of all) {
    const stored = JSON.parse(settings) as { tools: { calcom_api_key?: string }[] };
    for (const tool of stored.tools) if (tool.calcom_api_key) tool.calcom_api_key = calcom.key;
    await runBeside(dataDir, "UPDATE assistants SET settings = @settings WHERE id = @id", {
      id: one, settings: JSON.stringify(stored),
    });
  }
  server = await startTestServer({ env, dataDir });
  const sealed = await rowsBeside(dataDir, "SELECT settings FROM assistants");
  assert.ok(!JSON.stringify(sealed).includes("canary"));
  const { body } = await server.call("GET", `/user/assistant/${id}`, { key });
  assert.equal(body.tools[0].data.calcom_api_key, "***");
  const [times] = await turn(uuid, [["check_availability", { date: "2031-03-05", days: 1 }]]);
  assert.equal((times?.free_times as object[]).length, 1);
});
