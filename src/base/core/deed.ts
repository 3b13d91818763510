// What a request does, at hand wherever the request goes: the command that does it puts it on
// record in its own transaction. Begun by app/noting.ts, written by storage/deeds.ts.
import { AsyncLocalStorage } from "node:async_hooks";
import type { Instant } from "./system.ts";

/** Plain data: it crosses to the writer. */
export interface DeedNote {
  accountId: number;
  actor: { kind: "user" | "key" | "system"; id: string; name: string };
  /** `folder.update` */
  action: string;
  address: string | null;
  /** Null: the request names none; the command may. */
  objectId: string | null;
  /** Names of what was given; values are the command's to know. */
  fields: string[];
  now: Instant;
}

/** `open`: no command has done it yet. `writing`: one may be doing it. */
export interface Deed {
  note: DeedNote;
  state: "open" | "writing" | "noted" | "over";
}

const current = new AsyncLocalStorage<Deed>();
let underWay = 0;

/**
 * What goes on after the work is no part of the deed. While nothing is noted the context is off:
 * with it, awaiting costs the whole process twice to three times as much (Node 22).
 */
export async function during<T>(deed: Deed, work: () => T | Promise<T>): Promise<T> {
  underWay += 1;
  try {
    return await current.run(deed, work);
  } finally {
    if (deed.state !== "noted") deed.state = "over";
    underWay -= 1;
    if (underWay === 0) current.disable();
  }
}

export const deedUnderWay = (): Deed | null => (underWay === 0 ? null : current.getStore() ?? null);
