// The `parley` command as a person runs it: a child process on a real data folder, also while a
// server works on the same one.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { nextTurn } from "#core/system.ts";
import { backupDatabase } from "#storage/engines/sqlite/backup.ts";
import { databasePath, lockDataDir, openWriter } from "#storage/engines/sqlite/database.ts";
import { shippedMigrations } from "#storage/migrations.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { isOverPostgres } from "#support/engines.ts";
import { CLI, json, parley } from "#support/process.ts";
import { newAssistant, newConversation, startTestServer, testDataDir } from "#support/server.ts";

test("[CL1] account create prints one JSON object with account_id and api_key", async () => {
  const dir = testDataDir();
  const ran = await parley(dir, ["account", "create", "--name", "A", "--balance", "5.00", "--json"]);
  assert.equal(ran.code, 0, ran.err);
  assert.equal(json(ran).account_id, 1);
  assert.match(String(json(ran).api_key), /^1\|[A-Za-z0-9]{48}$/);
  const shown = json(await parley(dir, ["balance", "show", "--account", "1", "--json"]));
  assert.equal(shown.balance, 5);
  assert.equal(statSync(join(dir, "parley.db")).mode & 0o777, 0o600);
  rmSync(dir, { recursive: true });
});

test("[CL2] balance and key changes by the command take effect in the server at once", async () => {
  const server = await startTestServer();
  const account = String(server.accountId);
  const added = await parley(server.dataDir, ["balance", "add", "--account", account, "2.50"]);
  assert.equal(added.code, 0, added.err);
  const me = await server.call("GET", "/user/me");
  assert.equal(me.body.total_balance, 7.5);
  const keyId = server.key.split("|")[0] ?? "";
  const revoked = await parley(server.dataDir, ["key", "revoke", keyId]);
  assert.equal(revoked.code, 0, revoked.err);
  const refused = await server.call("GET", "/user/me");
  assert.equal(refused.status, 401);
  await server.close();
});

test("[CL3] the same reference adds balance once; it never falls below zero", async () => {
  const dir = testDataDir();
  await parley(dir, ["account", "create", "--name", "A"]);
  await parley(dir, ["balance", "add", "5", "--reference", "r1"]);
  const again = json(await parley(dir, ["balance", "add", "5", "--reference", "r1", "--json"]));
  assert.deepEqual(again, { account_id: 1, balance: 5, repeated: true });
  const below = await parley(dir, ["balance", "add", "--amount=-6"]);
  assert.equal(below.code, 1);
  assert.match(below.err, /below zero/);
  rmSync(dir, { recursive: true });
});

test("[CL4] a backup of a running server restores elsewhere with a clean ledger", async () => {
  const server = await startTestServer();
  const assistant = await newAssistant(server);
  const conversation = await newConversation(server, assistant.uuid);
  const send = (message: string) =>
    server.call("POST", `/conversations/${conversation}/messages`, { body: { message } });
  assert.equal((await send("Hello")).status, 200);
  const target = testDataDir();
  const file = join(target, "copy.db");
  const [backup, reply] = await Promise.all([
    parley(server.dataDir, ["backup", file]), send("Are you open?"),
  ]);
  assert.equal(backup.code, 0, backup.err);
  assert.equal(reply.status, 200);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const refused = await parley(server.dataDir, ["backup", file]);
  assert.equal(refused.code, 1);
  const other = testDataDir();
  assert.equal((await parley(other, ["restore", file])).code, 0);
  const verified = json(await parley(other, ["ledger", "verify", "--json"]));
  assert.equal(verified.ok, true);
  await server.close();
  for (const dir of [target, other]) rmSync(dir, { recursive: true });
});

