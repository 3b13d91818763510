// A real nats-server on a free port, for tests that need one: started, killed, started again.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { nextTurn } from "#core/system.ts";
import { dataRoot } from "#support/databases/data-folder.ts";
import { freePorts } from "#support/free-ports.ts";

const PROGRAM = ["/usr/sbin/nats-server", "/usr/local/bin/nats-server", "/usr/bin/nats-server"]
  .find((path) => existsSync(path));

/** False, or why tests over NATS are skipped. */
export const withoutNats: string | false = PROGRAM === undefined
  ? "nats-server is not installed (apt install nats-server)"
  : false;

export interface NatsServer {
  url: string;
  /** Kills it, as a power cut would. */
  kill(): Promise<void>;
  /** Starts it again, on the same port. */
  start(): Promise<void>;
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "data");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** `config`: what the server's own file of settings has. */
export async function startNats(config = ""): Promise<NatsServer> {
  const port = await freePorts();
  const file = join(dataRoot(), `parley-nats-${process.pid}-${port}.conf`);
  let child: ChildProcess | null = null;
  const server: NatsServer = {
    url: `nats://127.0.0.1:${port}`,
    kill: async () => {
      const dying = child;
      child = null;
      if (!dying || dying.exitCode !== null) return;
      const gone = once(dying, "exit");
      dying.kill("SIGKILL");
      await gone;
    },
    start: async () => {
      writeFileSync(file, config);
      child = spawn(PROGRAM ?? "nats-server", ["-a", "127.0.0.1", "-p", String(port), "-c", file], {
        stdio: "ignore",
      });
      while (!await answers(port)) await nextTurn();
      rmSync(file);
    },
  };
  await server.start();
  return server;
}
