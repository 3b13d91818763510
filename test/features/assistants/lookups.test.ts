// What an assistant can be given: languages, models, voices, providers, phone numbers.
import assert from "node:assert/strict";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { loadCatalogs } from "#features/assistants/catalogs.ts";
import { insertBeside } from "#support/databases/beside.ts";
import { newAssistant, startTestServer, testDataDir } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

const lookup = async (path: string, key = server.key) => {
  const { status, body } = await server.call("GET", `/user/assistants/${path}`, { key });
  assert.equal(status, 200, path);
  assert.ok(Array.isArray(body), path);
  return body as Record<string, unknown>[];
};
/** What a row says beside whether it can be used here. */
const named = (rows: Record<string, unknown>[]) =>
  rows.map(({ available: _, missing: __, ...row }) => row);
const ids = (rows: Record<string, unknown>[]) => rows.map(({ id }) => id);

test("[AS40] languages have id, name, two-letter code and what their calls lack; documented ids are fixed", async () => {
  const languages = await lookup("languages");
  assert.equal(languages.length, 40);
  assert.deepEqual(languages.slice(0, 10).map(({ id, name, iso_2 }) => [id, name, iso_2]), [
    [1, "English", "en"], [2, "Romanian", "ro"], [3, "French", "fr"], [4, "Spanish", "es"],
    [5, "German", "de"], [6, "Lithuanian", "lt"], [7, "Italian", "it"], [8, "Arabic", "ar"],
    [9, "Portuguese", "pt"], [10, "Danish", "da"],
  ]);
  assert.ok(languages.every((row) => Object.keys(row).join() === "id,name,iso_2,available,missing"));
  assert.ok(languages.every(({ available, missing }) => available === (missing === null)));
  assert.equal(new Set(languages.map(({ iso_2 }) => iso_2)).size, 40);
});

test("[AS41] models are listed by type, llm by default; only the other types have a code", async () => {
  const llms = await lookup("models");
  assert.deepEqual(llms, await lookup("models?type=llm"));
  assert.ok(llms.length > 0 && named(llms).every((row) => Object.keys(row).join() === "id,name"));
  for (const type of ["multimodal", "dualplex"]) {
    const models = await lookup(`models?type=${type}`);
    assert.ok(models.length > 0);
    assert.ok(named(models).every((row) => Object.keys(row).join() === "id,name,code"));
  }
  const { status, body } = await server.call("GET", "/user/assistants/models?type=tiny");
  const message = "The selected type is invalid: it is one of llm, multimodal, dualplex.";
  assert.deepEqual([status, body], [422, { message, errors: { type: [message] } }]);
});

test("[AS42] voices have the documented fields and ids", async () => {
  const voices = await lookup("voices");
  const byId = new Map(voices.map((voice) => [voice.id, voice]));
  assert.deepEqual(byId.get(1), {
    id: 1, name: "Alloy", language_id: null, gender: "female",
    preview_url: `${server.url}/api/voices/1/preview`,
    accent: "American", age: "Young", synthesizer_provider_id: null,
    available: true, missing: null,
  });
  assert.deepEqual(
    [10, 11].map((id) => byId.get(id)).map((voice) =>
      [voice?.name, voice?.gender, voice?.synthesizer_provider_id]),
    [["Zephyr", "female", 1], ["Puck", "male", 1]]);
});

test("[AS43] voices are filtered by mode, language, provider, gender, age, accent and search", async () => {
  const all = await lookup("voices");
  const pipeline = await lookup("voices?mode=pipeline");
  const multimodal = await lookup("voices?mode=multimodal");
  assert.deepEqual(pipeline, await lookup("voices?mode=dualplex"));
  assert.ok(ids(pipeline).includes(10) && !ids(multimodal).includes(10));
  assert.ok(ids(multimodal).includes(9) && !ids(pipeline).includes(9));
  const german = await lookup("voices?language_id=5");
  assert.ok(german.every(({ language_id: language }) => language === null || language === 5));
  assert.ok(german.some(({ language_id: language }) => language === 5) && ids(german).includes(1));
  assert.deepEqual(await lookup("voices?language_id=999"), []);
  const vendors = await lookup("voices?synthesizer_provider_id=1");
  assert.ok(vendors.length > 0);
  assert.ok(vendors.every(({ synthesizer_provider_id: provider }) => provider === 1));
  assert.deepEqual(await lookup("voices?synthesizer_provider_id=2"), []);
  const male = await lookup("voices?gender=Male");
  assert.ok(male.length > 0 && male.every(({ gender }) => gender === "male"));
  const aged = await lookup("voices?age=middle%20aged");
  assert.ok(aged.length > 0 && aged.every(({ age }) => age === "Middle aged"));
  const scottish = await lookup("voices?accent=scottish");
  assert.ok(scottish.length > 0 && scottish.every(({ accent }) => accent === "Scottish"));
  assert.deepEqual((await lookup("voices?search=zePH")).map(({ name }) => name), ["Zephyr"]);
  assert.deepEqual(await lookup("voices?search=nobody"), []);
  assert.deepEqual(
    ids(await lookup("voices?mode=pipeline&language_id=5&gender=male&search=conrad")),
    [25]);
  // Blank filters are none.
  assert.deepEqual(await lookup("voices?mode=&search="), all);
  const { status, body } = await server.call("GET", "/user/assistants/voices?mode=x&language_id=y");
  assert.equal(status, 422);
  assert.deepEqual(body.errors, {
    mode: ["The selected mode is invalid: it is one of pipeline, multimodal, dualplex."],
    language_id: ["The language id must be an integer."],
  });
});

