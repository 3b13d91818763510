// A web call on a server as it is installed, with no vendor, no account and no system package:
// sound of a speaking voice comes in over the socket, and the words are on record.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { openSynthesizers, speakWhole } from "#providers/speech/opening.ts";
import { wordErrors, wordsOf } from "#support/calls/heard-words.ts";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { NOTHING_SET_UP } from "#support/vendors/nothing-set-up.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
after(async () => {
  await server.close();
  await model.close();
});

/** What the embedded voice makes of the line. */
async function spoken(text: string): Promise<Int16Array> {
  const options = { system: createSystem(), log: createLogger("silent") };
  const voice = {
    rate: 16_000, voice: "rms", gender: "male", language: "en", speed: 1, stability: 1,
    similarity: 1, hasEmotion: false,
  } as const;
  const synthesizer = await openSynthesizers(NOTHING_SET_UP, options);
  return new Promise((resolve, reject) =>
    speakWhole(synthesizer("flite"), voice, text, (pcm) =>
      (pcm ? resolve(pcm) : reject(new Error("the voice does not speak")))));
}

test("[WC7] without any add-on English speech is understood, and the recogniser says it is a demo", { timeout: 180_000 }, async () => {
  const assistant = await newAssistant(server, {
    initial_message: "Hello.", post_call_evaluation: false, status: "active",
  });
  const conversation = await newConversation(server, assistant.uuid);
  const caller = await WebCaller.open(server, conversation, await callTicket(server, conversation));
  assert.equal(caller.messages.find(({ type }) => type === "ready")?.hearing, "server");
  await caller.until(() => caller.lines.some((line) => line.startsWith("assistant")));
  const line = "I would like to book a table for two at seven tomorrow.";
  caller.play(await spoken(line));
  await caller.until(() => caller.lines.some((one) => one.startsWith("customer")));
  const [heard = ""] = caller.lines.filter((one) => one.startsWith("customer: "));
  const errors = wordErrors(wordsOf(line), wordsOf(heard.slice("customer: ".length)));
  assert.ok(errors <= 1, heard);
  caller.hangUp();
  const { body } = await server.call("GET", "/user/assistants/transcriber-providers?language_id=1");
  const providers = body as unknown as { code: string; name: string }[];
  assert.match(providers.find(({ code }) => code === "pocketsphinx")!.name, /\(demo\)/);
});
