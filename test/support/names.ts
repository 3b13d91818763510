// Names of other machines as a test wants them to be found.
import type { LookupAddress } from "node:dns";
import dns from "node:dns/promises";
import { syncBuiltinESMExports } from "node:module";
import type { TestContext } from "node:test";

const unknown = (): Promise<string[]> =>
  Promise.reject(Object.assign(new Error("unknown"), { code: "ENOTFOUND" }));

/**
 * Until the test ends, names are looked up by `system`, which is asked about those that `known`
 * (the DNS, of which IPv4 alone answers) does not know.
 */
export function lookUpBy(
  context: TestContext,
  system: (name: string) => Promise<LookupAddress[]>,
  known: (name: string) => Promise<string[]> = unknown,
): void {
  context.mock.method(dns, "lookup", system);
  context.mock.method(dns.Resolver.prototype, "resolve4", known);
  context.mock.method(dns.Resolver.prototype, "resolve6", unknown);
  syncBuiltinESMExports();
  context.after(() => {
    context.mock.restoreAll();
    syncBuiltinESMExports();
  });
}