test("[CL112] a backup finishes however often the server commits, and holds the state of its start", async () => {
  const dir = testDataDir();
  const db = openWriter(dir, { migrate: true });
  db.exec("CREATE TABLE ballast (bytes BLOB); INSERT INTO ballast VALUES (zeroblob(4000000))");
  db.exec("CREATE TABLE commits (number INTEGER)");
  const copy = join(dir, "copy.db");
  let isOver = false;
  const backup = backupDatabase(dir, copy).finally(() => (isOver = true));
  const commit = db.prepare("INSERT INTO commits VALUES (1)");
  const commitsMax = 500;
  let commits = 0;
  for (; !isOver && commits < commitsMax; commits += 1) {
    commit.run();
    await nextTurn();
  }
  await backup;
  db.close();
  assert.ok(commits < commitsMax, "it began anew with each commit");
  const copied = new Database(copy, { readonly: true });
  assert.equal(copied.prepare("SELECT count(*) FROM commits").pluck().get(), 0);
  copied.close();
  rmSync(dir, { recursive: true });
});

test("[CL5] restore keeps the database it replaces and refuses a damaged backup", async () => {
  const dir = testDataDir();
  const copy = join(dir, "copy.tar.gz");
  await parley(dir, ["account", "create", "--name", "A"]);
  await parley(dir, ["backup", copy]);
  assert.equal((await parley(dir, ["restore", copy])).code, 1);
  assert.equal((await parley(dir, ["restore", copy, "--force"])).code, 0);
  assert.ok(readdirSync(dir).some((name) => name.startsWith("parley.db.before-restore-")));
  // A database alone, as older versions made backups, changed by somebody.
  const alone = join(dir, "copy.db");
  await backupDatabase(dir, alone);
  const db = new Database(alone);
  db.exec("UPDATE accounts SET balance_micros = 99");
  db.close();
  const refused = await parley(dir, ["restore", alone, "--force"]);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /corrupt/);
  const before = readdirSync(dir).sort();
  truncateSync(copy, Math.floor(statSync(copy).size / 2));
  const cut = await parley(dir, ["restore", copy, "--force"]);
  assert.equal(cut.code, 1);
  assert.match(cut.err, /cannot be read|incomplete/);
  assert.deepEqual(readdirSync(dir).sort(), before);
  rmSync(dir, { recursive: true });
});

test("[CL81] account plan takes effect in a running server; an unknown plan exits with 2", async () => {
  const dir = testDataDir();
  const file = join(dir, "plans.json");
  const caps = { campaigns: 1, parallel_calls: 1 };
  writeFileSync(file, JSON.stringify({
    "self-hosted": { tools: 1, ...caps }, gold: { tools: 2, ...caps },
  }));
  const prices = join(dir, "prices.json");
  writeFileSync(prices, JSON.stringify({ DE: 1.5 }));
  const env = { PARLEY_PLANS_FILE: file, PARLEY_NUMBER_PRICES_FILE: prices };
  const server = await startTestServer({ env });
  const account = String(server.accountId);
  const add = (name: string) => server.call("POST", "/user/tools", {
    body: { name, description: "Looks", endpoint: "https://example.com", method: "GET" },
  });
  assert.equal((await add("one")).status, 201);
  assert.equal((await add("two")).status, 422);
  const plan = (...args: string[]) => parley(server.dataDir, ["account", "plan", ...args], env);
  const given = await plan("gold", "--account", account, "--json");
  assert.deepEqual([given.code, json(given)], [0, { account_id: server.accountId, plan: "gold" }]);
  assert.equal((await add("two")).status, 201);
  assert.equal((await add("three")).status, 422);
  const list = await parley(server.dataDir, ["account", "list"], env);
  assert.match(list.out, /gold/);
  const unknown = await plan("silver", "--account", account);
  assert.equal(unknown.code, 2);
  assert.match(unknown.err, /no plan silver: the plans are self-hosted, gold/);
  const numbers = join(dir, "numbers");
  writeFileSync(numbers, "+12015550123\n+493012345678\n");
  const imported = await parley(server.dataDir, ["number", "import", numbers], env);
  assert.equal(imported.code, 1);
  assert.match(imported.err, /US, which has no price/);
  assert.doesNotMatch(imported.err, /DE/);
  writeFileSync(numbers, "+493012345678\n");
  assert.equal((await parley(server.dataDir, ["number", "import", numbers], env)).code, 0);
  const found = await server.call("GET", "/user/phone-numbers/search?country_code=DE");
  assert.deepEqual(found.body.data.map((row: { price: number }) => row.price), [1.5]);
  await server.close();
  rmSync(dir, { recursive: true });
});

