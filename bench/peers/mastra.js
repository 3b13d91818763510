// Mastra's agent with its memory in SQLite, behind a minimal HTTP server:
//   node mastra.js DATABASE MODEL_URL   → {"port":12345}
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { Mastra } from "@mastra/core/mastra";
import { LibSQLStore } from "@mastra/libsql";
import { Memory } from "@mastra/memory";

const [database, modelUrl] = process.argv.slice(2);
const provider = createOpenAICompatible({ name: "scripted", baseURL: modelUrl });
const storage = new LibSQLStore({ id: "bench", url: `file:${database}` });
const agent = new Agent({
  id: "bench", name: "Bench", instructions: "You are helpful.", model: provider("scripted"),
  memory: new Memory({ storage, options: { lastMessages: 200 } }),
});
new Mastra({ agents: { agent }, storage, logger: false });

async function answer(thread, message, response) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  const { textStream } = await agent.stream(message, { memory: { thread, resource: "visitor" } });
  for await (const text of textStream) {
    response.write(`data: ${JSON.stringify({ type: "reply_delta", text })}\n\n`);
  }
  response.end(`data: ${JSON.stringify({ type: "reply_end" })}\n\n`);
}

const server = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const [, , thread] = request.url.split("/");
  if (!thread) return response.end(JSON.stringify({ conversation_id: randomUUID() }));
  answer(thread, JSON.parse(body).message, response).catch((error) => {
    process.stderr.write(`${error.stack}\n`);
    response.destroy();
  });
});
process.on("SIGTERM", () => process.exit(0));
server.listen(0, "127.0.0.1", () =>
  process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`));
