// The language of a conversation: what the model receives of it, and how a call changes into the
// caller's. Web calls over the loopback speech, whose words are heard as they are in any language.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { loadCatalogs } from "#features/assistants/catalogs.ts";
import { languageAfter } from "#features/calls/languages.ts";
import { hintsOf } from "#features/calls/voice/settings.ts";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: { PARLEY_SPEECH: "loopback", PARLEY_MODEL_URL: model.url },
});
after(async () => {
  await server.close();
  await model.close();
});

const languages = (await server.call("GET", "/user/assistants/languages")).body as
  { id: number; name: string }[];
const idOf = (name: string): number => languages.find((one) => one.name === name)?.id ?? 0;

const system = (at: number): string => String(model.requests.at(at)?.messages[0]?.content);

async function webCall(settings: object): Promise<WebCaller> {
  const assistant = await newAssistant(server, {
    initial_message: "Hello.", post_call_evaluation: false, endpoint_sensitivity: 1, ...settings,
  });
  const conversation = await newConversation(server, assistant.uuid);
  return WebCaller.open(server, conversation, await callTicket(server, conversation));
}

test("[EN49] the model is told the conversation's language, and which others to follow", async () => {
  model.script(() => ({ tokens: ["Ja."] }));
  for (const [others, told] of [[[], /German/], [["French"], /French, answer in the language/]] as const) {
    const assistant = await newAssistant(server, {
      system_prompt: "You are Ann.", language_id: idOf("German"),
      secondary_language_ids: others.map(idOf),
    });
    const conversation = await newConversation(server, assistant.uuid);
    const { status } = await server.call("POST", `/conversations/${conversation}/messages`, {
      body: { message: "Guten Tag" },
    });
    assert.equal(status, 200);
    assert.match(system(-1), /^You are Ann\.\n\nThe language of this conversation is German/);
    assert.match(system(-1), told);
  }
});

test("[CR121] a caller who changes the language is followed by the next reply, and back", async () => {
  model.script(() => ({ tokens: ["Fine."] }));
  const caller = await webCall({
    language_id: idOf("English"), secondary_language_ids: [idOf("German"), idOf("French")],
  });
  await caller.until(() => caller.lines.length === 1);
  const ask = async (line: string): Promise<string> => {
    const before = caller.lines.length;
    caller.say(line);
    await caller.until(() => caller.lines.length === before + 2);
    return system(-1);
  };
  assert.doesNotMatch(await ask("I would like to book a table please."), /They speak/);
  assert.match(await ask("Können wir bitte auf Deutsch weiterreden?"), /They speak German now/);
  // One short word may be a name; the second in a row is not.
  assert.match(await ask("merci"), /They speak German now/);
  assert.match(await ask("oui bonjour"), /They speak French now/);
  assert.doesNotMatch(await ask("Can we please go on in English again?"), /They speak/);
  caller.hangUp();
});

test("[CR121] languages are told apart by the recogniser, or by the text; names are no language", async () => {
  const english = { current: "en", doubt: null };
  const among = ["en", "de", "uk", "zh", "id"];
  const turn = (text: string, detected: string | null = null, spoken = english) =>
    languageAfter(spoken, { text, detected }, among);
  for (const [text, current] of [
    ["Ich möchte gern einen Termin", "de"], ["Я хочу забронювати столик", "uk"],
    ["我想预订一张桌子", "zh"], ["Saya ingin memesan meja", "id"],
    ["Hotel Berlin please, for Mister Schmidt", "en"], ["[Keypad input: 12]", "en"], ["42 17", "en"],
  ] as const) assert.equal((await turn(text)).current, current, text);
  assert.equal((await turn("la la la", "de")).current, "de");
  assert.deepEqual(await turn("ja", "de"), { current: "en", doubt: "de" });
  assert.equal((await turn("what is this here", "fr")).current, "en");
});

test("[AS140] every offered language has its own fillers for each tone and its own fixed call phrases", () => {
  const offered = loadCatalogs().languages();
  assert.equal(offered.length, 40);
  const sentences = new Set<string>();
  for (const { fillers, phrases } of offered) {
    for (const texts of Object.values(fillers)) assert.ok(texts.length > 0);
    for (const text of Object.values(phrases)) {
      assert.ok(!sentences.has(text), text);
      sentences.add(text);
    }
  }
});

test("[CR125] hints are the owner's words, the assistant's name, its short variables and titles", async () => {
  const { id } = await newAssistant(server, {
    name: "Zimmerhof", recogniser_hints: ["Zwickau", "Parley"],
    variables: { owner: "Frau Öhlschläger", note: "a long sentence that nobody would ever say" },
  });
  const assistant = await server.app.features.assistants.find(server.accountId, id);
  assert.ok(assistant);
  const many = Array.from({ length: 200 }, (_, number) => `Title ${number}`);
  const hints = hintsOf(assistant, ["Breakfast menu.pdf", "https://example.com/menu", ...many]);
  assert.deepEqual(hints.slice(0, 6),
    ["Zwickau", "Parley", "Zimmerhof", "Frau Öhlschläger", "Breakfast menu", "Title 0"]);
  assert.equal(hints.length, 100);
});

test("[AS97] recogniser_hints are stored as sent, and bounded", async () => {
  const { id } = await newAssistant(server, { recogniser_hints: ["Zwickau"] });
  const { body } = await server.call("GET", "/user/assistants/get?per_page=100");
  const shown = body.data.find((one: { id: number }) => one.id === id);
  assert.deepEqual(shown.recogniser_hints, ["Zwickau"]);
  for (const hints of [[" "], ["x".repeat(101)], Array.from({ length: 101 }, () => "word")]) {
    const { status } = await server.call("PUT", `/user/assistant/${id}`, {
      body: { recogniser_hints: hints },
    });
    assert.equal(status, 422);
  }
});
