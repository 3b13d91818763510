// A third party's page, on an origin of its own and under the strictest policy with which the
// widget works; access to what the widget shows there; and the server and model behind it.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import axe from "axe-core";
import type { BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core";
import { createSystem } from "#core/system.ts";
import { noBrowser, openBrowser, until, type Microphone, type TestBrowser } from "./browser.ts";
import { listenLocally } from "#support/local-server.ts";
import { newAssistant, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

export interface HostPage {
  /** Attributes of the script tag, `src` aside; `dir` of the page; which of the two names. */
  attributes: Record<string, string>;
  dir?: "ltr" | "rtl";
  lang?: string;
  script?: "widget.js" | "embed.js" | null;
  /** Headers besides or instead of the strict policy. */
  headers?: Record<string, string>;
}

export interface Host {
  origin: string;
  /** The address of a page like this. */
  add(page: HostPage): string;
  close(): Promise<void>;
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

function html({ attributes, dir = "ltr", lang = "en", script = "widget.js" }: HostPage, widget: string): string {
  const given = Object.entries(attributes).map(([name, value]) => ` ${name}="${escaped(value)}"`);
  const tag = script === null
    ? ""
    : `<script async src="${widget}/${script}"${given.join("")}></script>`;
  return `<!doctype html><html lang="${lang}" dir="${dir}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Harbour Bikes</title>
<link rel="icon" href="data:,"></head><body><main><h1>Harbour Bikes</h1>
<p>We repair and rent bicycles of all kinds. <a href="#more">More</a></p></main>${tag}</body></html>`;
}

/** Allows only the widget; calls need its WebSocket, which no `http:` source allows. */
export const strictPolicy = (connect: string, scripts: string): string =>
  `default-src 'none'; script-src ${scripts}; connect-src ${connect}; img-src data:; `
    + "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'";

export async function startHost(widget: string): Promise<Host> {
  const pages: HostPage[] = [];
  const policy = strictPolicy(`${widget} ${widget.replace("http", "ws")}`, widget);
  const server = createServer((request, response) => {
    const page = pages[Number(request.url?.slice(1))];
    response.writeHead(page ? 200 : 404, {
      "content-type": "text/html; charset=utf-8", "content-security-policy": policy,
      ...page?.headers,
    });
    response.end(page ? html(page, widget) : "");
  });
  const { url: origin, close } = await listenLocally(server);
  return { origin, add: (page) => `${origin}/${pages.push(page) - 1}`, close };
}

export interface Seen {
  page: Page;
  launcher: Locator;
  panel: Locator;
  log: Locator;
  box: Locator;
  /** Texts of the assistant's messages. */
  replies(): Promise<string[]>;
  say(text: string): Promise<void>;
  /** Errors of the page and violations of its policy. */
  problems: string[];
}

/** Reports what the policy stopped, under a name that the page's own code does not see. */
const REPORT = `document.addEventListener("securitypolicyviolation", (event) =>
  console.error("policy: " + event.violatedDirective + " " + event.blockedURI));`;

export async function openPage(
  browser: TestBrowser, url: string, options: BrowserContextOptions = {}, prepare = "",
): Promise<Seen> {
  return openTab(await browser.newContext({ ...options, bypassCSP: false }), url, prepare);
}

/** One more tab of the same visitor. */
export async function openTab(context: BrowserContext, url: string, prepare = ""): Promise<Seen> {
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    // Requests that a test makes fail are logged here too.
    const isNetwork = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isNetwork) problems.push(message.text());
  });
  // Not in the empty page with which Firefox begins, which has no microphone.
  await page.addInitScript(`if (location.protocol.startsWith("http")) { ${REPORT + prepare} }`);
  await page.goto(url);
  const log = page.getByRole("log");
  const box = page.getByRole("textbox", { name: "Your message" });
  return {
    page, log, box, problems,
    launcher: page.locator("assistant-chat .launcher"),
    panel: page.getByRole("dialog"),
    replies: async () => (await log.locator(".item.assistant").allInnerTexts())
      .map((text) => text.replace(/^Assistant:\s*/, "").trim()),
    say: async (text) => {
      await box.fill(text);
      await box.press("Enter");
    },
  };
}

export interface Given extends Omit<Partial<HostPage>, "attributes"> {
  settings?: object;
  attributes?: Record<string, string>;
  context?: BrowserContextOptions;
  key?: string;
  /** Runs before the page's own code. */
  prepare?: string;
  /** The problems of the page that the test expects. */
  expects?: RegExp;
}

/** Everything the widget's tests share. */
export async function startWorld(microphone: Microphone = "refused", system = createSystem()) {
  const model = await startScriptedModel();
  const server = await startTestServer({
    system,
    env: {
      PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback",
      // Speech made of numbers survives no codec.
      PARLEY_WEBRTC: "off", PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
    },
  });
  const host = await startHost(server.url);
  const browser = noBrowser() ? null : await openBrowser(microphone);
  return {
    model, server, host, browser,
    /** Opens a page with an assistant of its own; afterwards nothing may have gone wrong in it. */
    withWidget: async (
      given: Given, work: (seen: Seen, uuid: string) => Promise<void>,
    ): Promise<void> => {
      assert.ok(browser);
      const { settings, attributes, context, key, prepare, expects, ...page } = given;
      const { uuid } = await newAssistant(server, { initial_message: "Hi!", ...settings }, key);
      const url = host.add({ attributes: { "data-assistant": uuid, ...attributes }, ...page });
      const seen = await openPage(browser, url, context, prepare);
      try {
        await work(seen, uuid);
        assert.deepEqual(seen.problems.filter((text) => !expects?.test(text)), []);
      } finally {
        model.script(null);
        await seen.page.context().close();
      }
    },
    /** Has replies wait after `count` tokens until `go` is called. */
    held: (count: number, tokens = ["One ", "two ", "three ", "four."]): { go: () => void } => {
      const { promise, resolve } = Promise.withResolvers<void>();
      model.script(() => ({ tokens, hold: promise, holdAfter: count }));
      return { go: resolve };
    },
    close: async () => {
      await browser?.close();
      await host.close();
      await server.close();
      await model.close();
    },
  };
}

