// Preloaded into a process: its waits for the lock on the database end at once, and each adds a
// byte to the file that WAITS names.
import { appendFileSync } from "node:fs";
import Database from "better-sqlite3";

const { pragma } = Database.prototype;
Database.prototype.pragma = function hurried(text, options) {
  return pragma.call(this, text.replace(/^busy_timeout = \d+$/, "busy_timeout = 1"), options);
};
Atomics.wait = () => {
  appendFileSync(process.env.WAITS!, ".");
  return "timed-out";
};
