// Makes `api.d.ts`, the types of every route, from the server's own OpenAPI document. Part of
// `npm run check`; the file is not committed.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";

const CLI = join(import.meta.dirname, "../cli.ts");
/** If assembling the app fails, a leftover thread may keep the process from ending. */
const DOCUMENT_MS_MAX = 120_000;
const DOCUMENT_BYTES_MAX = 64 * 1024 * 1024;

const document = execFileSync(process.execPath, [CLI, "openapi"], {
  encoding: "utf8", maxBuffer: DOCUMENT_BYTES_MAX, timeout: DOCUMENT_MS_MAX,
  killSignal: "SIGKILL",
});
const types = astToString(await openapiTS(document));
writeFileSync(join(import.meta.dirname, "api.d.ts"), types);
