// Mail over SMTP, against a real server.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { ProviderError } from "#core/faults.ts";
import { createSystem, type System } from "#core/system.ts";
import { createSmtpMailer } from "#providers/mail/smtp.ts";
import { createHastySystem } from "#support/hasty-system.ts";
import { startMailServer } from "#support/vendors/mail-server.ts";

const FROM = "Parley <parley@example.com>";
const MAIL = {
  accountId: 1, to: "ana@example.com", subject: "Jemand wartet: grüß dich", text: "Größe\n.\nEnde",
};

const TAKES_ALL: SMTPServerOptions = {
  authOptional: true, disableReverseLookup: true,
  onData: (stream, _, done) => void stream.resume().once("end", () => done()),
};

const codeIs = (retryable: boolean, said: string) => (error: unknown): boolean =>
  error instanceof ProviderError && error.retryable === retryable && error.message.includes(said);

test("[ML1] a mail arrives as written, with its sender, and its content never becomes a header", async (context) => {
  const server = await startMailServer();
  const mailer = createSmtpMailer({ url: server.url, from: FROM, system: createSystem() });
  context.after(() => Promise.all([mailer.close(), server.close()]));
  assert.equal(mailer.isSetUp, true);
  await mailer.send(MAIL);
  await mailer.send({ ...MAIL, subject: "one\r\nBcc: eve@example.com", replyTo: "bo@example.com" });
  const [first, second] = server.taken;
  assert.deepEqual([first?.from, first?.to, first?.text.trim().split(/\r?\n/)],
    ["parley@example.com", ["ana@example.com"], MAIL.text.split("\n")]);
  assert.match(first?.raw ?? "", /^From: Parley <parley@example\.com>/m);
  assert.deepEqual(second?.to, ["ana@example.com"]);
  assert.doesNotMatch(second?.raw ?? "", /^Bcc:/m);
  assert.match(second?.raw ?? "", /^Reply-To: bo@example\.com/m);
});

test("[AU352] a mail goes to one address, whatever commas it contains, and a sender's name is one name", async (context) => {
  const server = await startMailServer();
  const mailer = createSmtpMailer({
    url: server.url, from: "Team: Help <help@example.com>", system: createSystem(),
  });
  context.after(() => Promise.all([mailer.close(), server.close()]));
  await mailer.send(MAIL);
  assert.match(server.taken[0]?.raw ?? "", /^From: "Team: Help" <help@example\.com>\r$/m);
  // A server may refuse such an address: nobody else has the mail then either.
  await Promise.allSettled(["zoe@example.com,root", "zoe,bo@example.com"].map((to) =>
    mailer.send({ ...MAIL, to })));
  const recipients = server.taken.flatMap(({ to }) => to);
  for (const other of ["root", "zoe@example.com", "bo@example.com"]) {
    assert.ok(!recipients.includes(other), other);
  }
});

test("[AU360] quoted names, quotes within them and international domains are sent in mail's own form", async (context) => {
  const server = await startMailServer();
  context.after(() => server.close());
  const senders = [
    ["\"Doe, \\\"JJ\\\" Jane\" <s@example.com>", "\"Doe, \\\"JJ\\\" Jane\" <s@example.com>"],
    ["\"JJ\" Doe <s@example.com>", "\"\\\"JJ\\\" Doe\" <s@example.com>"],
    ["Doe \"JJ\" <s@example.com>", "\"Doe \\\"JJ\\\"\" <s@example.com>"],
    ["Laden <s@bücher.example>", "Laden <s@xn--bcher-kva.example>"],
  ] as const;
  for (const [from, sent] of senders) {
    const mailer = createSmtpMailer({ url: server.url, from, system: createSystem() });
    await mailer.send(MAIL);
    await mailer.close();
    const { raw = "" } = server.taken.at(-1) ?? {};
    assert.equal(/^From: (.*)\r$/m.exec(raw)?.[1], sent);
    const domain = sent.slice(sent.indexOf("@") + 1, -1);
    assert.equal(/^Message-ID: <[\w-]+@(.*)>\r$/mi.exec(raw)?.[1], domain);
  }
});

