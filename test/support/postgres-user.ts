// PostgreSQL's programs as a user that they take: they refuse to run as root.
import { execFileSync } from "node:child_process";

export const asPostgres = (command: string, args: string[]): [string, string[]] =>
  (process.getuid?.() === 0
    ? ["setpriv", [
        "--reuid=postgres", "--regid=postgres", "--clear-groups", "--", command, ...args,
      ]]
    : [command, args]);

/** A folder of that user's. */
export function giveToPostgres(folder: string): void {
  if (process.getuid?.() === 0) execFileSync("chown", ["postgres", folder]);
}
