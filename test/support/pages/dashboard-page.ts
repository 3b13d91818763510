// A server, a model it asks, and the dashboard in a real browser, signed in; with the checks that
// every page has to pass: no error, no policy violation, nothing wider than the screen, no finding
// of axe-core.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import type { BrowserContextOptions, Disposable, Page } from "playwright-core";
import { noBrowser, openBrowser, type BrowserKind, type Microphone } from "./browser.ts";
import { IS_PROOF } from "#support/proof.ts";
import { startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCREENS = [
  { width: 1440, height: 900 }, { width: 360, height: 740 },
] as const;
/** Each width and each theme once, which the suite does in turns. */
const LOOKS = [
  { viewport: SCREENS[0], colorScheme: "light" }, { viewport: SCREENS[1], colorScheme: "dark" },
] as const;

/** Reports what the policy stopped, under a name that the page's own code does not see. */
const REPORT = `document.addEventListener("securitypolicyviolation", (event) =>
  console.error("policy: " + event.violatedDirective + " " + event.blockedURI));`;

export interface Shown {
  page: Page;
  /** Shows the page at this address: `/calls`. Nothing of the one before it is left. */
  go(path: string): Promise<void>;
  /** Checks what is shown: at desktop width in light, or at phone width in dark. */
  look(): Promise<void>;
}

/** The time limit of work with a page: what hangs in the page itself has no other. */
const WORK_MS = 240_000;
const SHOWN_MS = 5000;

/** Throws with what the page shows if the work is not done in time. */
async function inTime(page: Page, work: Promise<void>): Promise<void> {
  const late = new AbortController();
  const overdue = async (): Promise<void> => {
    await wait(WORK_MS, undefined, { signal: late.signal });
    const text = page.locator("body").innerText({ timeout: SHOWN_MS }).catch(String);
    throw new Error(`not done in ${WORK_MS / 1000} s at ${page.url()}: ${await text}`);
  };
  try {
    await Promise.race([work, overdue()]);
  } finally {
    late.abort();
  }
}

/** Resolves once the effects of the last event have been drawn. */
export const drawn = (page: Page): Promise<unknown> =>
  page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");

interface OpenPage {
  page: Page;
  problems: string[];
  /** The page is signed in with this key from now on, until the result is disposed of. */
  signIn(key: string): Promise<Disposable>;
  /** Something was done to the page that its next user would notice. */
  isMarked(): boolean;
}

/** Methods whose effects last as long as the page or its browser context. */
const MARKS = [
  "addCookies", "addInitScript", "addLocatorHandler", "exposeBinding", "exposeFunction",
  "grantPermissions", "install", "newCDPSession", "newPage", "on", "once", "route", "routeFromHAR",
  "routeWebSocket", "setExtraHTTPHeaders", "setGeolocation", "setFixedTime", "setOffline",
  "setSystemTime",
];

/** Calls `mark` when something lasting is done to the target. */
function watch(target: object, mark: () => void): void {
  const methods = target as Record<string, (...args: unknown[]) => unknown>;
  for (const name of MARKS) {
    const method = methods[name]?.bind(target);
    if (method === undefined) continue;
    methods[name] = (...args) => {
      mark();
      return method(...args);
    };
  }
}

/** A page that records problems, and whether something lasting was done to it. */
async function preparedPage(page: Page): Promise<OpenPage> {
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    // Requests that a test makes fail are logged here too.
    const isNetwork = /^(Failed to load resource|WebSocket connection to)/.test(message.text());
    if (message.type() === "error" && !isNetwork) problems.push(message.text());
  });
  await page.addInitScript(REPORT);
  const addScript = page.addInitScript.bind(page);
  let isMarked = false;
  for (const one of [page, page.context(), page.clock]) {
    watch(one, () => {
      isMarked = true;
    });
  }
  return {
    page,
    problems,
    signIn: (key) => addScript(`if (location.protocol === "http:"
      && !sessionStorage.getItem("parley-api-key"))
        sessionStorage.setItem("parley-api-key", ${JSON.stringify(key)});`),
    isMarked: () => isMarked,
  };
}

/**
 * Resets a page to what a new one would be, for the next test: a page in a context of its own costs
 * twice the CPU until it shows the dashboard, and as much again to check it with axe-core.
 */
async function tidied(open: OpenPage, url: string): Promise<OpenPage> {
  const { page } = open;
  await page.goto(`${url}/livez`);
  await page.evaluate("sessionStorage.clear(); localStorage.clear()");
  await page.setViewportSize(SCREENS[0]);
  await page.emulateMedia({
    media: null, colorScheme: null, contrast: null, forcedColors: null, reducedMotion: null,
  });
  open.problems.length = 0;
  return open;
}

