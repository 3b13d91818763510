// What a request does, carried along wherever the request goes, so that the command that does it
// records it in its own transaction. Begun by app/noting.ts, written by storage/deeds.ts.
import { AsyncLocalStorage } from "node:async_hooks";
import type { Instant } from "./system.ts";

/** Plain data, because it is sent to the writer. */
export interface DeedNote {
  accountId: number;
  actor: { kind: "user" | "key" | "system"; id: string; name: string };
  /** `folder.update` */
  action: string;
  address: string | null;
  /** Null: the request names none; the command may. */
  objectId: string | null;
  /** Names of the fields that the request gave; values are known to the command alone. */
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
 * Whatever continues after `work` is not part of the deed. The context is disabled while no deed is
 * under way: enabled, it makes every await of the process two to three times as slow (Node 22).
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
