// Files of the kinds that are text with a form: Markdown, HTML, CSV.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createExtractor, type ExtractionResult } from "#features/knowledgebases/extraction.ts";
import { testDataDir } from "#support/server.ts";

type Type = "md" | "html" | "csv";

const folder = testDataDir();
const extractor = createExtractor({
  log: createLogger("silent"), system: createSystem(), allowPrivateNetworks: [],
});
// The extractor's timers and pipes keep nothing alive.
const alive = setInterval(() => undefined, 1000);
after(async () => {
  clearInterval(alive);
  await extractor.close();
  rmSync(folder, { recursive: true });
});

function extract(type: Type, content: string | Buffer): Promise<ExtractionResult> {
  const path = join(folder, type);
  writeFileSync(path, content);
  return extractor.extract({ type, path });
}

async function read(type: Type, content: string | Buffer): Promise<[string[], string][]> {
  const result = await extract(type, content);
  assert.ok(result.kind === "extracted", JSON.stringify(result));
  return result.chunks.map(({ headings, text }) => [headings, text]);
}

test("[EX120] Markdown and HTML keep headings, lists and tables; no script is read", async () => {
  assert.deepEqual(await read("md", [
    "Bikes", "=====", "", "We *rent* **bikes**.", "", "## Prices", "", "| Bike | Dollars |",
    "|---|---|", "| City | 20 |", "", "- Helmets are free", "- Locks too", "",
    "<script>let hidden;</script>",
  ].join("\n")), [
    [["Bikes"], "We rent bikes."],
    [["Bikes", "Prices"], "Bike | Dollars\nCity | 20\n- Helmets are free\n- Locks too"],
  ]);
  assert.deepEqual(await read("html", `<html><head><title>T</title></head><body><nav>Menu</nav>
    <h1>Hours</h1><p>Nine to five.</p><script>let hidden;</script></body></html>`), [
    [["Hours"], "Nine to five."],
  ]);
  const deep = await extract("md", ">".repeat(5000) + " deep");
  assert.equal(deep.kind, "failed", JSON.stringify(deep).slice(0, 200));
  const nested = await extract("html", `${"<div>".repeat(600)}deep`);
  assert.deepEqual(nested, { kind: "failed", reason: "The page is nested too deeply to read." });
});

test("[EX121] each row of a CSV names its columns, whatever parts them; hostile tables cost one document", async () => {
  const rows = [[[], "Bike: City | Dollars: 20\nBike: Electric, large | Dollars: 45"]];
  assert.deepEqual(await read("csv", 'Bike,Dollars\nCity,20\n"Electric, large",45\n'), rows);
  assert.deepEqual(await read("csv", '\uFEFFBike;Dollars\r\nCity;20\r\n"Electric, large";45\r\n'), rows);
  assert.deepEqual(await read("csv", "Only, one row"), [[[], "Only | one row"]]);
  for (const hostile of [
    `a,b\n"${"x".repeat(200_000)}`, `${"a,".repeat(1000)}\n1`, Buffer.from("PK\x03\x04 no table"),
  ]) {
    const result = await extract("csv", hostile);
    assert.equal(result.kind, "failed", JSON.stringify(result).slice(0, 200));
  }
});
