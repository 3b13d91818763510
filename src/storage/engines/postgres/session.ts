// One connection to PostgreSQL: statements are pipelined, so they leave at once and are answered in
// order, those of one tick in one packet. `pg` is imported here and nowhere else.
import { Socket } from "node:net";
import { Client, DatabaseError, types } from "pg";
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { Sql } from "#storage/sql.ts";
import { createSql, type Ask } from "./sql.ts";

/** The connection is gone, and uncommitted work with it. */
export class ConnectionLost extends Error {}

export interface Session {
  readonly sql: Sql;
  readonly ask: Ask;
  /** A statement without parameters, such as BEGIN; resolves to the command the server reports. */
  run(text: string): Promise<string>;
  /** Resolves once everything sent has been answered. */
  idle(): Promise<void>;
  isLost(): boolean;
  /** The process id the server reported when the connection opened. */
  processId(): number | null;
  /** The handler is called once. */
  onLost(handler: () => void): void;
  /** Finishes what was sent. Idempotent. */
  close(): Promise<void>;
  /** Drops the connection at once. */
  destroy(): void;
}

export interface SessionOptions {
  url: string;
  /** What the connection is for, as shown in `pg_stat_activity`. */
  purpose: string;
  /** Longest a statement may take, and longest a transaction may idle between two of them. */
  statementMs: number;
  idleMs: number;
  system: System;
  /** Called for each statement that was done. */
  onAnswer?(): void;
}

/** SQLSTATEs after which the server hangs up, or does not take changes any more. */
const ENDING = new Set(["57P01", "57P02", "57P03", "57P05", "25P03", "25006"]);

/** Serialization failure, deadlock, lock timeout, statement timeout, a lost prepared statement. */
export const PASSING = new Set(["40001", "40P01", "55P03", "57014", "26000"]);

/** Disk full, out of memory or locks, temporary file limit; an I/O error. */
export const FULL = /^(?:53|58030$)/;

/** The SQLSTATE of an error; null: it does not come from the database. */
export const stateOf = (error: unknown): string | null =>
  (error instanceof DatabaseError ? error.code ?? "" : null);

const numeric = new Set<number>([
  types.builtins.INT2, types.builtins.INT4, types.builtins.INT8, types.builtins.NUMERIC,
  types.builtins.FLOAT4, types.builtins.FLOAT8,
]);
const PARSERS = {
  // Booleans are read as 0 and 1, as on SQLite.
  getTypeParser: (oid: number) => {
    if (numeric.has(oid)) return Number;
    if (oid === Number(types.builtins.BOOL)) return (text: string) => (text === "t" ? 1 : 0);
    if (oid === Number(types.builtins.BYTEA)) return types.getTypeParser(oid, "text");
    return (text: string) => text;
  },
};