test("[AS44] speech providers have the documented ids and are filtered by language", async () => {
  const synthesizers = await lookup("synthesizer-providers");
  assert.deepEqual(named(synthesizers).slice(0, 2), [
    { id: 1, name: "ElevenLabs", code: "elevenlabs" },
    { id: 4, name: "OpenAI-compatible", code: "openai-compatible" },
  ]);
  const codes = (rows: Record<string, unknown>[]) => rows.map(({ code }) => code);
  assert.ok(["openai-compatible", "flite", "espeak-ng"].every((code) =>
    codes(synthesizers).includes(code)));
  assert.ok(!codes(await lookup("synthesizer-providers?language_id=5")).includes("flite"));
  const transcribers = await lookup("transcriber-providers");
  assert.deepEqual(named(transcribers).slice(0, 2), [
    { id: 1, name: "Deepgram", code: "deepgram" },
    { id: 4, name: "OpenAI-compatible", code: "openai-compatible" },
  ]);
  assert.ok(codes(await lookup("transcriber-providers?language_id=1")).includes("pocketsphinx"));
  const german = codes(await lookup("transcriber-providers?language_id=5"));
  assert.ok(!german.includes("pocketsphinx") && german.includes("sherpa-onnx"));
  assert.deepEqual(await lookup("transcriber-providers?language_id=999"), []);
});

test("[PN1] assignable numbers: all with availability, or those for inbound assistants", async () => {
  const { key, accountId } = await server.newAccount();
  const other = await server.newAccount();
  const add = (owner: number, number: string, type: string): Promise<number> =>
    insertBeside(server.dataDir, `
      INSERT INTO phone_numbers (account_id, phone_number, country_code, type, created_at)
      VALUES (@owner, @number, 'DE', @type, 1)`, { owner, number, type });
  const free = await add(accountId, "+4930000001", "normal");
  const taken = await add(accountId, "+4930000002", "sip");
  const callerId = await add(accountId, "+4930000003", "caller_id");
  const shared = await add(accountId, "+4930000004", "normal");
  await add(other.accountId, "+4930000005", "normal");
  await newAssistant(server, { phone_number_id: taken }, key);
  await newAssistant(server, { phone_number_id: shared, type: "outbound" }, key);
  const item = (id: number, number: string, label: string, available: boolean) => ({
    id, phone_number: number, country_code: "DE", type_label: label, is_available: available,
  });
  const all = [
    item(free, "+4930000001", "Normal", true), item(taken, "+4930000002", "SIP", false),
    item(callerId, "+4930000003", "Caller ID", false), item(shared, "+4930000004", "Normal", true),
  ];
  assert.deepEqual(await lookup("phone-numbers", key), all);
  assert.deepEqual(await lookup("phone-numbers?type=outbound", key), all);
  assert.deepEqual(await lookup("phone-numbers?type=inbound", key), [all[0], all[3]]);
  const { status } = await server.call("GET", "/user/assistants/phone-numbers?type=x", { key });
  assert.equal(status, 422);
});

test("[AS45] an invalid catalog row stops the start and is named with its place", () => {
  const shipped = join(import.meta.dirname, "../../../data");
  const broken = (file: string, edit: (rows: Record<string, unknown>[]) => void): string => {
    const folder = testDataDir();
    after(() => rmSync(folder, { recursive: true, force: true }));
    for (const name of ["languages", "voices", "providers"]) {
      cpSync(join(shipped, `${name}.json`), join(folder, `${name}.json`));
    }
    const path = join(folder, file);
    const rows = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>[];
    edit(rows);
    writeFileSync(path, JSON.stringify(rows));
    return folder;
  };
  const wrongType = broken("voices.json", (rows) => (rows[2]!.gender = 7));
  assert.throws(() => loadCatalogs(undefined, wrongType), /voices\.json: \/2\/gender/);
  const twice = broken("languages.json", (rows) => rows.push({ ...rows[0] }));
  assert.throws(() => loadCatalogs(undefined, twice), /two languages have the same id/);
  const unknown = broken("voices.json", (rows) => (rows[0]!.language_id = 999));
  assert.throws(() => loadCatalogs(undefined, unknown), /voice 1 names an unknown language/);
});

test("[AS46] plans cap tools, campaigns and parallel calls; an unknown plan means the default one", () => {
  const catalogs = loadCatalogs();
  assert.deepEqual(
    catalogs.plan("self-hosted"), { tools: 100, campaigns: 100, parallel_calls: 10 });
  assert.deepEqual(catalogs.plan("toString"), catalogs.plan("self-hosted"));
});
