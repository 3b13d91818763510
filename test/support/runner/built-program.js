// Stands in for src/base/core/program.ts when tests run on the built program (prepared.js): threads
// and pages come from dist/, as in the package.
import { fileURLToPath } from "node:url";

const ROOT = new URL("../../../", import.meta.url);

export const RUNS_FROM = "dist";
export const programFile = (path) => fileURLToPath(new URL(path, ROOT));
export const workerFile = (name) => programFile(`dist/${name}.js`);
