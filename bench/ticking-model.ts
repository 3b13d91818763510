// A model server as a process of its own whose tokens say when they were written: ` @<µs>` of the
// monotonic clock, which all processes of a machine share. Plain sockets and one timer, so that
// thousands of replies at once leave the machine to the server:
//   node bench/ticking-model.ts TOKENS GAP_MS   → {"port":12345}
import { createServer, type AddressInfo, type Socket } from "node:net";
import { nowMicros } from "./watching.ts";

const [tokens, gapMs] = process.argv.slice(2).map(Number) as [number, number];
/** Replies are spread over this many moments of each gap. */
const SLOTS = Math.max(1, Math.min(8, Math.floor(gapMs / 4)));
const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const END = chunked(`data: ${choice({}, "stop")}\n\ndata: [DONE]\n\n`) + "0\r\n\r\n";

function chunked(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function choice(delta: object, reason: string | null = null): string {
  return JSON.stringify({
    id: "c", object: "chat.completion.chunk", created: 1, model: "scripted",
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
}

const slots = Array.from({ length: SLOTS }, () => new Map<Socket, number>());
let started = 0;

function tick(slot: Map<Socket, number>): void {
  const bytes = chunked(`data: ${choice({ content: ` @${nowMicros()}` })}\n\n`);
  for (const [socket, left] of slot) {
    if (left > 0) {
      slot.set(socket, left - 1);
      socket.write(bytes);
    } else {
      slot.delete(socket);
      socket.write(END);
    }
  }
}

const server = createServer((socket) => {
  let text = "";
  socket.setNoDelay(true);
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
    const headEnd = text.indexOf("\r\n\r\n");
    const [, length = "0"] = /content-length: (\d+)/i.exec(text) ?? [];
    if (headEnd < 0 || text.length < headEnd + 4 + Number(length)) return;
    text = "";
    socket.write(HEAD);
    slots[started % SLOTS]?.set(socket, tokens);
    started += 1;
  });
  const forget = (): void => slots.forEach((slot) => slot.delete(socket));
  socket.on("close", forget);
  socket.on("error", forget);
});
let turn = 0;
setInterval(() => tick(slots[(turn += 1) % SLOTS] as Map<Socket, number>), gapMs / SLOTS);
server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