test("[AU353] a mail server on this machine is used whoever issued its certificate", async (context) => {
  // smtp-server comes with a certificate that nobody vouches for.
  for (const secure of [false, true]) {
    const server = new SMTPServer({ ...TAKES_ALL, secure });
    context.after(() => server.close());
    const listening = server.listen(0, "127.0.0.1");
    await once(listening, "listening");
    const { port } = listening.address() as AddressInfo;
    const url = `${secure ? "smtps" : "smtp"}://127.0.0.1:${port}`;
    const mailer = createSmtpMailer({ url, from: FROM, system: createHastySystem() });
    await mailer.send(MAIL);
    await mailer.close();
  }
});

test("[AU354] a mail is marked as automatic, so that no program answers it", async (context) => {
  const server = await startMailServer();
  const mailer = createSmtpMailer({ url: server.url, from: FROM, system: createSystem() });
  context.after(() => Promise.all([mailer.close(), server.close()]));
  await mailer.send(MAIL);
  assert.match(server.taken[0]?.raw ?? "", /^Auto-Submitted: auto-generated\r$/m);
});

test("[ML2] temporary refusals by the mail server are retried, permanent ones are not", async (context) => {
  const server = await startMailServer();
  const system = createHastySystem();
  const mailer = createSmtpMailer({
    url: server.url.replace("//", "//parley:let%20me%20in@"), from: FROM, system,
  });
  context.after(() => Promise.all([mailer.close(), server.close()]));
  server.refuse(451, 421);
  await mailer.send(MAIL);
  assert.deepEqual([server.taken.length, system.waits], [1, [5000, 30_000]]);
  server.refuse(554);
  await assert.rejects(mailer.send(MAIL), codeIs(false, "554"));
  server.refuse(451, 451, 451, 451, 451);
  await assert.rejects(mailer.send(MAIL), codeIs(true, "451"));
  assert.equal(server.taken.length, 1);
  const stranger = createSmtpMailer({
    url: server.url.replace("//", "//parley:wrong@"), from: FROM, system,
  });
  await assert.rejects(stranger.send(MAIL), codeIs(false, "535"));
  await stranger.close();
});

test("[AU365] a mail is retried for longer than servers with greylisting keep strangers waiting", async (context) => {
  const server = await startMailServer();
  const system = createHastySystem();
  const mailer = createSmtpMailer({ url: server.url, from: FROM, system });
  context.after(() => Promise.all([mailer.close(), server.close()]));
  server.refuse(450, 450, 450, 450);
  await mailer.send(MAIL);
  assert.ok(system.waits.reduce((sum, one) => sum + one, 0) > 5 * 60_000, "postgrey's delay");
});

test("[AU366] an untrusted certificate or a port without TLS ends a mail at once, with the reason", async (context) => {
  const attempts = [
    ["smtps", { secure: true }, "CERT_HAS_EXPIRED"],
    ["smtp", { secure: false }, "CERT_HAS_EXPIRED"],
    ["smtps", { secure: false }, "ERR_SSL_WRONG_VERSION_NUMBER"],
  ] as const;
  for (const [scheme, options, reason] of attempts) {
    // smtp-server's own certificate is not trusted; a cancelled handshake is an error of it.
    const server = new SMTPServer({ ...TAKES_ALL, ...options }).on("error", () => undefined);
    const listening = server.listen(0, "0.0.0.0");
    await once(listening, "listening");
    // Not an address of the loopback interface, where certificates do not matter.
    const url = `${scheme}://0.0.0.0:${(listening.address() as AddressInfo).port}`;
    const system = createHastySystem();
    const mailer = createSmtpMailer({ url, from: FROM, system });
    context.after(() => void server.close());
    context.after(() => mailer.close());
    await assert.rejects(mailer.send(MAIL), codeIs(false, reason));
    assert.deepEqual(system.waits, []);
  }
});

