// Ports for programs that cannot take any and say which: below those that the system gives to
// whoever asks for any, or a connection may have one by the time the program wants it.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

const RANGE = { min: 10_000, max: 32_000 };

async function takeAndLeave(port: number, host: string): Promise<void> {
  const socket = createSocket("udp4");
  socket.bind(port, host);
  await once(socket, "listening");
  const server = createServer().listen({ port, host, exclusive: true });
  try {
    await once(server, "listening");
    server.close();
    await once(server, "close");
  } finally {
    socket.close();
    await once(socket, "close");
  }
}

/** The first of so many in a row that nobody has just now, over UDP or TCP. */
export async function freePorts(count = 1, host = "127.0.0.1"): Promise<number> {
  for (;;) {
    const random = RANGE.min + Math.floor(Math.random() * (RANGE.max - RANGE.min - count));
    // RTP begins at even ports.
    const first = random & ~1;
    try {
      for (let port = first; port < first + count; port += 1) await takeAndLeave(port, host);
      return first;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}
