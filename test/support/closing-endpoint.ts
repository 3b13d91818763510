// An endpoint in a thread of its own, so that it can close a kept connection while the test's own
// thread stands still. `start` it; `close` it while nothing else of the test runs.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

export interface ClosingEndpoint {
  url: string;
  /** Bodies of the requests that reached it, in order. */
  bodies(): Promise<string[]>;
  /** Resets every connection; blocks this thread until that is done. */
  resetNow(): void;
  /** Closes every connection as an idle timeout does; blocks this thread until that is done. */
  closeNow(): void;
  stop(): Promise<void>;
}

type Order = "reset" | "close" | "bodies";

export async function startClosingEndpoint(): Promise<ClosingEndpoint> {
  const done = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL(import.meta.url), { workerData: { done } });
  const [{ url }] = await once(worker, "message") as [{ url: string }];
  const orderNow = (order: Order): void => {
    const before = Atomics.load(done, 0);
    worker.postMessage(order);
    Atomics.wait(done, 0, before);
  };
  return {
    url,
    bodies: async () => {
      worker.postMessage("bodies" satisfies Order);
      return (await once(worker, "message") as [string[]])[0];
    },
    resetNow: () => orderNow("reset"),
    closeNow: () => orderNow("close"),
    stop: async () => void await worker.terminate(),
  };
}

async function serve(done: Int32Array): Promise<void> {
  const bodies: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      bodies.push(body);
      // Says nothing of how long it keeps connections.
      response.writeHead(200, { connection: "keep-alive" }).end("{}");
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  parentPort?.on("message", (order: Order) => {
    if (order === "bodies") return parentPort?.postMessage(bodies);
    const open = [...sockets];
    const closed = open.map((socket) => once(socket, "close"));
    for (const socket of open) order === "reset" ? socket.resetAndDestroy() : socket.destroy();
    void Promise.all(closed).then(() => {
      Atomics.add(done, 0, 1);
      Atomics.notify(done, 0);
    });
  });
  parentPort?.postMessage({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

if (!isMainThread) await serve((workerData as { done: Int32Array }).done);