function settingsOf({ statementMs, idleMs }: SessionOptions): string {
  const settings = {
    statement_timeout: statementMs, lock_timeout: Math.min(statementMs, LIMITS.databaseAnswerMs),
    idle_in_transaction_session_timeout: idleMs, tcp_user_timeout: LIMITS.databaseGoneMs, jit: "off",
    // Under any other level, a statement that waited for a lock would not see what its holder
    // committed.
    default_transaction_isolation: "read\\ committed",
    // With the setting of old databases, a backslash in a statement would escape the quote after
    // it.
    standard_conforming_strings: "on",
  };
  return Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`).join(" ");
}

interface Query {
  name?: string;
  text: string;
  values?: unknown[];
}

/** Makes these TLS modes verify the server, as today's driver does; it has announced a change. */
const checking = (url: string): string => (url.includes("uselibpqcompat=")
  ? url
  : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, "$1verify-full"));

/** The statements in flight on a connection, and how it is lost. */
function createPipeline(
  client: Client, socket: Socket, { statementMs, system, onAnswer }: SessionOptions,
) {
  let lostTo: Error | null = null;
  let onLost = (): void => undefined;
  let waiting = 0;
  let answeredMs = system.monotonicMs();
  let isCorked = false;
  const idling: (() => void)[] = [];
  const lose = (error: Error): void => {
    if (lostTo) return;
    lostTo = error;
    watch.cancel();
    socket.destroy();
    onLost();
  };
  // A host that has vanished answers nothing, not even an error.
  const watch = system.every(LIMITS.databaseWatchMs, () => {
    if (waiting > 0 && system.monotonicMs() - answeredMs > statementMs * 1.5) {
      lose(new Error("the database does not answer"));
    }
  });
  const answered = (): void => {
    waiting -= 1;
    answeredMs = system.monotonicMs();
    if (waiting > 0) return;
    for (const resolve of idling.splice(0)) resolve();
  };
  /** Sends everything queued within one tick in one packet. */
  const cork = (): void => {
    if (isCorked) return;
    isCorked = true;
    socket.cork();
    process.nextTick(() => {
      isCorked = false;
      socket.uncork();
    });
  };
  const failed = (error: unknown): Error => {
    const state = stateOf(error);
    if (state !== null && !ENDING.has(state) && !state.startsWith("08")) return error as Error;
    lose(error as Error);
    return new ConnectionLost((error as Error).message, { cause: error });
  };
  client.on("error", lose);
  client.on("end", () => lose(new Error("the connection ended")));
  return {
    send: async (query: Query) => {
      if (lostTo) throw new ConnectionLost(lostTo.message, { cause: lostTo });
      if (waiting === 0) answeredMs = system.monotonicMs();
      waiting += 1;
      cork();
      try {
        const answer = await client.query<Record<string, unknown>>(query);
        onAnswer?.();
        return answer;
      } catch (error) {
        throw failed(error);
      } finally {
        answered();
      }
    },
    idle: (): Promise<void> =>
      (waiting === 0 ? Promise.resolve() : new Promise((resolve) => idling.push(resolve))),
    lose,
    isLost: () => lostTo !== null,
    onLost: (handler: () => void): void => {
      onLost = handler;
      if (lostTo) handler();
    },
  };
}

interface Told {
  parameterName: string;
  parameterValue: string;
}

/** The settings the server reports when a connection opens. */
function settingsTold(client: Client): ReadonlyMap<string, string> {
  const told = new Map<string, string>();
  client.connection.on("parameterStatus", ({ parameterName, parameterValue }: Told) =>
    told.set(parameterName, parameterValue));
  return told;
}

/** Resolves once connected to a server that takes changes. */
export async function openSession(options: SessionOptions): Promise<Session> {
  const { url, purpose } = options;
  const socket = new Socket();
  const client = new Client({
    connectionString: checking(url), pipeline: true, application_name: `parley ${purpose}`, keepAlive: true,
    connectionTimeoutMillis: LIMITS.databaseGoneMs, options: settingsOf(options),
    stream: () => socket, types: PARSERS,
  });
  const { send, idle, lose, isLost, onLost } = createPipeline(client, socket, options);
  const ask: Ask = async ({ name, text, values }, parameters) => {
    const { rows, rowCount } = await send({
      ...(name === null ? {} : { name }), text, values: values(parameters),
    });
    return { rows, changes: rowCount ?? 0 };
  };
  try {
    const told = settingsTold(client);
    await client.connect();
    // During a failover the name may lead to a standby before it is promoted, so a retry makes
    // sense.
    if (told.get("in_hot_standby") === "on") {
      throw new Error("it is a read-only standby");
    }
  } catch (error) {
    lose(error as Error);
    throw error;
  }
  return {
    sql: createSql(ask),
    ask,
    run: async (text) => (await send({ text })).command,
    idle,
    processId: () => (client as Client & { processID: number | null }).processID,
    isLost,
    onLost,
    close: async () => {
      if (isLost()) return;
      onLost(() => undefined);
      await client.end();
      lose(new Error("the connection was closed"));
    },
    destroy: () => lose(new Error("the connection was given up")),
  };
}
