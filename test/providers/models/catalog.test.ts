// Which model answers for which id, and the shipped list.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test, type TestContext } from "node:test";
import { Value } from "@sinclair/typebox/value";
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import {
  createModelCatalog,
  ModelEntry,
  type ModelCatalog,
  type ModelCatalogOptions,
} from "#providers/models/catalog.ts";
import type { LanguageModel, ModelRequest } from "#providers/models/port.ts";
import { startScriptedModel, type ScriptedModel } from "#support/vendors/scripted-model.ts";

const REQUEST: ModelRequest = {
  messages: [
    { role: "system", content: "The pool is heated." },
    { role: "user", content: "Is the pool heated?" },
  ],
  functions: [],
  temperature: 0.5,
  tokensMax: 50,
};
const OFFLINE_REPLY = "The pool is heated.";

const standard: ModelEntry = { id: 1, name: "Default", type: "llm", provider: "default" };
const offline: ModelEntry = { id: 2, name: "Offline", type: "llm", provider: "offline" };

function compatible(id: number, fields: Partial<ModelEntry>): ModelEntry {
  return { id, name: `model ${id}`, type: "llm", provider: "openai-compatible", ...fields };
}

async function replyOf(model: LanguageModel, signal = new AbortController().signal) {
  let text = "";
  for await (const deltas of model.stream(REQUEST, signal)) {
    for (const delta of deltas) if (delta.kind === "text") text += delta.text;
  }
  return text;
}

/** A catalog whose warnings are kept, and two servers that say "main" and "spare". */
async function setUp(t: TestContext): Promise<{
  main: ScriptedModel;
  spare: ScriptedModel;
  warnings: Record<string, unknown>[];
  catalogOf(entries: ModelEntry[], fallback?: ModelCatalogOptions["fallback"]): ModelCatalog;
}> {
  const [main, spare] = await Promise.all([startScriptedModel(), startScriptedModel()]);
  main.script(() => ({ tokens: ["main"] }));
  spare.script(() => ({ tokens: ["spare"] }));
  const warnings: Record<string, unknown>[] = [];
  const warn = (fields: object, message: string) => warnings.push({ ...fields, message });
  const silent = { debug() {}, info() {}, error() {}, fatal() {}, warn, child: () => log };
  const log = silent as unknown as Logger;
  const catalogs: ModelCatalog[] = [];
  t.after(() => Promise.all([...catalogs, main, spare].map((opened) => opened.close())));
  return {
    main,
    spare,
    warnings,
    catalogOf(entries, fallback = { url: null, key: null, name: null }) {
      const limits = { modelRetriesMax: 0 };
      const fixed = {
        system: createSystem(), log, limits, offlinePaceMs: 0,
        whyRealtimeMissing: () => NO_REALTIME,
      };
      const catalog = createModelCatalog({ entries, fallback, ...fixed });
      catalogs.push(catalog);
      return catalog;
    },
  };
}

const NO_REALTIME = "The setting PARLEY_REALTIME_URL is not set on this server.";
const NO_URL = "The setting PARLEY_MODEL_URL is not set on this server.";

test("[MO41] models are listed by type, with the code where there is one", async (t) => {
  const { catalogOf } = await setUp(t);
  const voice: ModelEntry = {
    id: 9,
    name: "GPT Realtime",
    type: "multimodal",
    code: "gpt-realtime",
    provider: "default",
  };
  const catalog = catalogOf([offline, voice, standard]);
  assert.deepEqual(catalog.list("llm"), [
    { id: 2, name: "Offline", missing: null },
    { id: 1, name: "Default", missing: NO_URL },
  ]);
  assert.deepEqual(catalog.list("multimodal"), [
    {
      id: 9, name: "GPT Realtime", code: "gpt-realtime",
      missing: NO_REALTIME,
    },
  ]);
  assert.deepEqual(catalog.list("dualplex"), []);
  assert.deepEqual(
    [catalog.has(9, "multimodal"), catalog.has(9, "llm"), catalog.has(3, "llm")],
    [true, false, false],
  );
});

test("[MO42] the default model is the configured server, and offline without one", async (t) => {
  const { catalogOf, main } = await setUp(t);
  assert.equal(await replyOf(catalogOf([standard]).resolve(1)), OFFLINE_REPLY);
  const catalog = catalogOf([standard, offline], { url: main.url, key: "k", name: "big" });
  assert.equal(await replyOf(catalog.resolve(1)), "main");
  assert.deepEqual([main.requests[0]!.model, main.headers[0]!.authorization], ["big", "Bearer k"]);
  assert.equal(await replyOf(catalog.resolve(2)), OFFLINE_REPLY);
});

