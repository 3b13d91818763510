// Runs test files one after another in one process, so that the server, what tests share and a
// browser are not loaded again for each: what is loaded and compiled stays warm. For tests there,
// this module replaces `node:test` (prepared.js): what a file registers becomes a suite of its own,
// whose `after` runs when that suite ends, not when all end.
import { relative, join } from "node:path";
import { pathToFileURL } from "node:url";
import * as native from "node:test";

const ROOT = join(import.meta.dirname, "../../..");
/** The time limit of a file. */
const FILE_MS = 480_000;
/** How long what a failed test left open, such as a server, may keep the process. */
const LEFT_OPEN_MS = 5000;

type Call = () => unknown;

/** What the file being loaded registers; null: tests run, and register with `node:test`. */
let calls: Call[] | null = null;

/** Called once all files are over; null: the process runs one, as `node --test` does. */
let ends: Call[] | null = null;

export const runsManyFiles = (): boolean => ends !== null;

/** Runs when all files of the process are over. */
export function afterAll(end: Call): void {
  if (ends) ends.push(end);
  else native.after(async () => void await end());
}

/** Tests of a file run once all of it is loaded. */
function later<Args extends unknown[]>(call: (...args: Args) => unknown) {
  return (...args: Args): void => {
    if (calls) calls.push(() => void call(...args));
    else call(...args);
  };
}

export const { mock } = native;
export const test = later(native.test as (...args: unknown[]) => unknown);
export const suite = later(native.suite as (...args: unknown[]) => unknown);
export const before = later(native.before);
export const after = later(native.after);
export const beforeEach = later(native.beforeEach);
export const afterEach = later(native.afterEach);

async function loaded(path: string): Promise<Call[]> {
  const ofFile: Call[] = calls = [];
  try {
    await import(pathToFileURL(path).href);
  } catch (error) {
    ofFile.push(() => void native.test("loads", () => {
      throw error;
    }));
  } finally {
    calls = null;
  }
  return ofFile;
}

/** `paths` are absolute. The process ends when nothing is open any more. */
export async function runFiles(paths: string[]): Promise<void> {
  ends = [];
  for (const path of paths) {
    const ofFile = await loaded(path);
    await native.suite(relative(ROOT, path), { timeout: FILE_MS }, () => {
      for (const call of ofFile) call();
    });
  }
  for (const end of ends) await end();
  setTimeout(() => process.exit(), LEFT_OPEN_MS).unref();
}
