// A TCP proxy that acts as a slow network that loses packets, for bench/webrtc.ts: it forwards data
// late, and a lost piece holds back what is behind it until it has been retransmitted.
import { once } from "node:events";
import { createServer, connect, type Socket } from "node:net";

interface SlowTcpOptions {
  host: string;
  port: number;
  to: number;
  delayMs: number;
  loss: number;
}

/** A loss is noticed after three more packets of 20 ms, and mended a round trip later. */
const NOTICED_MS = 60;
/** The longest packet of a page's network. */
const PACKET_BYTES = 1460;

export async function startSlowTcp(
  { host, port, to, delayMs, loss }: SlowTcpOptions,
): Promise<{ close(): void }> {
  const open = new Set<Socket>();
  const pipe = (from: Socket, target: Socket): void => {
    let freeMs = 0;
    const waiting: Buffer[] = [];
    from.on("data", (bytes) => {
      const packets = Math.ceil(bytes.length / PACKET_BYTES);
      const isLost = Math.random() > (1 - loss) ** packets;
      const nowMs = performance.now();
      freeMs = Math.max(freeMs, nowMs + delayMs + (isLost ? 2 * delayMs + NOTICED_MS : 0));
      waiting.push(bytes);
      // Timers of the same millisecond fire in any order; the queue keeps the order of the bytes.
      setTimeout(() => target.write(waiting.shift() ?? ""), freeMs - nowMs);
    });
    from.on("close", () =>
      setTimeout(() => target.destroy(), Math.max(0, freeMs - performance.now()) + 5));
    from.on("error", () => from.destroy());
    open.add(from);
  };
  const server = createServer((front) => {
    const back = connect(to, "127.0.0.1");
    front.setNoDelay(true);
    back.setNoDelay(true);
    pipe(front, back);
    pipe(back, front);
  }).listen(port, host);
  await once(server, "listening");
  return {
    close: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
