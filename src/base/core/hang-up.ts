// What the end of a terminal means to the server and to the commands.
import { isatty } from "node:tty";

/**
 * Without a terminal SIGHUP is nothing: Node undoes what `nohup` has set, and programs that turn
 * logs send it. At one it is `atTerminal`, or the end.
 */
export function heedHangUp(atTerminal?: () => void): void {
  if (!isatty(0) && !isatty(1)) process.on("SIGHUP", () => undefined);
  else if (atTerminal) process.on("SIGHUP", atTerminal);
}