export interface Load {
  /** Compiling and running the script's text; the thread's time, not what others took meanwhile. */
  evaluationMs: number;
  /** The time beyond 50 ms of longer tasks, from the first paint on. */
  blockingMs: number;
  layoutShift: number;
  /** From the beginning of the navigation; null: there is no widget. */
  launcherMs: number | null;
  /** Sent to the page for the script, with its headers. */
  scriptBytes: number;
}

/** What the page itself can measure, whatever its policy. */
const OBSERVE = `{
  const seen = window.measured = { blockingMs: 0, layoutShift: 0, launcherMs: null };
  const observe = (type, take) => new PerformanceObserver((list) => list.getEntries().forEach(take))
    .observe({ type, buffered: true });
  observe("longtask", ({ duration }) => seen.blockingMs += Math.max(0, duration - 50));
  observe("layout-shift", ({ value }) => seen.layoutShift += value);
  const look = () => {
    const host = document.querySelector("assistant-chat");
    if (host?.shadowRoot.querySelector(".launcher")?.checkVisibility()) {
      seen.launcherMs = performance.now();
    } else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}`;

interface TraceEvent {
  name: string;
  tdur?: number;
  args: { data?: { url?: string } };
}

/** Opens a page in a browser that has nothing of it cached, and measures what that costs. */
export async function measureLoad(
  browser: TestBrowser, url: string, hasWidget = true,
): Promise<Load> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  const events: TraceEvent[] = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value as unknown as TraceEvent[]));
  let scriptBytes = 0;
  let scriptId = "";
  session.on("Network.responseReceived", ({ requestId, response }) => {
    if (/\/\w+\.js$/.test(response.url)) scriptId = requestId;
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (requestId === scriptId) scriptBytes = encodedDataLength;
  });
  await session.send("Network.enable");
  await session.send("Tracing.start", {
    transferMode: "ReportEvents", traceConfig: { includedCategories: ["devtools.timeline"] },
  });
  await page.addInitScript(OBSERVE);
  await page.goto(url, { waitUntil: "load" });
  if (hasWidget) await until(page, "measured.launcherMs !== null");
  // Two frames later, what was drawn has been laid out and reported.
  for (let frame = 0; frame < 2; frame += 1) await until(page, "true");
  const over = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await over;
  const measured = await page.evaluate("measured") as Omit<Load, "evaluationMs" | "scriptBytes">;
  await context.close();
  const micros = events
    .filter(({ name, args }) =>
      name === "EvaluateScript" && args.data?.url?.endsWith(".js") === true)
    .reduce((sum, { tdur = 0 }) => sum + tdur, 0);
  return { ...measured, scriptBytes, evaluationMs: micros / 1000 };
}

export async function open({ launcher, box, log }: Seen): Promise<void> {
  await launcher.click();
  await box.waitFor();
  await log.getByText("Hi!").waitFor();
}

export const isAnswered = ({ page }: Seen): Promise<void> =>
  page.getByRole("button", { name: "Send" }).waitFor();

export const HOSTILE = `<script>document.title="owned"</script><img src=x onerror="document.title='owned'">
**<b onclick=1>bold</b>** and *<svg/onload=1>* [run](javascript:document.title='owned')
[upper](JaVaScRiPt:alert(1)) [data](data:text/html,<script>1</script>) ![pic](https://a.example/b.png)
[tab](java\tscript:alert(1)) [nested [in](https://x.example) out](javascript:1) <https://ok.example/>
[**bold** link](https://good.example/?a=1&b="2") __[deep *er*](vbscript:x)__ [rel](/settings)
[post](mailto:desk@example.org)

1. one <iframe srcdoc="<script>1</script>">
- two \`<script>\` https://plain.example/path.

\`\`\`html
<script>document.title = "owned"</script>
\`\`\``;

/** Waits for animations: what is fading in has less contrast than it will have. */
const APPEARED = `Promise.all(document.querySelector("assistant-chat").shadowRoot.getAnimations()
  .filter((animation) => animation.effect.getComputedTiming().endTime < Infinity)
  .map(({ finished }) => finished))`;

/** Asserts that axe finds no fault in the widget, as it is shown now. */
export async function assertAccessible({ page }: Seen): Promise<void> {
  // Past the page's policy, as a browser's extension would.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe.source });
  const { result } = await session.send("Runtime.evaluate", {
    expression: `${APPEARED}.then(() => axe.run("assistant-chat")).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + " " + nodes.map(({ html }) => html).join(" ")))`,
    awaitPromise: true, returnByValue: true,
  });
  assert.deepEqual(result.value, []);
}

/** A visitor in a browser of his own who has opened the chat and asked for a person. */
export async function askForPerson(
  browser: TestBrowser, url: string,
): Promise<Seen & { uuid: string }> {
  const seen = await openPage(browser, url);
  const made = seen.page.waitForRequest(/\/stream\?after=/);
  await open(seen);
  const uuid = /conversations\/([\w-]{36})/.exec((await made).url())?.[1] ?? "";
  await seen.page.getByRole("button", { name: "Talk to a person" }).click();
  await seen.panel.locator(".desk").getByText("A person has been asked to join.").waitFor();
  return { ...seen, uuid };
}