test("[MO43] no id or an unknown one means the first llm", async (t) => {
  const { catalogOf, main } = await setUp(t);
  const voice: ModelEntry = { ...offline, id: 9, type: "multimodal" };
  const catalog = catalogOf([voice, standard, offline], { url: main.url, key: null, name: "m" });
  assert.equal(catalog.resolve(null), catalog.resolve(1));
  assert.equal(catalog.resolve(77), catalog.resolve(1));
  assert.equal(await replyOf(catalog.resolve(9)), OFFLINE_REPLY);
  assert.equal(await replyOf(catalogOf([]).resolve(null)), OFFLINE_REPLY);
});

test("[MO44] an entry uses its own server, model and settings through one adaptor", async (t) => {
  const { catalogOf, main, spare } = await setUp(t);
  const entry = compatible(3, {
    model: "gpt-5-mini",
    url: spare.url,
    key: "own",
    temperature: 1,
    tokens_field: "max_completion_tokens",
  });
  const catalog = catalogOf([standard, entry], { url: main.url, key: "k", name: "big" });
  assert.equal(await replyOf(catalog.resolve(3)), "spare");
  assert.equal(catalog.resolve(3), catalog.resolve(3));
  const { model, temperature, max_completion_tokens: tokensMax } = spare.requests[0]!;
  assert.deepEqual([model, temperature, tokensMax], ["gpt-5-mini", 1, 50]);
  assert.equal(spare.headers[0]!.authorization, "Bearer own");
});

test("[MO45] an entry without a url uses the configured server and its key", async (t) => {
  const { catalogOf, main } = await setUp(t);
  const entries = [standard, compatible(3, { model: "small" }), { ...standard, id: 4, model: "x" }];
  const catalog = catalogOf(entries, { url: main.url, key: "k", name: "big" });
  for (const id of [3, 4]) assert.equal(await replyOf(catalog.resolve(id)), "main");
  assert.deepEqual(main.requests.map(({ model }) => model), ["small", "x"]);
  assert.deepEqual(main.headers.map(({ authorization }) => authorization), ["Bearer k", "Bearer k"]);
});

test("[MO46] the configured key is never sent to another server", async (t) => {
  const { catalogOf, main, spare } = await setUp(t);
  const entries = [
    compatible(3, { model: "m", url: spare.url }),
    compatible(4, { model: "m", url: `${main.url}/chat/completions`, key_env: "SOME_KEY" }),
  ];
  const catalog = catalogOf(entries, { url: main.url, key: "k", name: null });
  await replyOf(catalog.resolve(3));
  await replyOf(catalog.resolve(4));
  assert.equal(spare.headers[0]!.authorization, undefined);
  assert.equal(main.headers[0]!.authorization, "Bearer k");
});

test("[MO47] an entry that is not set up falls back to the default model, with one warning", async (t) => {
  const { catalogOf, main, spare, warnings } = await setUp(t);
  const message = "a model is not available; the default model answers";
  const catalog = catalogOf([standard, compatible(3, { model: "m" })]);
  for (let turn = 0; turn < 2; turn += 1) {
    assert.equal(await replyOf(catalog.resolve(3)), OFFLINE_REPLY);
  }
  assert.deepEqual(warnings, [{ model_id: 3, missing: "PARLEY_MODEL_URL", message }]);
  warnings.length = 0;
  const keyless = compatible(4, { model: "m", url: spare.url, key_env: "SOME_KEY", key: "" });
  const other = catalogOf([standard, keyless], { url: main.url, key: "k", name: "m" });
  assert.equal(await replyOf(other.resolve(4)), "main");
  assert.equal(spare.counts.requests, 0);
  assert.deepEqual(warnings, [{ model_id: 4, missing: "SOME_KEY", message }]);
});