export async function startDashboard(
  env: Record<string, string> = {}, microphone: Microphone = "refused", kind?: BrowserKind,
) {
  const model = await startScriptedModel();
  const server = await startTestServer({
    env: {
      PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback",
      PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
      PARLEY_RATE_KEY_PER_MINUTE: "100000", PARLEY_RATE_KEY_BURST: "100000", ...env,
    },
  });
  const browser = noBrowser() ? null : await openBrowser(microphone, kind);
  /** A page that its last user left as it was. */
  let spare: OpenPage | null = null;
  let looks = 0;
  const look = async (page: Page): Promise<void> => {
    const one = LOOKS[looks % LOOKS.length] ?? LOOKS[0];
    looks += 1;
    for (const way of IS_PROOF ? LOOKS : [one]) await lookOnce(page, way);
    await page.setViewportSize(SCREENS[0]);
    await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  };
  const openPage = async (options: BrowserContextOptions | undefined): Promise<OpenPage> => {
    assert.ok(browser);
    const context = await browser.newContext({
      viewport: SCREENS[0], ...options, bypassCSP: false,
    });
    return preparedPage(await context.newPage());
  };
  /** Opens the dashboard; afterwards nothing may have gone wrong in it. */
  const withDashboard = async (
    work: (shown: Shown) => Promise<void>,
    { context: options, key = server.key }: { context?: BrowserContextOptions; key?: string } = {},
  ): Promise<void> => {
    const isPlain = options === undefined;
    const kept = isPlain ? spare : null;
    if (kept) spare = null;
    const open = kept ? await tidied(kept, server.url) : await openPage(options);
    const { page, problems } = open;
    const signedIn = await open.signIn(key);
    await page.goto(`${server.url}/`);
    await page.getByText("Live", { exact: true }).waitFor();
    let isClean = false;
    try {
      await inTime(page, work({
        page,
        go: async (path) => {
          await page.goto(`${server.url}/#${path}`);
          await drawn(page);
        },
        look: () => look(page),
      }));
      assert.deepEqual(problems, []);
      isClean = isPlain && spare === null && !open.isMarked();
    } finally {
      model.script(null);
      if (!isClean) await page.context().close();
    }
    if (!isClean) return;
    // The page's connections are closed for the tests in between.
    await page.goto("about:blank");
    await signedIn.dispose();
    spare = open;
  };
  return {
    model, server, browser, withDashboard,
    close: async () => {
      await browser?.close();
      await server.close();
      await model.close();
    },
  };
}

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

/**
 * Only violations are described and transferred: all that passed would take far longer. No rule
 * that is on by default needs the style sheets fetched again (`preload`). `region` has moderate
 * impact, and is a tenth of the work.
 */
const RUN_AXE = `axe.run({
  resultTypes: ["violations"], preload: false, rules: { region: { enabled: false } },
}).then(({ violations }) =>
  violations.filter(({ impact }) => impact === "serious" || impact === "critical"))`;

/** The serious and critical findings of axe-core in what is shown. */
export async function seriousOf(page: Page): Promise<string[]> {
  // It is evaluated as text: the page's policy forbids script elements, not the debugger.
  if (!await page.evaluate(`"axe" in window`)) await page.evaluate(`${AXE}; null`);
  const found = await page.evaluate(RUN_AXE) as Violation[];
  return found.map(({ id, nodes }) => `${id} ${nodes[0]?.html} ${nodes[0]?.failureSummary}`);
}

/** How many pixels the page is wider than the screen; zero or less is fine. */
export const overhangOf = async (page: Page): Promise<number> =>
  Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));

/** Column headings wider than their column, once the current width is drawn. */
export const cutHeadings = (page: Page): Promise<unknown> => page.evaluate(
  `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))).then(() =>
    [...document.querySelectorAll(".list th")]
      .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent))`);

async function lookOnce(
  page: Page, { viewport, colorScheme }: (typeof LOOKS)[number],
): Promise<void> {
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
  const what = `${viewport.width} px, ${colorScheme}`;
  const overhang = await overhangOf(page);
  assert.ok(overhang <= 0, `${what}: ${overhang} px wider than the screen`);
  assert.deepEqual(await cutHeadings(page), [], `${what}: headings that are cut`);
  assert.deepEqual((await seriousOf(page)).map((one) => `${what}: ${one}`), []);
}
