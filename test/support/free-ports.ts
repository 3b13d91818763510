// Ports for programs that cannot bind port 0 and report the result. They are below the system's
// ephemeral range, from which a connection could take one before the program binds it.
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

/** The first of `count` consecutive ports that are free just now, over UDP and TCP. */
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
