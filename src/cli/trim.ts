// The trim command of the `parley` program, for the folder its package is installed in. A clone is
// trimmed when it starts (scripts/start.js).
import { basename, dirname } from "node:path";
import { programFile } from "#core/program.ts";
import { trimPackages } from "./trimming.js";
import type { Command } from "./command.ts";

export const trimCommand: Command = {
  name: "trim",
  takes: "",
  summary: "Delete package files for other platforms and for compilers",
  options: {},
  run: () => {
    const beside = dirname(programFile("."));
    const modules = basename(beside) === "node_modules" ? beside : programFile("node_modules");
    const deleted = trimPackages(modules);
    return Promise.resolve({
      value: { deleted },
      text: deleted.length === 0 ? "nothing to delete" : `deleted ${deleted.length} files and folders`,
    });
  },
};