test("[CL6] ledger verify finds a changed entry", async () => {
  const dir = testDataDir();
  await parley(dir, ["account", "create", "--name", "A", "--balance", "5"]);
  const db = new Database(join(dir, "parley.db"));
  assert.throws(() => db.exec("UPDATE ledger SET amount_micros = 1"), /append-only/);
  db.exec("DROP TRIGGER ledger_is_never_changed; UPDATE ledger SET created_at = created_at + 1");
  db.close();
  const ran = await parley(dir, ["ledger", "verify", "--json"]);
  assert.equal(ran.code, 1);
  assert.equal(json(ran).ok, false);
  rmSync(dir, { recursive: true });
});

test("[CL7] unknown commands and options exit with 64, --help and --version with 0", async () => {
  const dir = testDataDir();
  const [command, option, help, version] = await Promise.all([
    parley(dir, ["fly"]),
    parley(dir, ["account", "list", "--fast"]),
    parley(dir, ["--help"]),
    parley(dir, ["--version"]),
  ]);
  assert.deepEqual([command.code, option.code, help.code, version.code], [64, 64, 0, 0]);
  assert.match(version.out, /^\d+\.\d+\.\d+\n$/);
  rmSync(dir, { recursive: true });
});

test("[CL130] a command whose output has no room says so in a sentence, exit 1", {
  skip: !existsSync("/dev/full") && "no device that is always full",
}, () => {
  const { status, stderr } = spawnSync("sh", ["-c", '"$0" "$1" settings > /dev/full', process.execPath, CLI], {
    encoding: "utf8",
  });
  assert.equal(status, 1);
  assert.match(stderr, /^parley: what it prints cannot be written: ENOSPC.*\n$/);
});

test("[CL109] the command list fits a terminal of 80 by 24, and points to each command's options", async () => {
  const dir = testDataDir();
  const [list, family] = await Promise.all([parley(dir, []), parley(dir, ["ledger", "--help"])]);
  const lines = list.out.split("\n");
  assert.ok(lines.length <= 24, list.out);
  assert.deepEqual(lines.filter(({ length }) => length > 80), []);
  assert.match(list.out, /^ {2}ledger +verify: /m);
  assert.match(list.out, /parley <command> --help$/m);
  assert.match(list.out, /parley settings$/m);
  assert.equal(family.out, "parley ledger verify\n  Recompute every balance and hash from the ledger\n");
  rmSync(dir, { recursive: true });
});

test("[CL8] doctor and openapi work; doctor says when a server runs", async () => {
  const server = await startTestServer();
  const doctor = json(await parley(server.dataDir, ["doctor", "--json"]));
  assert.equal(doctor.ok, true);
  const document = json(await parley(server.dataDir, ["openapi", "--json"]));
  assert.equal(document.openapi, "3.1.0");
  assert.ok((document.paths as object)["/conversations" as never]);
  await server.close();
});

test("[CL100] a command migrates an older database, unless an older server runs on it; audits come after", async () => {
  const dir = testDataDir();
  const db = new Database(databasePath(dir));
  for (const { version, sql } of shippedMigrations("sqlite")) if (version <= 25) db.exec(sql);
  db.exec(readFileSync(join(import.meta.dirname, "../data/schema-25.sql"), "utf8"));
  db.pragma("user_version = 25");
  const schema = (): unknown => db.pragma("user_version", { simple: true });
  const sentence = /^parley: the database has schema 25, this program needs \d+: start the server once, or wait/m;
  const verified = await parley(dir, ["ledger", "verify"]);
  assert.deepEqual([verified.code, verified.out], [1, ""]);
  assert.match(verified.err, sentence);
  const doctor = await parley(dir, ["doctor"]);
  assert.match(doctor.out, /^ok +database +sound; the ledger can be checked after the next start has/m);
  const server = lockDataDir(dir);
  const refused = await parley(dir, ["account", "list"]);
  assert.deepEqual([refused.code, refused.out, schema()], [1, "", 25]);
  assert.match(refused.err, /schema 25, .* and a server of an older version is running on it: restart it/);
  server?.release();
  const listed = await parley(dir, ["account", "list"]);
  assert.equal(listed.code, 0, listed.err);
  assert.notEqual(schema(), 25);
  assert.match((await parley(dir, ["ledger", "verify"])).out, /^the ledger is correct/);
  db.close();
  rmSync(dir, { recursive: true });
});

