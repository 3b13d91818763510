// Runs PostgreSQL's programs as a user that they accept: they refuse to run as root.
import { execFileSync } from "node:child_process";

export const asPostgres = (command: string, args: string[]): [string, string[]] =>
  (process.getuid?.() === 0
    ? ["setpriv", [
        "--reuid=postgres", "--regid=postgres", "--clear-groups", "--", command, ...args,
      ]]
    : [command, args]);

/** Makes that user the owner of a folder. */
export function giveToPostgres(folder: string): void {
  if (process.getuid?.() === 0) execFileSync("chown", ["postgres", folder]);
}
