// What the two libraries allow through which Parley speaks with clients and model, and no more:
//   node bench/baseline/relay.ts DATABASE MODEL_URL   → {"port":12345}
// It stores, checks and remembers nothing (DATABASE is not opened): a server that does is slower.
import { randomUUID } from "node:crypto";
import { App, us_socket_local_port, type HttpResponse } from "uWebSockets.js";
import { Pool } from "undici";
import { textOf } from "./dialect.ts";

const [, modelUrl = ""] = process.argv.slice(2);
const { origin, pathname } = new URL(modelUrl);
const pool = new Pool(origin, { connections: null, pipelining: 1 });

/** Joins the frames of one read, so that they are one write. */
function framesOf(lines: string[]): string {
  let frames = "";
  for (const line of lines) {
    const text = textOf(line);
    if (text !== "") frames += `data: ${JSON.stringify({ type: "reply_delta", text })}\n\n`;
  }
  return frames;
}

function relay(res: HttpResponse, message: string, isGone: () => boolean): void {
  let rest = "";
  const cork = (write: () => void): void => {
    if (!isGone()) res.cork(write);
  };
  pool.dispatch({
    path: `${pathname}/chat/completions`, method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "scripted", stream: true, messages: [{ role: "user", content: message }],
    }),
  }, {
    onRequestStart: () => {},
    onResponseStart: () => cork(() => {
      res.writeHeader("content-type", "text/event-stream").writeHeader("cache-control", "no-store");
    }),
    onResponseData: (_controller, chunk) => {
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = lines.pop() ?? "";
      const frames = framesOf(lines);
      if (frames !== "") cork(() => void res.write(frames));
    },
    onResponseEnd: () =>
      cork(() => void res.end(`data: ${JSON.stringify({ type: "reply_end" })}\n\n`)),
    onResponseError: () => cork(() => void res.close()),
  });
}

const app = App();
app.post("/conversations", (res) => {
  res.onAborted(() => {});
  res.onData(() => res.end(JSON.stringify({ conversation_id: randomUUID() })));
});
app.post("/conversations/:uuid/messages", (res) => {
  let gone = false;
  let body = "";
  res.onAborted(() => {
    gone = true;
  });
  res.onData((chunk, isLast) => {
    body += Buffer.from(chunk).toString("utf8");
    if (isLast) relay(res, (JSON.parse(body) as { message: string }).message, () => gone);
  });
});
app.listen("127.0.0.1", 0, (listener) => {
  if (!listener) throw new Error("no port is free");
  process.stdout.write(`${JSON.stringify({ port: us_socket_local_port(listener) })}\n`);
});
