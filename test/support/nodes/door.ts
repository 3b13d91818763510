// A load balancer before several nodes, which takes the next one for every request and every
// socket, and adds nothing of its own.
import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";

export interface Door {
  port: number;
  close(): Promise<void>;
}

export async function openDoor(ports: readonly number[]): Promise<Door> {
  let turn = 0;
  const next = (): number => ports[(turn += 1) % ports.length] ?? 0;
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    // Whichever side breaks, its close ends the other one.
    return socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  };
  const server = createServer({ keepAliveTimeout: 0 }, (asked, answer) => {
    const { method, url: path, rawHeaders: headers } = asked;
    const behind = request({ host: "127.0.0.1", port: next(), method, path, headers, agent: false });
    behind.on("socket", keep);
    behind.on("response", (response) => {
      answer.writeHead(response.statusCode ?? 502, response.statusMessage, response.rawHeaders);
      answer.flushHeaders();
      response.on("error", () => answer.destroy()).pipe(answer);
    });
    behind.on("error", () => answer.destroy());
    answer.on("close", () => behind.destroy());
    asked.pipe(behind);
  });
  server.on("connection", keep);
  server.on("upgrade", (asked: IncomingMessage, outside: Socket, head: Buffer) => {
    const inside = keep(connect({ port: next(), host: "127.0.0.1", noDelay: true }));
    const lines = asked.rawHeaders.flatMap((name, index) =>
      (index % 2 === 0 ? [`${name}: ${asked.rawHeaders[index + 1]}`] : []));
    inside.write([`${asked.method} ${asked.url} HTTP/1.1`, ...lines, "", ""].join("\r\n"));
    inside.write(head);
    for (const [one, other] of [[outside, inside], [inside, outside]] as const) {
      one.pipe(other);
      one.on("close", () => other.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