test("[MO48] a model that fails before its first word is replaced by its fallback", async (t) => {
  const { catalogOf, main, spare, warnings } = await setUp(t);
  const entry = compatible(3, { model: "m", url: main.url, fallback_id: 4 });
  const stand = compatible(4, { model: "s", url: spare.url, fallback_id: 3 });
  const catalog = catalogOf([entry, stand]);
  assert.equal(await replyOf(catalog.resolve(3)), "main");
  assert.equal(warnings.length, 0);
  main.script(() => ({ status: 500 }));
  assert.equal(await replyOf(catalog.resolve(3)), "spare");
  const { err: error, ...fields } = warnings[0]!;
  assert.ok(error instanceof ProviderError);
  const message = "a model failed; its fallback answers";
  assert.deepEqual(fields, { model_id: 3, fallback_id: 4, message });
  spare.script(() => ({ status: 400 }));
  await assert.rejects(replyOf(catalog.resolve(3)), { message: /answered 400/ });
  assert.equal(main.counts.requests, 3, "a fallback's fallback is not asked");
});

test("[MO49] no fallback is used after the first word or an abort", async (t) => {
  const { catalogOf, main, spare } = await setUp(t);
  const entry = compatible(3, { model: "m", url: main.url, fallback_id: 4 });
  const catalog = catalogOf([entry, compatible(4, { model: "s", url: spare.url })]);
  main.script(() => ({ tokens: ["a", "b"], fault: "truncate" }));
  await assert.rejects(replyOf(catalog.resolve(3)), { message: /before its reply was complete/ });
  main.script(() => ({ tokens: ["a"], hold: new Promise(() => {}) }));
  const controller = new AbortController();
  const reply = assert.rejects(replyOf(catalog.resolve(3), controller.signal), /aborted/);
  await main.waitFor("requests", 2);
  controller.abort();
  await reply;
  assert.equal(spare.counts.requests, 0);
});

test("[MO50] a fallback that is missing or the model itself is ignored with a warning", async (t) => {
  const { catalogOf, main, warnings } = await setUp(t);
  main.script(() => ({ status: 400 }));
  const entries = [3, 4].map((id) => compatible(id, { model: "m", url: main.url, fallback_id: 4 }));
  const catalog = catalogOf([{ ...entries[0]!, fallback_id: 99 }, entries[1]!]);
  for (const id of [3, 4]) {
    await assert.rejects(replyOf(catalog.resolve(id)), { message: /answered 400/ });
  }
  const message = "a model's fallback does not exist";
  assert.deepEqual(warnings, [
    { model_id: 3, fallback_id: 99, message },
    { model_id: 4, fallback_id: 4, message },
  ]);
});

test("[MO51] a list with a duplicate id or an invalid url is refused", async (t) => {
  const { catalogOf } = await setUp(t);
  assert.throws(() => catalogOf([standard, { ...offline, id: 1 }]), /an id to two models/);
  const entry = compatible(3, { url: "https://user:pass@host/v1" });
  assert.throws(() => catalogOf([standard, entry]), /no usable url for model 3/);
});

test("[MO52] closing drops the connections of all models, and is idempotent", async (t) => {
  const { catalogOf, main } = await setUp(t);
  const entry = compatible(3, { model: "m", url: main.url });
  const catalog = catalogOf([standard, entry], { url: main.url, key: null, name: "m" });
  main.script(() => ({ tokens: ["a"], hold: new Promise(() => {}) }));
  const replies = [1, 3].map((id) => assert.rejects(replyOf(catalog.resolve(id)), ProviderError));
  await main.waitFor("requests", 2);
  await Promise.all([catalog.close(), catalog.close()]);
  await Promise.all(replies);
});

test("[MO53] the shipped list is valid and works without any setting", async (t) => {
  const { catalogOf } = await setUp(t);
  const text = readFileSync(new URL("../../../data/models.json", import.meta.url), "utf8");
  const entries = JSON.parse(text) as ModelEntry[];
  for (const entry of entries) {
    assert.deepEqual([...Value.Errors(ModelEntry, entry)], [], entry.name);
    assert.equal(entry.fallback_id, undefined);
    assert.equal(entry.code !== undefined, entry.type !== "llm", `${entry.id} and its code`);
  }
  const catalog = catalogOf(entries);
  assert.deepEqual(catalog.list("llm").slice(0, 2), [
    { id: 1, name: "Default", missing: NO_URL },
    { id: 2, name: "Offline", missing: null },
  ]);
  const codes = catalog.list("multimodal").map(({ code }) => code);
  assert.ok(codes.includes("gpt-realtime") && codes.includes("gpt-4o-realtime"));
  assert.ok(catalog.list("dualplex").length > 0);
  for (const { id } of entries) assert.equal(await replyOf(catalog.resolve(id)), OFFLINE_REPLY);
});
