// A network between a page and the server's UDP port: another address of this machine with the
// same port, whose datagrams are forwarded late, in part, or not at all.
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";

interface UdpProxyOptions {
  port: number;
  /** Whole milliseconds each way. */
  delayMs?: number;
  /** The share that is lost each way, 0 to 1. */
  loss?: number;
}

export interface UdpProxy {
  /** Where pages find it. */
  host: string;
  passed: number;
  lost: number;
  /** Nothing passes any more. */
  cut(): void;
  close(): void;
}

const HOST = "127.0.0.2";
const SERVER = "127.0.0.1";

export async function startUdpProxy(
  { port, delayMs = 0, loss = 0 }: UdpProxyOptions,
): Promise<UdpProxy> {
  const front = createSocket("udp4");
  const backs = new Map<string, Socket>();
  let isCut = false;
  const pass = (forward: () => void): void => {
    if (isCut) return;
    if (Math.random() < loss) {
      proxy.lost += 1;
      return;
    }
    proxy.passed += 1;
    if (delayMs === 0) forward();
    else setTimeout(forward, delayMs);
  };
  const backFor = (address: string, clientPort: number): Socket => {
    const key = `${address}|${clientPort}`;
    const known = backs.get(key);
    if (known) return known;
    const back = createSocket("udp4");
    back.on("message", (bytes) =>
      pass(() => front.send(bytes, clientPort, address, () => undefined)));
    backs.set(key, back);
    return back;
  };
  front.on("message", (bytes, { address, port: clientPort }) => {
    const back = backFor(address, clientPort);
    pass(() => back.send(bytes, port, SERVER, () => undefined));
  });
  const proxy: UdpProxy = {
    host: HOST, passed: 0, lost: 0,
    cut: () => (isCut = true),
    close: () => {
      isCut = true;
      front.close();
      for (const back of backs.values()) back.close();
    },
  };
  front.bind(port, HOST);
  await once(front, "listening");
  return proxy;
}
