// A push service as browser vendors run one, with browsers that decrypt: http_ece is independent of
// the implementation under test. Messages that are not signed for the service are refused.
import { createECDH, createPublicKey, randomBytes, verify } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import ece from "http_ece";
import { listenLocally } from "#support/local-server.ts";
import { createWaiting } from "#support/waiting.ts";

interface Pushed {
  title: string;
  body: string;
  conversation_id: string;
  for_session?: true;
}

export interface PushBrowser {
  /** As `PushSubscription.toJSON` has it. */
  subscription: { endpoint: string; keys: { p256dh: string; auth: string } };
  /** Statuses of the next messages, one each; 201 if none is left. */
  answers: number[];
  messages: Pushed[];
  headers: IncomingHttpHeaders[];
  /** How many messages came, taken or not. */
  asked: number;
  /** Resolves once so many messages were accepted. */
  until(count: number): Promise<Pushed[]>;
}

interface Claims {
  aud: string;
  exp: number;
  sub?: string;
}

/** Throws unless the header is signed by the key it names. */
function claimsOf(header: string): Claims {
  const [, token = "", key = ""] = /^vapid t=([^,]+), k=(.+)$/.exec(header) ?? [];
  const [head = "", body = "", signature = ""] = token.split(".");
  const point = Buffer.from(key, "base64url");
  const publicKey = createPublicKey({
    format: "jwk",
    key: {
      kty: "EC", crv: "P-256", x: point.toString("base64url", 1, 33), y: point.toString("base64url", 33),
    },
  });
  const isGenuine = verify("sha256", Buffer.from(`${head}.${body}`),
    { key: publicKey, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url"));
  if (!isGenuine) throw new Error("not signed by its key");
  return JSON.parse(Buffer.from(body, "base64url").toString()) as Claims;
}

export async function startPushService() {
  const browsers = new Map<string, { take(body: Buffer, headers: IncomingHttpHeaders): number }>();
  const claims: Claims[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const browser = browsers.get(request.url ?? "");
      let status = 404;
      try {
        claims.push(claimsOf(request.headers.authorization ?? ""));
        status = browser?.take(Buffer.concat(chunks), request.headers) ?? 404;
      } catch {
        // A message that is not signed or does not open is refused, as the tests then see.
        status = 403;
      }
      response.writeHead(status).end();
    });
  });
  const { url, close } = await listenLocally(server);

  const newBrowser = (): PushBrowser => {
    const keys = createECDH("prime256v1");
    keys.generateKeys();
    const authSecret = randomBytes(16);
    const path = `/send/${randomBytes(8).toString("hex")}`;
    const waiting = createWaiting();
    const browser: PushBrowser = {
      subscription: {
        endpoint: url + path,
        keys: { p256dh: keys.getPublicKey("base64url"), auth: authSecret.toString("base64url") },
      },
      answers: [], messages: [], headers: [], asked: 0,
      until: async (count) => {
        await waiting.until(() => browser.messages.length >= count);
        return browser.messages;
      },
    };
    browsers.set(path, {
      take: (body, headers) => {
        browser.asked += 1;
        const text = ece.decrypt(body, { version: "aes128gcm", privateKey: keys, authSecret });
        const status = browser.answers.shift() ?? 201;
        if (status !== 201) return status;
        browser.headers.push(headers);
        browser.messages.push(JSON.parse(text.toString("utf8")) as Pushed);
        waiting.look();
        return status;
      },
    });
    return browser;
  };
  return { url, claims, newBrowser, close };
}
