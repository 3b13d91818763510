// Transcripts by e-mail while the mail server does not take them at once.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Fault } from "#core/faults.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem, type System } from "#core/system.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Message } from "#features/conversations/records.ts";
import { createTranscripts } from "#features/conversations/visitors/transcripts.ts";
import { createSmtpMailer } from "#providers/mail/smtp.ts";
import { createHastySystem } from "#support/hasty-system.ts";
import { startMailServer } from "#support/vendors/mail-server.ts";

const assistant = {
  id: 1, name: "Front desk",
  settings: { timezone: "UTC", widget_settings: { transcripts: true } },
} as Assistant;
const question = {
  role: "user", content: "When?", author: null, attachments: [], createdAt: 0,
} as unknown as Message;

/** A mail server that gives these answers first, and what sends the chat to it. */
async function postTo(context: TestContext, system: System, ...refusals: number[]) {
  const server = await startMailServer();
  const from = "parley@example.com";
  const mailer = createSmtpMailer({ url: server.url, from, system: createHastySystem() });
  context.after(() => Promise.all([mailer.close(), server.close()]));
  server.refuse(...refusals);
  const transcripts = createTranscripts({ mailer, system, log: createLogger("silent") });
  const send = () => transcripts.send({
    assistant, uuid: "a", from: "192.0.2.1", email: "zoe@example.com", messages: [question],
  });
  return { server, send };
}

test("[DK36] a visitor whose transcript the mail server takes later than after 20 s is answered then", async (context) => {
  const system = createHastySystem();
  const { server, send } = await postTo(context, system, 450, 450);
  await send();
  assert.deepEqual([system.waits, server.taken.length], [[20_000], 0]);
  const [mail] = await server.until(1);
  assert.match(mail!.text, /When\?/);
});

test("[DK36] a transcript that the mail server refuses before that is reported", async (context) => {
  const { send } = await postTo(context, createSystem(), 554);
  await assert.rejects(send(), (error) => error instanceof Fault && error.status === 502);
});
