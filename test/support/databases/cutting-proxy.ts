// A TCP proxy that cuts connections: all of them, or some right after they have sent a COMMIT to
// PostgreSQL, so that the client does not learn its outcome.
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** The simple query COMMIT, as it is on the wire. */
const COMMIT = Buffer.from([0x51, 0, 0, 0, 11, ...Buffer.from("COMMIT\0")]);

/** Before the server has the COMMIT, once it has, or once it answers; no answer arrives. */
export type Cut = "unsent" | "sent" | "answered";

export interface CuttingProxy {
  port: number;
  /** Connections cut after their COMMIT so far. */
  cuts(): number;
  /** Cuts at the next COMMIT. */
  cutNext(at?: Cut): void;
  /** Cuts what is open and lets nobody in until `open`. */
  shut(): void;
  open(): void;
  isShut(): boolean;
  /** The next connection gets this answer and is cut. */
  answerNext(text: string): void;
  close(): Promise<void>;
}

/** `share`: how many of a hundred COMMITs are cut. */
export async function startCuttingProxy(targetPort: number, share = 0): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let isShut = false;
  let next: Cut | null = null;
  let cuts = 0;
  let answer: string | null = null;
  const server = createServer({ noDelay: true }, (client) => {
    if (isShut) return void client.destroy();
    if (answer !== null) {
      const text = answer;
      answer = null;
      client.on("error", () => undefined).once("data", () => client.end(text));
      return;
    }
    const target = connect({ port: targetPort, host: "127.0.0.1", noDelay: true });
    const end = (): void => {
      client.destroy();
      target.destroy();
    };
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.on("error", end).on("close", () => {
        sockets.delete(socket);
        end();
      });
    }
    target.on("data", (bytes) => client.write(bytes));
    client.on("data", (bytes) => {
      const isCut = bytes.includes(COMMIT) && (next !== null || Math.random() * 100 < share);
      if (!isCut) return void target.write(bytes);
      const at = next ?? "sent";
      next = null;
      cuts += 1;
      if (at === "unsent") return end();
      if (at === "answered") {
        target.removeAllListeners("data").once("data", end);
        return void target.write(bytes);
      }
      client.destroy();
      target.removeListener("close", end);
      target.end(bytes);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    cuts: () => cuts,
    cutNext: (at = "sent") => {
      next = at;
    },
    shut: () => {
      isShut = true;
      for (const socket of sockets) socket.destroy();
    },
    open: () => {
      isShut = false;
    },
    isShut: () => isShut,
    answerNext: (text) => {
      answer = text;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
