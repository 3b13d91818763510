// A port that stays while servers behind it come and go, as a proxy's does: for pages that have to
// survive a restart.
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export async function openFrontDoor(
  portBehind: () => number, onAnswer: (chunk: Buffer) => void = () => undefined,
) {
  const open = new Set<Socket>();
  const server = createServer({ noDelay: true }, (outside) => {
    const inside = connect({ port: portBehind(), host: "127.0.0.1", noDelay: true });
    inside.on("data", onAnswer);
    for (const [one, other] of [[outside, inside], [inside, outside]] as const) {
      open.add(one);
      one.pipe(other);
      // Either side ends both.
      one.on("error", () => one.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
