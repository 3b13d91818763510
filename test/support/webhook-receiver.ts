// A receiver of webhooks: keeps what came and answers as the test says.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { listenLocally } from "./local-server.ts";
import { createWaiting } from "./waiting.ts";

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  body: Record<string, unknown>;
  /** `webhook-id`. */
  id: string;
}

export interface WebhookReceiver {
  url: string;
  received: Received[];
  /** Null answers 200 to everything. */
  answer(handle: ((message: Received, response: ServerResponse) => void) | null): void;
  until(count: number): Promise<Received[]>;
  close(): Promise<void>;
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: Received[] = [];
  let handle: ((message: Received, response: ServerResponse) => void) | null = null;
  const waiting = createWaiting();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { headers, url: path = "" } = request;
      const text = Buffer.concat(chunks).toString("utf8");
      const body = JSON.parse(text) as Record<string, unknown>;
      const message = { path, headers, text, body, id: String(headers["webhook-id"]) };
      received.push(message);
      if (handle) handle(message, response);
      else response.end("{}");
      waiting.look();
    });
  });
  const { url, close } = await listenLocally(server);
  return {
    url,
    received,
    answer: (next) => (handle = next),
    until: async (count) => {
      await waiting.until(() => received.length >= count);
      return received;
    },
    close,
  };
}