test("[CL99] doctor names what the operator's model catalog refers to and is missing", async () => {
  const dir = testDataDir();
  const file = join(dir, "models.json");
  const model = { type: "llm", provider: "openai-compatible", model: "m", url: "https://m.example" };
  const ask = async (entry: object) => {
    writeFileSync(file, JSON.stringify([{ ...model, id: 1, name: "A", ...entry }]));
    const env = { PARLEY_MODELS_FILE: file };
    return [
      await parley(dir, ["doctor"], env), await parley(dir, ["doctor", "--json"], env),
    ] as const;
  };
  const [wrong, asJson] = await ask({ key_env: "A_KEY", fallback_id: 9 });
  assert.deepEqual([wrong.code, asJson.code], [1, 1]);
  const faults = [
    "PARLEY_MODELS_FILE: the key_env of model 1, A_KEY, is not set",
    "PARLEY_MODELS_FILE: the fallback_id of model 1, 9, is not another model of the file",
  ];
  for (const fault of faults) {
    assert.match(wrong.out, new RegExp(`^WRONG +model catalog +${fault}$`, "m"));
  }
  const findings = json(asJson).findings as { check: string }[];
  assert.deepEqual(findings.filter(({ check }) => check === "model catalog"), [
    { check: "model catalog", ok: true, detail: "1 models" },
    ...faults.map((detail) => ({ check: "model catalog", ok: false, detail })),
  ]);
  const [right] = await ask({ key: "k" });
  assert.equal(right.code, 0, right.out);
  rmSync(dir, { recursive: true });
});

