// A Fastify server that asks the model in one of two ways:
//   node bench/baseline/server.ts fetch|ai DATABASE MODEL_URL   → {"port":12345}
// The reply is streamed as server-sent events while it comes and stored before the stream ends.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import Fastify, { type FastifyReply } from "fastify";
import type { AddressInfo } from "node:net";
import { textOf } from "./dialect.ts";
import { openStore, type Turn } from "./store.ts";

const [way = "", database = "", modelUrl = ""] = process.argv.slice(2);
const store = openStore(database);
const SYSTEM = { role: "system" as const, content: "You are helpful." };

/** Reads the dialect as most hand-written servers do: fetch, a decoder, lines, JSON. */
async function* withFetch(history: Turn["history"]): AsyncGenerator<string> {
  const response = await fetch(`${modelUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "scripted", stream: true, messages: [SYSTEM, ...history] }),
  });
  if (!response.ok || !response.body) throw new Error(`the model answered ${response.status}`);
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const text = textOf(line);
      if (text !== "") yield text;
    }
  }
}

const provider = createOpenAICompatible({ name: "scripted", baseURL: modelUrl });

async function* withAi(history: Turn["history"]): AsyncGenerator<string> {
  const { textStream } = streamText({
    model: provider("scripted"), system: SYSTEM.content, messages: history,
  });
  yield* textStream;
}

const ask = way === "ai" ? withAi : withFetch;

async function stream(reply: FastifyReply, turn: Turn): Promise<void> {
  const { raw } = reply;
  reply.hijack();
  raw.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  let text = "";
  for await (const delta of ask(turn.history)) {
    text += delta;
    raw.write(`data: ${JSON.stringify({ type: "reply_delta", text: delta })}\n\n`);
  }
  store.complete(turn, text);
  raw.end(`data: ${JSON.stringify({ type: "reply_end" })}\n\n`);
}

const app = Fastify();
app.post("/conversations", () => ({ conversation_id: store.create() }));
app.post<{ Params: { uuid: string }; Body: { message: string } }>("/conversations/:uuid/messages", {
  schema: {
    body: {
      type: "object", required: ["message"], properties: { message: { type: "string", maxLength: 2000 } },
    },
  },
}, async (request, reply) => {
  const turn = store.begin(request.params.uuid, request.body.message);
  if (!turn) return reply.code(400).send({ error: "refused" });
  await stream(reply, turn);
});
await app.listen({ host: "127.0.0.1", port: 0 });
process.on("SIGTERM", () => process.exit(0));
const { port } = app.server.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ port })}\n`);
