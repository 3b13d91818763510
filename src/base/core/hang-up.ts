// What the end of a terminal means to the server and to the commands.
import { isatty } from "node:tty";

/**
 * Without a terminal SIGHUP is ignored: Node undoes what `nohup` has set, and programs that rotate
 * logs send it. At a terminal it calls `atTerminal`, or else ends the process.
 */
export function heedHangUp(atTerminal?: () => void): void {
  if (!isatty(0) && !isatty(1)) process.on("SIGHUP", () => undefined);
  else if (atTerminal) process.on("SIGHUP", atTerminal);
}
