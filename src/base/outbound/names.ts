// Looks up the names of outside addresses. The system's own look-up holds one of a process's four
// threads until it is answered: names whose servers are silent would keep it from finding all
// others. So the DNS is asked without a thread, and the system only about what no DNS knows.
import type { LookupAddress, LookupOptions } from "node:dns";
import { lookup, Resolver } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { sharedMs } from "#core/system.ts";

type Family = LookupOptions["family"];
type Resolve = (hostname: string, family?: Family) => Promise<LookupAddress[]>;

const ANSWER_MS = 1000;
const TRIES = 2;
/** Nobody waits longer for the system's answer. */
const LINE_MS = 3000;
const HOSTS_FILE = "/etc/hosts";

const unanswered = (hostname: string): Error =>
  Object.assign(new Error(`no answer about ${hostname}`), { code: "EAI_AGAIN" });

/** The machine's own list may name what the DNS names differently. */
function isInHostsFile(hostname: string): boolean {
  try {
    return readFileSync(HOSTS_FILE, "utf8").toLowerCase().includes(hostname.toLowerCase());
  } catch {
    // On systems that keep it elsewhere, they are asked themselves.
    return true;
  }
}

/** False: nobody outside can have made up the name, so the system is asked at once. */
const isOutside = (hostname: string): boolean =>
  hostname.includes(".") && isIP(hostname) === 0 && !isInHostsFile(hostname);

/** None: the DNS knows of no address. Throws if it did not answer in time. */
async function askDns(hostname: string, family: Family): Promise<LookupAddress[]> {
  // It reads which servers to ask when it is created, and they may have changed.
  const resolver = new Resolver({ timeout: ANSWER_MS, tries: TRIES });
  const answers = await Promise.allSettled([4, 6]
    .filter((one) => family === 0 || family === undefined || family === one)
    .map(async (one) => {
      const found = await (one === 4 ? resolver.resolve4(hostname) : resolver.resolve6(hostname));
      return found.map((address) => ({ address, family: one }));
    }));
  const found = answers.flatMap((one) => one.status === "fulfilled" ? one.value : []);
  const isLate = answers.some((one) => one.status === "rejected"
    && (one.reason as NodeJS.ErrnoException).code === "ETIMEOUT");
  if (found.length === 0 && isLate) throw unanswered(hostname);
  return found;
}

/** Asks the system about one name after the other, so that only one thread ever waits. */
function createLine(): Resolve {
  let last: Promise<unknown> = Promise.resolve();
  return (hostname, family = 0) => {
    const askedMs = sharedMs();
    const answer = last.then(() => {
      if (sharedMs() - askedMs > LINE_MS) throw unanswered(hostname);
      return lookup(hostname, { family, all: true });
    });
    last = answer.catch(() => undefined);
    return answer;
  };
}

/** Everybody who asks for a name meanwhile gets the one answer. */
export function createResolver(): Resolve {
  const asked = new Map<string, Promise<LookupAddress[]>>();
  const askInLine = createLine();
  const ask: Resolve = async (hostname, family) => {
    if (!isOutside(hostname)) return lookup(hostname, { family: family ?? 0, all: true });
    const found = await askDns(hostname, family);
    return found.length > 0 ? found : askInLine(hostname, family);
  };
  return (hostname, family = 0) => {
    const question = `${family} ${hostname}`;
    const answer = asked.get(question)
      ?? ask(hostname, family).finally(() => asked.delete(question));
    asked.set(question, answer);
    return answer;
  };
}
