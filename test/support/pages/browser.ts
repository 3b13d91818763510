// Debian's Chromium with a microphone that plays a file, and ways to inspect a page. Tests skip if
// it is not installed.
import { existsSync, writeFileSync } from "node:fs";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { noFirefox, openFirefox } from "./firefox.ts";
import { wavOf } from "#support/calls/wav.ts";
import { afterAll, runsManyFiles } from "#support/runner/one-process.ts";

const WHOLE = "/usr/bin/chromium";
/** The same engine without windows, used if it is installed: a page costs a third less. */
const LIGHT = "/usr/bin/chromium-headless-shell";

/** `whole`: with push messages and the back/forward cache, which the light one lacks. */
export type BrowserKind = "light" | "whole";

/** Set by a test file, or by somebody who runs one of Chromium's in Firefox to compare. */
const isFirefox = (): boolean => process.env.TEST_BROWSER === "firefox";

/** Why browser tests cannot run here; false: they can. */
export const noBrowser = (): string | false => isFirefox() ? noFirefox()
  : existsSync(WHOLE) ? false : "Debian's chromium is not installed";

const RATE = 48_000;

/** A mono WAV at the rate Chromium's fake microphone wants. */
export function writeMicrophone(file: string, samples: Int16Array): void {
  writeFileSync(file, wavOf(samples, RATE));
}

/** A WAV that is played once from the moment the page opens it, a beep every second, or none. */
export type Microphone = { file: string } | "beeps" | "refused";

/** Long enough for a busy machine; then a wait for something that never comes fails. */
const PATIENCE_MS = 120_000;

/** The browser shows notifications itself: a silent desktop bus would hold them for ever. */
const NO_BUS = { DBUS_SESSION_BUS_ADDRESS: "disabled:", DBUS_SYSTEM_BUS_ADDRESS: "disabled:" };

/** `close` closes what was opened in it. */
export type TestBrowser = Pick<Browser, "newContext" | "newPage" | "close">;

/** Shared by all test files of a process that need neither sound nor a window. */
let shared: Promise<Browser> | null = null;

async function launchShared(): Promise<Browser> {
  const browser = await launch("refused", "light");
  browser.on("disconnected", () => {
    shared = null;
  });
  afterAll(() => browser.close());
  return browser;
}

async function openShared(): Promise<TestBrowser> {
  shared ??= launchShared();
  const browser = await shared;
  const contexts: BrowserContext[] = [];
  const newContext: Browser["newContext"] = async (options) => {
    const context = await browser.newContext(options);
    contexts.push(context);
    return context;
  };
  return {
    newContext,
    newPage: async (options) => (await newContext(options)).newPage(),
    async close() {
      await Promise.all(contexts.map((context) => context.close()));
    },
  };
}

export async function openBrowser(
  microphone: Microphone, kind: BrowserKind = "light",
): Promise<TestBrowser> {
  if (isFirefox()) return openFirefox(microphone === "refused" ? "refused" : "hums");
  const isShared = runsManyFiles() && microphone === "refused" && kind === "light";
  return isShared ? openShared() : launch(microphone, kind);
}

async function launch(microphone: Microphone, kind: BrowserKind): Promise<Browser> {
  const browser = await chromium.launch({
    env: { ...process.env, ...NO_BUS },
    executablePath: kind === "light" && existsSync(LIGHT) ? LIGHT : WHOLE,
    // Real browsers keep a page that was left in the back/forward cache.
    ignoreDefaultArgs: ["--disable-back-forward-cache"],
    args: [
      "--no-sandbox",
      "--use-fake-device-for-media-stream",
      // A page lives for seconds, in which optimising compilers cost a sixth more (without sound).
      ...(microphone === "refused"
        ? ["--js-flags=--no-opt --no-maglev"] : ["--use-fake-ui-for-media-stream"]),
      ...(typeof microphone === "object"
        ? [`--use-file-for-fake-audio-capture=${microphone.file}%noloop`]
        : []),
    ],
  });
  browser.on("context", (context) => context.setDefaultTimeout(PATIENCE_MS));
  return browser;
}

/** Counts what a page opens, and can keep a permission waiting; runs before the page's own code. */
export const WATCH = `
  const opened = window.opened = { order: [], tracks: [], contexts: [], allow: null };
  const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    opened.order.push("microphone");
    if (opened.wait) await new Promise((resolve) => { opened.allow = resolve; });
    const stream = await ask(wanted);
    opened.tracks.push(...stream.getTracks());
    return stream;
  };
  window.AudioContext = class extends AudioContext {
    constructor(...options) {
      super(...options);
      opened.order.push("context");
      opened.contexts.push(this);
    }
    resume() {
      opened.order.push("resume");
      return super.resume();
    }
  };`;
/** True if nothing that was opened is still open. */
export const ALL_FREE = `opened.contexts.every(({ state }) => state === "closed")
  && opened.tracks.every(({ readyState }) => readyState === "ended")`;

/** Polls at every frame of the page, whose policy forbids Playwright's `waitForFunction`. */
export async function until(page: Page, condition: string): Promise<void> {
  // It polls in the page: an answer for every frame would keep both processes busy.
  const why = await page.evaluate(`(async () => {
    const end = performance.now() + ${PATIENCE_MS};
    let why = "";
    while (performance.now() < end) {
      await new Promise(requestAnimationFrame);
      // What it looks at may not be there yet.
      try { if (${condition}) return null; why = ""; } catch (error) { why = String(error); }
    }
    return why;
  })()`);
  if (why !== null) throw new Error(`not so within ${PATIENCE_MS / 1000} s: ${condition} ${String(why)}`);
}

/** Every text on the page with less than WCAG's contrast of 4.5 against what is painted behind. */
export const LOW_CONTRAST = `
  (() => {
    const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const luminance = (colour) => {
      const [r, g, b] = channels(colour).map((value) => value / 255)
        .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
      const { backgroundColor } = getComputedStyle(element);
      return channels(backgroundColor)[3] === 0 ? behind(element.parentElement) : backgroundColor;
    };
    const low = [];
    for (const element of document.querySelectorAll("body *")) {
      const text = [...element.childNodes].filter(({ nodeType }) => nodeType === 3)
        .map(({ data }) => data).join("").trim();
      if (text === "" || !element.checkVisibility() || element.disabled) continue;
      const [one, other] = [getComputedStyle(element).color, behind(element)].map(luminance);
      const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      if (contrast < 4.5 || getComputedStyle(element).opacity !== "1") low.push([text, contrast]);
    }
    return low;
  })()`;

export interface Thread {
  port: { onmessage: (event: { data: unknown }) => void };
  told: { kind: string; dropped_ms?: number; played_ms?: number }[];
  frames: Int16Array[];
  process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean;
}

let threads = 0;

/** The page's own audio thread without a device, at any rate and as fast as it can. */
export async function openThread(rate: number, name: "playback" | "capture"): Promise<Thread> {
  const made = new Map<string, new () => Thread>();
  Object.assign(globalThis, {
    sampleRate: rate,
    registerProcessor: (key: string, processor: new () => Thread) => made.set(key, processor),
    AudioWorkletProcessor: class {
      told: object[] = [];
      frames: Int16Array[] = [];
      port = {
        postMessage: (message: object): unknown => message instanceof ArrayBuffer
          ? this.frames.push(new Int16Array(message))
          : this.told.push(message),
      };
    },
  });
  // A module runs once for each address.
  threads += 1;
  await import(`../../../src/ui/talk/worklet.js?thread=${threads}`);
  return new (made.get(name)!)();
}
