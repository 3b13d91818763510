// The engine of Safari, as Debian has it (WebKitGTK): its driver, a virtual screen, and a window on
// it. Controlled by the W3C's WebDriver protocol. Tests skip if it is not installed.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { freePorts } from "#support/free-ports.ts";

const DRIVER = "/usr/bin/WebKitWebDriver";
const SCREEN = "/usr/bin/Xvfb";

/** Why tests cannot run in WebKit here; false: they can. */
export const noWebKit = (): string | false => existsSync(DRIVER) && existsSync(SCREEN)
  ? false : "Debian's webkit2gtk-driver or xvfb is not installed";

/** Long enough for a busy machine; then a wait for something that never comes fails. */
const PATIENCE_MS = 60_000;
const LOOK_MS = 30;

export interface WebKit {
  go(url: string): Promise<void>;
  reload(): Promise<void>;
  /** The body of a function in the page; `arguments` are those given. */
  run(body: string, ...given: unknown[]): Promise<unknown>;
  /** Resolves once an expression in the page is true. */
  until(expression: string): Promise<void>;
  /** Presses what the expression gives, as a finger would. */
  press(expression: string): Promise<void>;
  /** Presses these keys where the page has its focus. */
  type(keys: string): Promise<void>;
  /** PNG. */
  picture(): Promise<Buffer>;
  send(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<unknown>;
  close(): Promise<void>;
}

export interface Look {
  width?: number;
  height?: number;
  isDark?: boolean;
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill();
  await once(child, "exit");
}

async function startScreen(width: number, height: number) {
  const screen = spawn(SCREEN,
    ["-displayfd", "3", "-screen", "0", `${width}x${height}x24`, "-nolisten", "tcp"],
    { stdio: ["ignore", "ignore", "ignore", "pipe"] });
  const [said] = await once(screen.stdio[3]!, "data") as [Buffer];
  return { screen, display: `:${said.toString().trim()}` };
}

async function ask(base: string, method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(base + path, {
    method, ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const { value } = await response.json() as { value: unknown };
  if (response.ok) return value;
  const { error, message } = value as { error: string; message: string };
  throw new Error(`${method} ${path}: ${error}: ${message}`);
}

export async function openWebKit(look: Look = {}): Promise<WebKit> {
  const { width = 1280, height = 900 } = look;
  const { screen, display } = await startScreen(width, height);
  const port = await freePorts();
  const driver = spawn(DRIVER, [`--port=${port}`], {
    stdio: "ignore",
    env: {
      ...process.env, DISPLAY: display, GDK_BACKEND: "x11", LIBGL_ALWAYS_SOFTWARE: "1",
      // Its sandbox needs rights that a container does not give.
      WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1", NO_AT_BRIDGE: "1",
      ...(look.isDark ? { GTK_THEME: "Adwaita:dark" } : {}),
    },
  });
  const base = `http://127.0.0.1:${port}`;
  while (!await fetch(`${base}/status`).then(({ ok }) => ok, () => false)) await delay(LOOK_MS);
  const { sessionId } = await ask(base, "POST", "/session", { capabilities: { alwaysMatch: {
    "webkitgtk:browserOptions": { args: ["--automation"] },
  } } }) as { sessionId: string };
  const send: WebKit["send"] = (method, path, body) =>
    ask(base, method, `/session/${sessionId}${path}`, body);
  await send("POST", "/window/rect", { x: 0, y: 0, width, height });
  const run: WebKit["run"] = (script, ...args) =>
    send("POST", "/execute/sync", { script, args });
  const element = async (expression: string): Promise<string> =>
    Object.values(await run(`return ${expression}`) as object)[0] as string;
  return {
    send, run,
    go: async (url) => void await send("POST", "/url", { url }),
    reload: async () => void await send("POST", "/refresh", {}),
    until: async (expression) => {
      const endMs = performance.now() + PATIENCE_MS;
      while (await run(`return Boolean(${expression})`).catch(() => false) !== true) {
        if (performance.now() > endMs) throw new Error(`never came: ${expression}`);
        await delay(LOOK_MS);
      }
    },
    press: async (expression) => {
      const path = `/element/${await element(expression)}/click`;
      const endMs = performance.now() + PATIENCE_MS;
      for (;;) {
        try {
          return void await send("POST", path, {});
        } catch (error) {
          // The element is there, but not drawn yet.
          const isEarly = (error as Error).message.includes("element not interactable");
          if (!isEarly || performance.now() > endMs) throw error;
        }
        await delay(LOOK_MS);
      }
    },
    // Keys sent to an element do not reach into a shadow root.
    type: async (keys) => void await send("POST", "/actions", { actions: [{
      type: "key", id: "keys",
      actions: [...keys].flatMap((value) => [{ type: "keyDown", value }, { type: "keyUp", value }]),
    }] }),
    picture: async () => Buffer.from(await send("GET", "/screenshot") as string, "base64"),
    close: async () => {
      await send("DELETE", "").catch(() => undefined);
      await endOf(driver);
      await endOf(screen);
    },
  };
}
