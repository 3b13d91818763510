// Settings: read from the environment, all mistakes at once, secrets from files.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadModels } from "#app/models.ts";
import { describeSettings, readConfig } from "#config/config.ts";
import { MAIN } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";

test("[CF1] an empty environment gives the documented defaults", () => {
  const outcome = readConfig({});
  assert.equal(outcome.kind, "ok");
  if (outcome.kind !== "ok") return;
  assert.equal(outcome.config.PARLEY_HOST, "127.0.0.1");
  assert.equal(outcome.config.PARLEY_PORT, 8080);
  assert.equal(outcome.config.PARLEY_DATA_DIR, "data/local");
  assert.equal(outcome.config.PARLEY_RATE_LIMITS, true);
  assert.deepEqual(outcome.warnings, []);
});

test("[CF2] all mistakes are reported at once, and the program exits with 78", () => {
  const environment = {
    PARLEY_PORT: "eighty", PARLEY_LOG_LEVEL: "loud", PARLEY_MODEL_URL: "here",
  };
  const outcome = readConfig(environment);
  assert.equal(outcome.kind, "invalid");
  if (outcome.kind === "invalid") assert.equal(outcome.problems.length, 3);
  const ran = spawnSync(process.execPath, [MAIN], { env: environment, encoding: "utf8" });
  assert.equal(ran.status, 78);
  for (const name of Object.keys(environment)) assert.match(ran.stderr, new RegExp(name));
});

test("[CF121] a wrong value is one mistake: the settings that depend on it are not reported too", () => {
  const belonging: Record<string, string>[] = [
    { PARLEY_SMTP_URL: "x", PARLEY_SMTP_FROM: "me@example.com" },
    { PARLEY_OIDC_ISSUER: "https://login.example.com", PARLEY_OIDC_CLIENT_ID: "id",
      PARLEY_OIDC_CLIENT_SECRET: "secret", PARLEY_OIDC_DEFAULT_ROLE: "viewer", PARLEY_OIDC_DOMAINS: "*" },
    { PARLEY_NATS_URL: "nats://127.0.0.1", PARLEY_DATABASE_URL: "x", PARLEY_FILES_URL: "x" },
  ];
  const found = belonging.map((environment) => {
    const outcome = readConfig(environment);
    return outcome.kind === "invalid" ? outcome.problems.map((text) => text.split(" ", 1)[0]) : [];
  });
  assert.deepEqual(found, [
    ["PARLEY_SMTP_URL"], ["PARLEY_OIDC_DOMAINS"], ["PARLEY_DATABASE_URL", "PARLEY_FILES_URL"],
  ]);
});

test("[CF122] NATS addresses with different logins are refused: all are given the first's", () => {
  const problemOf = (url: string): string | null => {
    const environment = { PARLEY_NATS_URL: url, PARLEY_DATABASE_URL: "postgres://db/parley" };
    const outcome = readConfig({ ...environment, PARLEY_FILES_URL: `file://${tmpdir()}` });
    return outcome.kind === "invalid" ? outcome.problems.join() : null;
  };
  for (const url of ["nats://a", "nats://me:pw@a, nats://b", "nats://me:pw@a,tls://me:pw@b:4222"]) {
    assert.equal(problemOf(url), null, url);
  }
  for (const url of ["nats://me:pw@a,nats://me:other@b", "nats://a,nats://token@b"]) {
    assert.match(problemOf(url) ?? "", /^PARLEY_NATS_URL has different users/, url);
  }
  assert.match(problemOf("nats://me:50%off@a") ?? "", /^PARLEY_NATS_URL has a %/);
  assert.match(problemOf(",") ?? "", /^PARLEY_NATS_URL must be one or more nats:/);
});

