// A test with a timeout: waiting for a message that never comes fails it, not hangs its file.
import { test as register, type TestContext } from "node:test";

const TEST_MS_MAX = 180_000;

export const test = (name: string, run: (t: TestContext) => unknown): void =>
  void register(name, { timeout: TEST_MS_MAX }, async (t) => void await run(t));
