// The commands by which people call `parley` and start the server in the running server's folder.
import { existsSync } from "node:fs";
import { programFile } from "./program.ts";

/** The package brings no scripts along. */
const isClone = existsSync(programFile("scripts/parley.js"));

export const COMMAND = isClone ? "npm run -s parley --" : "npx parley";
export const START = isClone ? "npm start" : "npx parley serve";
