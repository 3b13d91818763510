// The program's version, as package.json says it.
import { readFileSync } from "node:fs";
import { programFile } from "./program.ts";

export const VERSION = (JSON.parse(
  readFileSync(programFile("package.json"), "utf8"),
) as { version: string }).version;