/** Closes connections where the test says, or is not ready for a mail. */
async function startRudeServer(context: TestContext) {
  const given = { mails: [] as string[], closesAt: null as string | null, isReady: true };
  const server = createServer((socket) => {
    socket.on("error", () => undefined).write("220 rude\r\n");
    let [isMail, rest] = [false, ""];
    socket.setEncoding("utf8").on("data", (text: string) => {
      rest += text;
      const isWhole = rest.endsWith(isMail ? "\r\n.\r\n" : "\r\n");
      if (!isWhole) return;
      const said = isMail ? "." : rest.slice(0, 4);
      if (isMail) given.mails.push(rest);
      [isMail, rest] = [said === "DATA", ""];
      const answer = said === "." && !given.isReady ? "451 later" : isMail ? "354 go" : "250 ok";
      if (said === ".") given.isReady = true;
      if (said !== given.closesAt) return void socket.write(`${answer}\r\n`);
      given.closesAt = null;
      socket.destroy();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => server.close());
  return { given, url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test("[AU357] a mail the server may have accepted is not resent; a mail sent again is identical", async (context) => {
  const { given, url } = await startRudeServer(context);
  const mailer = createSmtpMailer({ url, from: FROM, system: createHastySystem() });
  context.after(() => mailer.close());
  for (const place of ["RCPT", "DATA"]) {
    given.closesAt = place;
    await mailer.send(MAIL);
  }
  assert.equal(given.mails.length, 2);
  given.closesAt = ".";
  await assert.rejects(mailer.send(MAIL), codeIs(false, "ECONNECTION"));
  assert.equal(given.mails.length, 3);
  given.isReady = false;
  await mailer.send(MAIL);
  const ids = given.mails.map((mail) => /^Message-ID: (<.+@example\.com>)\r$/m.exec(mail)?.[1]);
  assert.deepEqual([ids.length, new Set(ids).size, ids[3]], [5, 4, ids[4]]);
});

test("[ML85] one account's mails, sent slowly or tried again, keep no other's from being sent", async (context) => {
  const slow = Promise.withResolvers<void>();
  const taken: string[] = [];
  const server = new SMTPServer({
    ...TAKES_ALL,
    onRcptTo: ({ address }, _, done) => {
      if (address.startsWith("ana")) void slow.promise.then(() => done());
      else done();
    },
    onData: (stream, { envelope }, done) => {
      taken.push(...envelope.rcptTo.map(({ address }) => address));
      stream.resume().once("end", () => done());
    },
  });
  server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  const mailer = createSmtpMailer({
    url: `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`, from: FROM,
    system: createSystem(),
  });
  context.after(async () => {
    await mailer.close();
    await new Promise<void>((done) => server.close(done));
  });
  const others = { ...MAIL, accountId: 2, to: "bo@example.com" };
  // As many as wait at most.
  const first = Array.from({ length: 500 }, () => mailer.send(MAIL).then(() => true, () => false));
  await mailer.send(others);
  assert.deepEqual(taken, [others.to]);
  slow.resolve();
  const sent = (await Promise.all(first)).filter(Boolean).length;
  assert.ok(sent > 400 && sent < 500, `${sent} were sent`);
});

test("[ML3] a closed mailer gives up what is waiting", async (context) => {
  const server = await startMailServer();
  const real = createSystem();
  const waits = Promise.withResolvers<void>();
  const system: System = {
    ...real,
    after: (delayMs, run) => {
      waits.resolve();
      return real.after(delayMs, run);
    },
  };
  const mailer = createSmtpMailer({ url: server.url, from: FROM, system });
  context.after(() => server.close());
  server.refuse(451);
  const waiting = assert.rejects(mailer.send(MAIL), ProviderError);
  await waits.promise;
  await mailer.close();
  await waiting;
  assert.equal(server.taken.length, 0);
  await assert.rejects(mailer.send(MAIL), codeIs(true, "too many"));
});
