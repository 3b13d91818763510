// A real mail server on this machine, which keeps what it takes and refuses what the test says.
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { buffer } from "node:stream/consumers";
import { SMTPServer } from "smtp-server";
import { createWaiting } from "#support/waiting.ts";

export interface TakenMail {
  from: string;
  to: string[];
  /** Head and body as they came. */
  raw: string;
  /** The body, its transfer encoding undone. */
  text: string;
}

export interface MailServer {
  url: string;
  taken: TakenMail[];
  /** Answers the next mails with these codes; after them, each is taken. */
  refuse(...codes: number[]): void;
  until(count: number): Promise<TakenMail[]>;
  close(): Promise<void>;
}

/** The text of a mail that has one part. */
function bodyOf(raw: string): string {
  const end = raw.indexOf("\r\n\r\n");
  const [head, body] = [raw.slice(0, end), raw.slice(end + 4)];
  if (/^content-transfer-encoding: base64/im.test(head)) {
    return Buffer.from(body, "base64").toString("utf8");
  }
  if (!/^content-transfer-encoding: quoted-printable/im.test(head)) return body;
  const bytes = body.replaceAll("=\r\n", "").replaceAll(/=([0-9A-F]{2})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}

export async function startMailServer(): Promise<MailServer> {
  const taken: TakenMail[] = [];
  let refusals: number[] = [];
  const waiting = createWaiting();
  const server = new SMTPServer({
    authOptional: true, disabledCommands: ["STARTTLS"], disableReverseLookup: true,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, done) =>
      (username === "parley" && password === "let me in"
        ? done(null, { user: username })
        : done(new Error("no"))),
    onData: (stream, { envelope }, done) => {
      void buffer(stream).then((bytes) => {
        const code = refusals.shift();
        if (code !== undefined) return done(Object.assign(new Error("not now"), { responseCode: code }));
        const raw = bytes.toString("utf8");
        taken.push({
          from: envelope.mailFrom === false ? "" : envelope.mailFrom.address,
          to: envelope.rcptTo.map(({ address }) => address), raw, text: bodyOf(raw),
        });
        done();
        waiting.look();
      });
    },
  });
  const listening: Server = server.listen(0, "127.0.0.1");
  await once(listening, "listening");
  return {
    url: `smtp://127.0.0.1:${(listening.address() as AddressInfo).port}`,
    taken,
    refuse: (...codes) => void (refusals = codes),
    until: async (count) => {
      await waiting.until(() => taken.length >= count);
      return taken;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