test("[CL94] arguments a command does not accept are refused with those it does, and serve shows its help", async () => {
  const dir = testDataDir();
  const [extra, family, familyHelp, none, serve, serveHelp] = await Promise.all([
    parley(dir, ["account", "list", "everything"]),
    parley(dir, ["account"]),
    parley(dir, ["account", "--help"]),
    parley(dir, ["account", "destroy"]),
    parley(dir, ["serve", "--port", "9000"]),
    parley(dir, ["serve", "--help"]),
  ]);
  assert.deepEqual([extra.code, family.code, none.code, serve.code], [64, 64, 64, 64]);
  assert.equal(extra.err, "parley: unexpected argument everything: parley account list\n");
  for (const text of [family.err, none.err, familyHelp.out]) assert.match(text, /parley account plan PLAN/);
  assert.match(none.err, /there is no command account destroy/);
  assert.match(serve.err, /takes no arguments \(--port 9000\).*environment variables/);
  assert.deepEqual([familyHelp.code, serveHelp.code, serveHelp.out], [0, 0, "parley serve\n"]);
  assert.deepEqual(readdirSync(dir), [], "nothing was made");
  const early = await parley(dir, ["balance", "show"]);
  assert.equal(early.code, 1);
  assert.match(early.err, /there is no account yet: `parley account create/);
  rmSync(dir, { recursive: true });
});

test("[CL140] an unknown option, -5 too, is refused with the options the command accepts", async () => {
  const dir = testDataDir();
  const takes = "parley balance add --account ID AMOUNT [--reference R]";
  for (const given of ["-5", "--sum"]) {
    const { code, err } = await parley(dir, ["balance", "add", given]);
    assert.deepEqual([code, err], [64, `parley: unknown option ${given}: ${takes}\n`]);
  }
  const help = await parley(dir, ["balance", "--help"]);
  assert.match(help.out, /--amount=-5\.00 deducts/);
  rmSync(dir, { recursive: true });
});

test("[CL95] [CL304] a member's link leads to where the server listens, with TLS or without", async () => {
  const dir = testDataDir();
  await parley(dir, ["account", "create", "--name", "A"]);
  const invite = ["user", "invite", "a@example.com", "--role", "viewer"];
  const there = await parley(dir, invite, { PARLEY_HOST: "::", PARLEY_PORT: "9443" });
  assert.match(there.out + there.err, /^http:\/\/\[::1\]:9443\/\S+\nparley: PARLEY_PUBLIC_URL is not set/);
  assert.equal((await parley(dir, invite, { PARLEY_PUBLIC_URL: "https://a.example" })).err, "");
  const key = join(dir, "key.pem");
  writeFileSync(key, "");
  const sealed = await parley(dir, invite, { PARLEY_TLS_KEY_FILE: key, PARLEY_TLS_CERT_FILE: key });
  assert.match(sealed.out, /^https:\/\/127\.0\.0\.1:8080\//);
  rmSync(dir, { recursive: true });
});

test("[CL96] invalid addresses, files and dates are refused in words; expired keys are not listed", async () => {
  const dir = testDataDir();
  await parley(dir, ["account", "create", "--name", "A"]);
  const [account, invited, none, folder, over, noDay, onto, from] = await Promise.all([
    parley(dir, ["account", "create", "--name", "B", "--email", "nobody"]),
    parley(dir, ["user", "invite", "a b@example.com", "--role", "viewer"]),
    parley(dir, ["number", "import", "/nowhere.txt"]),
    parley(dir, ["number", "import", dir]),
    parley(dir, ["key", "create", "--expires-at", "2001-01-01"]),
    parley(dir, ["key", "create", "--expires-at", "2097-02-30"]),
    parley(dir, ["backup", dir, "--force"]),
    parley(dir, ["restore", dir, "--force"]),
  ]);
  assert.deepEqual([noDay.code, noDay.err], [
    64, "parley: --expires-at must be an ISO 8601 date, such as 2027-01-31\n",
  ]);
  assert.equal(onto.err, `parley: ${dir} is a folder: give a file name\n`);
  assert.equal(from.err, `parley: ${dir} is a folder: name the backup in it\n`);
  assert.deepEqual([account.code, account.err], [64, "parley: nobody is not an e-mail address\n"]);
  assert.deepEqual([invited.code, invited.err], [64, "parley: a b@example.com is not an e-mail "
    + "address\n"]);
  assert.equal(none.err, "parley: /nowhere.txt cannot be read: it does not exist\n");
  assert.equal(folder.err, `parley: ${dir} cannot be read: it is a folder\n`);
  assert.deepEqual([over.code, over.err], [
    64, "parley: --expires-at is in the past: the key would never work\n",
  ]);
  const soon = new Date(Date.now() + 3_600_000).toISOString();
  await parley(dir, ["key", "create", "--expires-at", soon]);
  const db = new Database(join(dir, "parley.db"));
  const expiries = () => parley(dir, ["key", "list", "--json"]).then(({ out }) =>
    (JSON.parse(out) as { expires_at: string | null }[])
      .map(({ expires_at: at }) => at?.slice(0, 19)));
  assert.deepEqual(await expiries(), [undefined, soon.slice(0, 19)]);
  db.exec("UPDATE api_keys SET expires_at = 1 WHERE expires_at IS NOT NULL");
  db.close();
  // It is listed as over, as GET /user/api-keys does, until it is revoked.
  assert.deepEqual(await expiries(), [undefined, "1970-01-01T00:00:00"]);
  assert.match((await parley(dir, ["key", "list"])).out, / expired$/m);
  rmSync(dir, { recursive: true });
});

const AS_NOBODY = ["--reuid=65534", "--clear-groups", process.execPath];
const notRoot = spawnSync("setpriv", [...AS_NOBODY, CLI, "--version"]).status === 0
  ? false
  : "needs to be root, and a program that others may read";

test("[CL102] commands name both users when a folder is another user's or not writable", { skip: notRoot || isOverPostgres }, async () => {
  const dataDir = testDataDir();
  assert.equal((await parley(dataDir, ["account", "create", "--name", "A"])).code, 0);
  const file = join(dataDir, "..", `${basename(dataDir)}.tar.gz`);
  assert.equal((await parley(dataDir, ["backup", file])).code, 0);
  chmodSync(file, 0o644);
  const said = (...args: string[]) => {
    const { status, stderr, stdout } = spawnSync("setpriv", [...AS_NOBODY, CLI, ...args], {
      encoding: "utf8", timeout: 30_000,
      env: { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: "0", PARLEY_LOG_LEVEL: "fatal" },
    });
    return { status, err: stderr + (status === 0 ? "" : stdout) };
  };
  const commands = [
    ["backup", `${file}.nobody`], ["ledger", "verify"], ["doctor"], ["key", "list"],
    ["account", "list"], ["restore", file], ["move", "--to", "postgres://u@127.0.0.1:1/x"],
    ["serve"],
  ];
  const some = commands.filter(([name]) => name === "backup" || name === "serve");
  // Closed; read by all; written by all but for the file.
  const cases: [mode: number, closed: string, asked: string[][]][] = [
    [0o700, dataDir, commands], [0o755, dataDir, some], [0o777, databasePath(dataDir), some],
  ];
  for (const [mode, closed, asked] of cases) {
    chmodSync(dataDir, mode);
    for (const command of asked) {
      const { status, err } = said(...command);
      assert.notEqual(status, 0, command.join(" "));
      const sentence = `nobody cannot read and write ${closed}: it belongs to root; run this as root`;
      assert.ok(err.startsWith("parley: ") && err.includes(sentence), `${command[0]}: ${err}`);
      assert.equal(err.split("\n").length, 2, err);
    }
  }
  // A user that both belong to may have been meant.
  for (const name of readdirSync(dataDir)) chmodSync(join(dataDir, name), 0o666);
  assert.deepEqual(said("account", "list"), { status: 0, err: "" });
  rmSync(dataDir, { recursive: true });
  rmSync(file);
});

test("[CL104] doctor says when the model server wants a key, refuses it or does not list the model", async () => {
  const dir = testDataDir();
  const vendor = await startEndpoint();
  vendor.answer(({ url, headers }, response) => {
    const isRight = headers.authorization === "Bearer right";
    response.writeHead(url !== "/v1/models" ? 404 : isRight ? 200 : 401);
    response.end(JSON.stringify({ data: [{ id: "small:latest" }, { id: "models/flash" }] }));
  });
  const ask = async (env: Record<string, string>) => {
    const { out } = await parley(dir, ["doctor"], { PARLEY_MODEL_URL: `${vendor.url}/v1`, ...env });
    return /^(ok|WRONG) +model +http\S+ (.*)$/m.exec(out)?.slice(1);
  };
  assert.deepEqual(await ask({}), ["WRONG", "requires a key (401): set PARLEY_MODEL_KEY"]);
  assert.deepEqual(await ask({ PARLEY_MODEL_KEY: "old" }), ["WRONG", "refuses PARLEY_MODEL_KEY (401)"]);
  const right = { PARLEY_MODEL_KEY: "right" };
  assert.deepEqual(await ask(right), ["ok", "answers (200)"]);
  for (const name of ["small", "flash"]) {
    assert.deepEqual(await ask({ ...right, PARLEY_MODEL_NAME: name }), ["ok", "answers (200)"]);
  }
  assert.deepEqual(
    await ask({ ...right, PARLEY_MODEL_NAME: "big" }),
    ["ok", "answers (200), but does not list big (PARLEY_MODEL_NAME)"]);
  await vendor.close();
  assert.match(String(await ask({})), /^WRONG,does not answer: connect ECONNREFUSED/);
  rmSync(dir, { recursive: true });
});
