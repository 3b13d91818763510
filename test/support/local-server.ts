// An HTTP server of a test's own, on this machine alone, at a port of its own.
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** `close` cuts open connections, and resolves once nothing is left of the server. */
export async function listenLocally(
  server: Server,
): Promise<{ url: string; close(): Promise<void> }> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
