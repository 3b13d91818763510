// An endpoint in a thread of its own, so that it can close a kept connection while the test's own
// thread stands still.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

export interface ClosingEndpoint {
  url: string;
  /** Bodies of the requests that reached it, in order. */
  bodies(): Promise<string[]>;
  /** Resets the connection from that port; blocks this thread until that is done. */
  resetNow(from: number): void;
  /** Closes it as an idle timeout does; blocks this thread until that is done. */
  closeNow(from: number): void;
  /** The port at the other end of the connection that came last. */
  latest(): Promise<number>;
  stop(): Promise<void>;
}

interface Break { kind: "reset" | "close"; from: number }

type Order = Break | { kind: "bodies" } | { kind: "latest" };

/** Keeps a run from hanging for ever; no test's verdict depends on it. */
const STANDSTILL_MS = 60_000;

export async function startClosingEndpoint(): Promise<ClosingEndpoint> {
  const done = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL(import.meta.url), { workerData: { done } });
  const [{ url }] = await once(worker, "message") as [{ url: string }];
  const orderNow = (order: Order): void => {
    const before = Atomics.load(done, 0);
    worker.postMessage(order);
    if (Atomics.wait(done, 0, before, STANDSTILL_MS) === "timed-out") {
      throw new Error("the endpoint did not do what it was told; was it stopped?");
    }
  };
  const ask = async (order: Order): Promise<unknown> => {
    worker.postMessage(order);
    return (await once(worker, "message") as [unknown])[0];
  };
  return {
    url,
    bodies: async () => await ask({ kind: "bodies" }) as string[],
    latest: async () => await ask({ kind: "latest" }) as number,
    resetNow: (from) => orderNow({ kind: "reset", from }),
    closeNow: (from) => orderNow({ kind: "close", from }),
    stop: async () => void await worker.terminate(),
  };
}

async function serve(done: Int32Array): Promise<void> {
  const bodies: string[] = [];
  const sockets = new Map<number, Socket>();
  let latest = 0;
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      bodies.push(body);
      // It does not say how long it keeps connections.
      response.writeHead(200, { connection: "keep-alive" }).end("{}");
    });
  });
  server.on("connection", (socket) => sockets.set((latest = socket.remotePort ?? 0), socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const breakOff = async ({ kind, from }: Break): Promise<void> => {
    // A caller may be connected before this thread has the event.
    while (!sockets.has(from)) await once(server, "connection");
    const socket = sockets.get(from)!;
    const closed = once(socket, "close");
    kind === "reset" ? socket.resetAndDestroy() : socket.destroy();
    await closed;
    Atomics.add(done, 0, 1);
    Atomics.notify(done, 0);
  };
  parentPort?.on("message", (order: Order) => {
    if (order.kind === "bodies") parentPort?.postMessage(bodies);
    else if (order.kind === "latest") parentPort?.postMessage(latest);
    else void breakOff(order);
  });
  parentPort?.postMessage({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

if (!isMainThread) await serve((workerData as { done: Int32Array }).done);
