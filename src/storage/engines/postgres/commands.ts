// Every command over one session.
import { createCommands } from "#storage/commands.ts";
import { createSearchCommands } from "./search.ts";
import type { Session } from "./session.ts";

export interface Commands {
  run(command: string, args: unknown): Promise<unknown>;
}

const prepared = new WeakMap<Session, Commands>();

export function commandsOver(session: Session): Commands {
  const known = prepared.get(session);
  if (known) return known;
  const { sql } = session;
  const all: Record<string, (args: never) => Promise<unknown>> =
    createCommands(sql, createSearchCommands(sql));
  const commands: Commands = {
    run: async (name, args) => {
      const command = all[name];
      if (!command) throw new Error(`unknown command ${name}`);
      return command(args as never);
    },
  };
  prepared.set(session, commands);
  return commands;
}
