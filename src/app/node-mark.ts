// A note in the data folder of the node that runs on it, for the node that follows. Used by app.ts
// over a database that several nodes serve.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { jsonOf } from "#core/values.ts";

/** The note counts only on the same machine and database: the folder may be a copy. */
interface Place {
  host: string;
  databaseId: string;
}

const Mark = Type.Object({
  host: Type.String(), databaseId: Type.String(), nodeId: Type.Integer(),
});

const pathOf = (dataDir: string): string => join(dataDir, "node.json");

/** Null: no previous node is known. */
export function nodeBefore(dataDir: string, { host, databaseId }: Place): number | null {
  const path = pathOf(dataDir);
  if (!existsSync(path)) return null;
  // Not JSON if a power cut interrupted the write: then the previous node is buried by its lease.
  const mark = jsonOf(readFileSync(path, "utf8"));
  const isOfHere = Value.Check(Mark, mark) && mark.host === host && mark.databaseId === databaseId;
  return isOfHere ? mark.nodeId : null;
}

export function leaveMark(dataDir: string, mark: Place & { nodeId: number }): void {
  const path = pathOf(dataDir);
  writeFileSync(`${path}.new`, `${JSON.stringify(mark)}\n`);
  renameSync(`${path}.new`, path);
}