test("[ON1] a public URL is understood as browsers write it; one with a path gets a warning, one with more is refused", () => {
  const read = (url: string) => readConfig({ PARLEY_PUBLIC_URL: url });
  for (const url of ["https://x.example/?a=b", "https://x.example/#a"]) {
    const outcome = read(url);
    assert.match(
      outcome.kind === "invalid" ? outcome.problems.join() : "",
      /^PARLEY_PUBLIC_URL must be a URL without \? and #/, url);
  }
  const warned = read("https://Talk.Example.org/parley/");
  assert(warned.kind === "ok");
  assert.equal(warned.config.PARLEY_PUBLIC_URL, "https://talk.example.org/parley");
  assert.match(warned.warnings.join(), /^PARLEY_PUBLIC_URL has the path \/parley, below which only/);
  const plain = read("https://Talk.Example.org:443/");
  assert(plain.kind === "ok");
  assert.deepEqual(
    [plain.config.PARLEY_PUBLIC_URL, plain.warnings], ["https://talk.example.org", []]);
});

test("[CF3] unknown PARLEY_ names get a warning with the name that was meant", () => {
  const meant = {
    PARLEY_MODEL_LINK: "PARLEY_MODEL_", PARLEY_PROT: "PARLEY_PORT", PARLEY_DATADIR: "PARLEY_DATA_DIR",
    PARLEY_RATELIMIT: "PARLEY_RATE_LIMITS",
  };
  for (const [name, hint] of Object.entries(meant)) {
    const outcome = readConfig({ [name]: "x" });
    assert.equal(outcome.kind, "ok");
    assert.equal(outcome.warnings.length, 1);
    assert.ok(outcome.warnings[0]?.includes(`${name}; did you mean ${hint}`), outcome.warnings[0]);
  }
  assert.deepEqual(readConfig({ PARLEY_ZZZ: "x" }).warnings, ["unknown setting PARLEY_ZZZ"]);
});

test("[AU355] a mail server's password with a bare % is refused at the start", () => {
  const read = (password: string) => readConfig({
    PARLEY_SMTP_URL: `smtp://me:${password}@mail.example.com`, PARLEY_SMTP_FROM: "me@example.com",
  });
  assert.equal(read("50%25off").kind, "ok");
  for (const bare of ["50%off", "50%ff"]) {
    const outcome = read(bare);
    assert.ok(outcome.kind === "invalid", bare);
    assert.equal(outcome.problems[0],
      "PARLEY_SMTP_URL has a % in its user or password; write it as %25");
  }
});

test("[CF4] a secret may come from a file or from the setting, not from both", () => {
  const dir = testDataDir();
  const file = join(dir, "key");
  writeFileSync(file, "from-a-file\n");
  const outcome = readConfig({ PARLEY_MODEL_KEY_FILE: file });
  assert.equal(outcome.kind === "ok" && outcome.config.PARLEY_MODEL_KEY, "from-a-file");
  const both = readConfig({ PARLEY_MODEL_KEY_FILE: file, PARLEY_MODEL_KEY: "x" });
  assert.equal(both.kind, "invalid");
  rmSync(dir, { recursive: true });
});

test("[CF203] an empty file is no secret: it is named, and nothing is signed or checked with it", () => {
  const dir = testDataDir();
  const file = join(dir, "secret");
  for (const content of ["", " \n"]) {
    writeFileSync(file, content);
    const outcome = readConfig({
      PARLEY_STRIPE_KEY: "sk_live_1", PARLEY_STRIPE_WEBHOOK_SECRET_FILE: file,
    });
    assert.deepEqual(outcome.kind === "invalid" && outcome.problems,
      [`PARLEY_STRIPE_WEBHOOK_SECRET_FILE is empty: ${file}`]);
  }
  rmSync(dir, { recursive: true });
});

test("[CF56] plans and number prices come from the operator's files; an invalid one is named, exit 78", () => {
  const dir = testDataDir();
  const write = (name: string, value: unknown): string => {
    const file = join(dir, name);
    writeFileSync(file, typeof value === "string" ? value : JSON.stringify(value));
    return file;
  };
  const own = { tools: 1, campaigns: 2, parallel_calls: 3 };
  const right = readConfig({
    PARLEY_PLANS_FILE: write("plans.json", { "self-hosted": own, gold: { ...own, tools: 9 } }),
    PARLEY_NUMBER_PRICES_FILE: write("prices.json", { DE: 1.5 }),
  });
  assert.ok(right.kind === "ok");
  const { PARLEY_PLANS_FILE: plans, PARLEY_NUMBER_PRICES_FILE: prices } = right.config;
  assert.deepEqual(plans?.names(), ["self-hosted", "gold"]);
  assert.deepEqual([plans.of("gold").tools, plans.of("toString")], [9, own]);
  assert.deepEqual([prices?.of("DE"), prices?.of("US")], [1_500_000, null]);
  const wrong: [setting: string, content: unknown, place: RegExp][] = [
    ["PARLEY_PLANS_FILE", { "self-hosted": { ...own, seats: 4 } }, /at \/self-hosted\/seats: /],
    ["PARLEY_PLANS_FILE", { "self-hosted": { ...own, tools: -1 } }, /at \/self-hosted\/tools: /],
    ["PARLEY_PLANS_FILE", { gold: own }, /no plan self-hosted/],
    ["PARLEY_PLANS_FILE", "{", /cannot be read: .*JSON/],
    ["PARLEY_NUMBER_PRICES_FILE", { DE: "1.5" }, /at \/DE: /],
    ["PARLEY_NUMBER_PRICES_FILE", { Germany: 1.5 }, /at \/Germany: /],
    ["PARLEY_NUMBER_PRICES_FILE", { ZZ: 1.5 }, /at \/ZZ: no such country/],
    ["PARLEY_NUMBER_PRICES_FILE", { DE: 0.000_000_1 }, /at \/DE: finer/],
    ["PARLEY_NUMBER_PRICES_FILE", [], /at \/: /],
  ];
  for (const [setting, content, place] of wrong) {
    const file = write("wrong.json", content);
    const outcome = readConfig({ [setting]: file });
    assert.ok(outcome.kind === "invalid", JSON.stringify(content));
    assert.equal(outcome.problems.length, 1);
    assert.ok(outcome.problems[0]?.startsWith(`${setting} names a file that cannot be used: ${file}`));
    assert.match(outcome.problems.join(), place);
  }
  const environment = { PARLEY_PLANS_FILE: join(dir, "none.json"), PARLEY_DATA_DIR: dir };
  const ran = spawnSync(process.execPath, [MAIN], { env: environment, encoding: "utf8" });
  assert.equal(ran.status, 78);
  assert.match(ran.stderr, /PARLEY_PLANS_FILE .*none\.json/);
  rmSync(dir, { recursive: true });
});

test("[CF76] carrier rates: longest prefix, then the most specific row; an invalid file is named, exit 78", () => {
  const dir = testDataDir();
  const file = join(dir, "rates.json");
  const read = (rows: unknown) => {
    writeFileSync(file, JSON.stringify(rows));
    return readConfig({ PARLEY_CARRIER_RATES_FILE: file });
  };
  const right = read([
    { per_minute: 0.05 },
    { prefix: "+49", per_minute: 0.02 },
    { direction: "outbound", prefix: "+49", per_minute: 0.03 },
    { carrier: "twilio", prefix: "+49", per_minute: 0.0085 },
    { carrier: "twilio", direction: "outbound", prefix: "+4915", per_minute: 0.012345 },
  ]);
  assert.ok(right.kind === "ok");
  const rates = right.config.PARLEY_CARRIER_RATES_FILE;
  const table = [
    ["twilio", "outbound", "+4915112345678", 12_345], ["twilio", "outbound", "+4930123456", 8500],
    ["twilio", "inbound", "+4915112345678", 8500], ["sip", "outbound", "+4930123456", 30_000],
    ["sip", "inbound", "+4930123456", 20_000], ["sip", "inbound", "+15550100", 50_000],
    ["sip", "inbound", null, 50_000],
  ] as const;
  for (const [carrier, direction, called, micros] of table) {
    assert.equal(rates?.of({ carrier, direction, called }), micros, `${carrier} ${direction} ${called}`);
  }
  const some = read([{ carrier: "telnyx", per_minute: 1 }]);
  assert.ok(some.kind === "ok");
  assert.equal(
    some.config.PARLEY_CARRIER_RATES_FILE?.of({ carrier: "sip", direction: "inbound", called: "+1" }), 0);
  for (const [rows, place] of [
    [{}, /at \/: /], [[{ prefix: "+49" }], /at \/0\/per_minute: /],
    [[{ per_minute: -1 }], /at \/0\/per_minute: /], [[{ per_minute: 0.000_000_1 }], /finer/],
    [[{ per_minute: 1, prefix: "0049" }], /at \/0\/prefix: /],
    [[{ per_minute: 1, carrier: "twillio" }], /at \/0\/carrier: must be one of sip, twilio, /],
    [[{ per_minute: 1, direction: "in" }], /at \/0\/direction: /],
    [[{ per_minute: 1, currency: "EUR" }], /at \/0\/currency: /],
  ] as const) {
    const outcome = read(rows);
    assert.ok(outcome.kind === "invalid", JSON.stringify(rows));
    assert.ok(outcome.problems[0]?.startsWith(
      `PARLEY_CARRIER_RATES_FILE names a file that cannot be used: ${file}`));
    assert.match(outcome.problems.join(), place);
  }
  const environment = { PARLEY_CARRIER_RATES_FILE: file, PARLEY_DATA_DIR: dir };
  const ran = spawnSync(process.execPath, [MAIN], { env: environment, encoding: "utf8" });
  assert.equal(ran.status, 78);
  assert.match(ran.stderr, /PARLEY_CARRIER_RATES_FILE .*rates\.json is wrong at \/0\/currency/);
  rmSync(dir, { recursive: true });
});

test("[CF80] invalid domains and languages are refused", () => {
  const outcome = readConfig({
    PARLEY_OIDC_DOMAINS: "example.com,https://example.org", PARLEY_SHERPA_LANGUAGES: "en,xx",
  });
  assert.ok(outcome.kind === "invalid");
  assert.deepEqual(outcome.problems.toSorted(), [
    "PARLEY_OIDC_DOMAINS has an entry that is no domain such as example.com: https://example.org",
    "PARLEY_SHERPA_LANGUAGES has an entry that is no language of ISO 639-1: xx",
  ]);
  for (const wrong of ["english", "en-US", "e"]) {
    assert.equal(readConfig({ PARLEY_SHERPA_LANGUAGES: wrong }).kind, "invalid", wrong);
  }
  const right = readConfig({ PARLEY_OIDC_DOMAINS: "@Example.com", PARLEY_SHERPA_LANGUAGES: "EN,no,tl" });
  assert.ok(right.kind === "ok");
  assert.deepEqual(right.config.PARLEY_OIDC_DOMAINS, ["example.com"]);
  assert.deepEqual(right.config.PARLEY_SHERPA_LANGUAGES, ["en", "no", "tl"]);
});

test("[CF82] values are trimmed, except the secret; an invalid folder or name is refused", () => {
  const secret = " sixteen letters and a space ";
  const outcome = readConfig({
    PARLEY_MODEL_URL: " http://127.0.0.1:11434/v1/ ", PARLEY_MODEL_KEY: "key\r", PARLEY_PORT: "81\r",
    PARLEY_HOST: " 127.0.0.1", PARLEY_DATA_DIR: " ", PARLEY_SECRET: secret,
    PARLEY_SIP_PUBLIC_HOST: "sip.example.com\r",
  });
  assert.ok(outcome.kind === "ok", JSON.stringify(outcome));
  const { config } = outcome;
  assert.equal(config.PARLEY_MODEL_URL, "http://127.0.0.1:11434/v1");
  assert.deepEqual(
    [config.PARLEY_MODEL_KEY, config.PARLEY_PORT, config.PARLEY_HOST, config.PARLEY_DATA_DIR],
    ["key", 81, "127.0.0.1", "data/local"]);
  assert.equal(config.PARLEY_SECRET, secret);
  assert.equal(config.PARLEY_SIP_PUBLIC_HOST, "sip.example.com");
  for (const right of ["203.0.113.5", "2001:db8::5", "pbx"]) {
    assert.equal(readConfig({ PARLEY_SIP_PUBLIC_HOST: right }).kind, "ok", right);
  }
  for (const [name, wrong, sentence] of [
    ["PARLEY_FILES_URL", "file:///mnt/100%", "must be file:///folder, or s3+https://endpoint/bucket"],
    ["PARLEY_FILES_URL", "file:///mnt%2Fshared", "must be file:///folder, or s3+https://endpoint/bucket"],
    ["PARLEY_SIP_PUBLIC_HOST", "http://sip.example.com/", "must be an address or a name such as sip.example.com"],
    ["PARLEY_SIP_PUBLIC_HOST", "203.0.113", "must be an address or a name such as sip.example.com"],
    ["PARLEY_HOST", "[::1]", "must be an address or a name such as sip.example.com"],
    ["PARLEY_HOST", "0.0.0.0:8080", "must be an address or a name such as sip.example.com"],
  ] as const) {
    const { problems } = readConfig({ [name]: wrong }) as { problems?: string[] };
    assert.deepEqual(problems, [`${name} ${sentence}`]);
  }
});

test("[CF323] twenty ports for the audio over SIP are enough, as the refusal of fewer says", () => {
  const right = readConfig({ PARLEY_RTP_PORTS: "10000-10019" });
  assert.deepEqual(
    right.kind === "ok" && right.config.PARLEY_RTP_PORTS, { min: 10_000, max: 10_019 });
  const { problems } = readConfig({ PARLEY_RTP_PORTS: "10000-10018" }) as { problems?: string[] };
  assert.deepEqual(
    problems, ["PARLEY_RTP_PORTS must be a range of at least 20 ports from 1024 to 65535, such as 10000-10999"]);
});

test("[CF83] an unreadable settings file is named with the reason in words", () => {
  const dir = testDataDir();
  const none = join(dir, "none");
  for (const [file, why] of [[none, "it does not exist"], [dir, "it is a folder"]] as const) {
    for (const name of [
      "PARLEY_PLANS_FILE", "PARLEY_NUMBER_PRICES_FILE", "PARLEY_CARRIER_RATES_FILE",
    ]) {
      const { problems } = readConfig({ [name]: file }) as { problems?: string[] };
      assert.deepEqual(
        problems, [`${name} names a file that cannot be used: ${file} cannot be read: ${why}`]);
    }
    const { problems } = readConfig({ PARLEY_MODEL_KEY_FILE: file }) as { problems?: string[] };
    assert.deepEqual(problems, [`PARLEY_MODEL_KEY_FILE cannot be read: ${file}: ${why}`]);
  }
  const outcome = readConfig({ PARLEY_MODELS_FILE: dir });
  assert.ok(outcome.kind === "ok");
  assert.deepEqual(loadModels(outcome.config), {
    kind: "invalid", problems: [`the model catalog ${dir} cannot be read: it is a folder`],
  });
  rmSync(dir, { recursive: true });
});

test("[CF81] an unset key_env and an unknown fallback_id in the operator's file get a warning", () => {
  const dir = testDataDir();
  const file = join(dir, "models.json");
  const model = { type: "llm", provider: "openai-compatible", model: "m", url: "https://m.example" };
  writeFileSync(file, JSON.stringify([
    { ...model, id: 1, name: "A", key_env: "A_KEY", fallback_id: 9 },
    { ...model, id: 2, name: "B", key_env: "B_KEY", fallback_id: 1 },
    { ...model, id: 3, name: "C", key: "k", key_env: "A_KEY", fallback_id: 3 },
  ]));
  const warningsOf = (environment: Record<string, string>): string[] => {
    const outcome = readConfig(environment);
    assert.ok(outcome.kind === "ok");
    const models = loadModels(outcome.config, (name) => (name === "B_KEY" ? "secret" : undefined));
    assert.ok(models.kind === "ok");
    return models.warnings;
  };
  assert.deepEqual(warningsOf({ PARLEY_MODELS_FILE: file }), [
    "PARLEY_MODELS_FILE: the key_env of model 1, A_KEY, is not set",
    "PARLEY_MODELS_FILE: the fallback_id of model 1, 9, is not another model of the file",
    "PARLEY_MODELS_FILE: the fallback_id of model 3, 3, is not another model of the file",
  ]);
  assert.deepEqual(warningsOf({}), []);
  // A server says so as well; this one ends, for its folder cannot be what it is to be.
  writeFileSync(join(dir, "scratch"), "");
  const ran = spawnSync(process.execPath, [MAIN], {
    env: { PARLEY_MODELS_FILE: file, PARLEY_DATA_DIR: dir }, encoding: "utf8",
  });
  assert.match(ran.stderr, /^parley: PARLEY_MODELS_FILE: the key_env of model 1, A_KEY, is not set$/m);
  rmSync(dir, { recursive: true });
});

test("[CF444] the table of settings says every bound that a refused value is told", () => {
  const bounded = describeSettings().flatMap(({ name, description }) => {
    const read = readConfig({ [name]: "-" });
    const [told = ""] = read.kind === "invalid" ? read.problems : [];
    const [bound] = /from \d+ to \d+|at (?:least|most) \d+ [a-z]+/.exec(told) ?? [];
    return bound === undefined ? [] : [{ name, bound, isSaid: description.includes(bound) }];
  });
  assert.deepEqual(bounded.filter(({ isSaid }) => !isSaid), []);
  for (const name of [
    "PARLEY_PORT", "PARLEY_METRICS_TOKEN", "PARLEY_RTP_PORTS", "PARLEY_WEBHOOK_RETRY_SECONDS",
  ]) assert.ok(bounded.some((one) => one.name === name), name);
});

test("[CF5] every setting has a description", () => {
  for (const { name, description } of describeSettings()) assert.ok(description.length > 10, name);
});
