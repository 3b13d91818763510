// What the chat widget costs a page: a browser with an empty cache opens a page of another origin,
// in turn with the widget and with an empty script by the same tag, at the same distance and with
// the same headers. The ratio is that of the two evaluations.
//
// Evaluation is from Chromium's own trace ("EvaluateScript": compiling and running the text, in the
// thread's CPU time), blocking is what tasks take beyond 50 ms, layout shift is Chromium's own
// figure, and the bytes are those on the wire, headers included.
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import { bundlePage } from "#ui/build.ts";
import { listenLocally } from "#support/local-server.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { measureLoad, startHost, startWorld, type Load } from "#support/pages/widget-page.ts";
import { newAssistant } from "#support/server.ts";
import { median, percentile, print, printResult } from "./report.ts";

const LOADS = Number(process.env.BENCH_LOADS ?? 11);
const WARM_UP = 2;

const missing = noBrowser();
if (missing !== false) {
  print(missing);
  process.exit(0);
}
const world = await startWorld();
const { browser, server, host } = world;
if (!browser) throw new Error("the browser is gone");

const empty = gzipSync("");
const other = await listenLocally(createServer((_, response) => {
  response.writeHead(200, {
    "content-type": "text/javascript; charset=utf-8", "content-encoding": "gzip",
    "access-control-allow-origin": "*", "content-length": empty.length,
  });
  response.end(empty);
}));
const otherHost = await startHost(other.url);

const { uuid } = await newAssistant(server);
const attributes = { "data-assistant": uuid };
const withWidget = host.add({ attributes });
const without = otherHost.add({ attributes });
const loads: { widget: Load[]; empty: Load[] } = { widget: [], empty: [] };
for (let count = 0; count < WARM_UP + LOADS; count += 1) {
  const widget = await measureLoad(browser, withWidget);
  const bare = await measureLoad(browser, without, false);
  if (count < WARM_UP) continue;
  loads.widget.push(widget);
  loads.empty.push(bare);
}
const [main, call] = [await bundlePage("widget.js"), await bundlePage("widget-call.js")];
await otherHost.close();
await other.close();
await world.close();

const rounded = (value: number): number => Number(value.toFixed(3));
function figures(of: Load[]) {
  const middle = (read: (load: Load) => number): number => rounded(median(of.map(read)));
  return {
    evaluation_ms: middle(({ evaluationMs }) => evaluationMs),
    evaluation_p90_ms: rounded(percentile(of.map(({ evaluationMs }) => evaluationMs), 90)),
    blocking_ms: middle(({ blockingMs }) => blockingMs),
    layout_shift_max: Math.max(...of.map(({ layoutShift }) => layoutShift)),
    script_bytes: middle(({ scriptBytes }) => scriptBytes),
    launcher_ms: of[0]?.launcherMs === null ? null : middle(({ launcherMs }) => launcherMs ?? 0),
  };
}
const widget = figures(loads.widget);
const bare = figures(loads.empty);
for (const [name, values] of Object.entries({ widget, empty: bare })) {
  print(`${name.padEnd(7)} evaluation ${values.evaluation_ms} ms (p90 ${values.evaluation_p90_ms}), `
    + `blocking ${values.blocking_ms} ms, layout shift ${values.layout_shift_max}, `
    + `${values.script_bytes} bytes, launcher ${values.launcher_ms ?? "none"} ms`);
}
printResult("widget", {
  loads: LOADS, widget, empty: bare,
  gzip_bytes: main.gzip.length, call_gzip_bytes: call.gzip.length,
  evaluation_to_empty: rounded(widget.evaluation_ms / bare.evaluation_ms),
  added_evaluation_ms: rounded(widget.evaluation_ms - bare.evaluation_ms),
});
