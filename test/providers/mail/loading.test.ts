// The mail library when it cannot be loaded at first.
import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { test } from "node:test";
import { createSystem } from "#core/system.ts";
import { createSmtpMailer } from "#providers/mail/smtp.ts";
import { startMailServer } from "#support/vendors/mail-server.ts";

const MAIL = { accountId: 1, to: "ana@example.com", subject: "One", text: "Two" };

test("[ML84] a mail library that could not be loaded once is loaded for the next mail", async () => {
  const server = await startMailServer();
  const mailer = createSmtpMailer({
    url: server.url, from: "parley@example.com", system: createSystem(),
  });
  const hooks = registerHooks({
    resolve: (name, context, next) => {
      if (name === "nodemailer") throw new Error("EMFILE");
      return next(name, context);
    },
  });
  await assert.rejects(mailer.send(MAIL));
  hooks.deregister();
  await mailer.send(MAIL);
  assert.equal(server.taken.length, 1);
  await mailer.close();
  await server.close();
});
