// What a data folder says of the node that runs in it, for the one that comes after. Used by app.ts
// over a database that several nodes serve.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { jsonOf } from "#core/values.ts";

/** A folder that was copied to another machine, or is used with another database, says nothing. */
interface Place {
  host: string;
  databaseId: string;
}

const Mark = Type.Object({
  host: Type.String(), databaseId: Type.String(), nodeId: Type.Integer(),
});

const pathOf = (dataDir: string): string => join(dataDir, "node.json");

/** Null: nobody knows of one. */
export function nodeBefore(dataDir: string, { host, databaseId }: Place): number | null {
  const path = pathOf(dataDir);
  if (!existsSync(path)) return null;
  // No JSON after a power cut in the middle of it: the node before is given up by its lease.
  const mark = jsonOf(readFileSync(path, "utf8"));
  const isOfHere = Value.Check(Mark, mark) && mark.host === host && mark.databaseId === databaseId;
  return isOfHere ? mark.nodeId : null;
}

export function leaveMark(dataDir: string, mark: Place & { nodeId: number }): void {
  const path = pathOf(dataDir);
  writeFileSync(`${path}.new`, `${JSON.stringify(mark)}\n`);
  renameSync(`${path}.new`, path);
}
