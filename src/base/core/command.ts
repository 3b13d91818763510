// How people call `parley` in the folder of the server that runs.
import { existsSync } from "node:fs";
import { programFile } from "./program.ts";

/** The package brings no scripts along. */
export const COMMAND =
  existsSync(programFile("scripts/parley.js")) ? "npm run -s parley --" : "npx parley";
