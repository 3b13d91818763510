// Where the program's own files lie: its threads, what ships in data/, migrations, pages. In a
// checkout they lie where git has them; once built, everything that runs is in dist/
// (scripts/build.ts), and this file is part of a bundle there.
import { fileURLToPath } from "node:url";

const IS_BUILT = import.meta.url.endsWith(".js");
const ROOT = new URL(IS_BUILT ? "../" : "../../../", import.meta.url);

/** Which of the two runs, as the log says it. */
export const RUNS_FROM = IS_BUILT ? "dist" : "sources";

/** The absolute path of a file below the project's folder; the package contains it as well. */
export const programFile = (path: string): string => fileURLToPath(new URL(path, ROOT));

/** The absolute path of the file that a thread or process starts with; `name` as in workers/. */
export const workerFile = (name: string): string =>
  programFile(IS_BUILT ? `dist/${name}.js` : `workers/${name}.ts`);
