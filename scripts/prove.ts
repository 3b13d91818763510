// Proofs that are too long for every test run (`npm run prove`): the long forms of tests below the
// UI. Or, by name: all tests of pages in their long forms (`-- pages`); all tests below the UI over
// PostgreSQL (`-- postgres`), or those that use only HTTP and sockets with three nodes behind a
// proxy that picks another one each time (`-- nodes`); with `short` after one of the last two, a
// handful of it, as test/cluster/proofs.test.ts runs them.
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { importsOf } from "#support/runner/imports.ts";

const TESTS = globSync("test/**/*.test.ts").toSorted();
const isOfPages = (file: string): boolean => file.startsWith("test/ui/");

/** Tests with a long form. */
const inProof = (): string[] => TESTS.filter((file) => !isOfPages(file)
  && importsOf(".", file).some(({ target }) => target === "test/support/proof.ts"));

/**
 * Left out over PostgreSQL, by reason. Tests about SQLite's file within other test files skip
 * themselves (`aboutTheFile`).
 */
const NOT_OVER_POSTGRES: Record<string, readonly string[]> = {
  "it is about a data folder: its file, its backups, its way to a database server": [
    "test/cli/{backups,cli,move,move-stopped,other-disks}.test.ts", "test/files/places.test.ts",
    "test/storage/{sqlite,migration}.test.ts",
  ],
  "it opens both engines itself": [
    "test/storage/{contract,statements,money,lost-connections}.test.ts",
    "test/storage/database-starts.test.ts", "test/cluster/cluster-*.test.ts",
  ],
  "months of calling by the clock, which PostgreSQL stores in an hour": [
    "test/features/campaigns/{crash,dialler}.test.ts",
  ],
  "beats by a clock that the test moves; PostgreSQL has its own (storage/beats, cluster/*)": [
    "test/cluster/nodes.test.ts",
  ],
  "plain sums over bare stores, whose statements both engines run elsewhere": [
    "test/features/accounts/{ledger,overview}.test.ts", "test/storage/assistants.test.ts",
  ],
  "it reads sources": ["test/{structure,docs}.test.ts"],
};

/** Run with three nodes: tests of what HTTP and sockets give, where nothing belongs to one node. */
const OVER_NODES = [
  "test/client/client.test.ts", "test/edge/openapi-answers.test.ts",
  "test/features/accounts/{authentication,members,sign-in}.test.ts",
  "test/features/assistants/{assistants,groups,lookups,settings,variables,warnings}.test.ts",
  "test/features/calendar/{calendar,edges}.test.ts",
  "test/features/conversations/{chat-evaluations,conversations,desk,inbox,replies}.test.ts",
  "test/features/knowledgebases/*.test.ts", "test/features/leads/leads.test.ts",
  "test/features/tools/{connections,parameters,tools,try}.test.ts",
  "test/gateways/{ai-sdk,mcp,chat-completions}*.test.ts",
];
/** Tests left out of those, by reason. */
const ONE_NODES_OWN: Record<string, string> = {
  AU312: "a body that is refused half-way breaks off, which the door hands on as it is",
  PR22: "a body that is refused half-way breaks off, which the door hands on as it is",
  KB5: "a body that is refused half-way breaks off, which the door hands on as it is",
  KB7: "it kills the process that reads documents for the first node, which another may use",
  KB15: "it counts what waits at the first node; another may read it",
  KB116: "it counts what waits at the first node; another may read it",
  TL116: "it starts again with another secret, which nodes of one database may not have",
  PR84: "a body that is refused half-way breaks off, which the door hands on as it is",
  PR5: "nodes that have just started do not know of each other, and count for themselves",
  MC12: "nodes that have just started do not know of each other, and count for themselves",
  TL86: "nodes that have just started do not know of each other, and count for themselves",
  CV9: "stopped as soon as the model is asked, before others can know of the reply",
  PR86: "rejoined as soon as the model is asked, before others can know of the reply",
  CV8: "messages that wait for a reply wait at their node, which bounds them",
};

/** A few seconds each: money and its notifications, lists; then replies and streams. */
const SHORT = {
  postgres: ["test/features/accounts/balance.test.ts", "test/features/assistants/groups.test.ts"],
  nodes: ["test/features/conversations/replies.test.ts"],
};

/** Long forms take as long as the machine is slow. */
const LONG_MS = 3_600_000;
const FILE_MS = 480_000;

interface Run {
  files: readonly string[];
  /** Longest a file may take. */
  timeoutMs: number;
  env: Record<string, string>;
  concurrency: number;
  skips: readonly string[];
}

const BATCH = 12;

/** Runs in batches, so that a shared machine copes; false: something failed. */
function run({ files, timeoutMs, env, concurrency, skips }: Run): boolean {
  const failed: string[] = [];
  for (let first = 0; first < files.length; first += BATCH) {
    const batch = files.slice(first, first + BATCH);
    const { status } = spawnSync(process.execPath, [
      ...process.execArgv,
      "--test", `--test-concurrency=${concurrency}`, `--test-timeout=${timeoutMs}`,
      ...skips.map((id) => `--test-skip-pattern=/\\[${id}\\]/`), ...batch,
    ], { stdio: "inherit", env: { ...process.env, ...env } });
    if (status !== 0) failed.push(...batch);
  }
  if (failed.length > 0) process.stdout.write(`# failed among: ${failed.join(" ")}\n`);
  return failed.length === 0;
}

/** A test that opens no storage is the same over both; its imports of support/ tell. */
function reachesStore(file: string, seen = new Set<string>()): boolean {
  if (seen.has(file)) return false;
  seen.add(file);
  if (file === "test/support/engines.ts") return true;
  return importsOf(".", file).some(({ target }) =>
    target.startsWith("test/support/") && reachesStore(target, seen));
}

function overPostgres(): string[] {
  const left = globSync(Object.values(NOT_OVER_POSTGRES).flat());
  return TESTS.filter((file) => !isOfPages(file) && !left.includes(file) && reachesStore(file));
}

const isShort = process.argv[3] === "short";
const RUNS: Record<string, () => boolean> = {
  long: () => run({
    files: inProof(), timeoutMs: LONG_MS, env: { PROOF: "long" }, concurrency: 1, skips: [],
  })
    && spawnSync("npm", ["run", "-s", "asterisk"], { stdio: "inherit" }).status === 0,
  pages: () => run({
    files: TESTS.filter(isOfPages), timeoutMs: LONG_MS, env: { PROOF: "long" }, concurrency: 2,
    skips: [],
  }),
  postgres: () => run({
    files: isShort ? SHORT.postgres : overPostgres(), timeoutMs: FILE_MS, env: { ENGINE: "postgres" },
    concurrency: 2, skips: [],
  }),
  nodes: () => run({
    files: isShort ? SHORT.nodes : globSync(OVER_NODES).toSorted(), timeoutMs: FILE_MS,
    env: { ENGINE: "postgres", NODES: "3" }, concurrency: 2, skips: Object.keys(ONE_NODES_OWN),
  }),
};

const named = process.argv[2] ?? "long";
const prove = RUNS[named];
if (!prove) process.stderr.write(`usage: npm run prove -- NAME, one of ${Object.keys(RUNS).join(", ")}\n`);
process.exitCode = prove?.() === true ? 0 : 1;
