// Debian's unmodified Firefox, driven over WebDriver BiDi by Playwright's support for it. With
// TEST_BROWSER=firefox any test of a page runs in it; tests fail there that inspect WebSockets or
// bodies of requests, or use Chromium's debugger, all of which BiDi lacks.
import { existsSync } from "node:fs";
import { firefox, type Browser } from "playwright-core";

const EXECUTABLE = ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find((path) => existsSync(path));

/** Why tests cannot run in Firefox here; false: they can. */
export const noFirefox = (): string | false =>
  EXECUTABLE === undefined ? "Firefox is not installed" : false;

interface Session {
  send(this: Session, method: string, parameters: object): Promise<object>;
}
interface Inside {
  _connection: { toImpl(browser: Browser): { _browserSession: Session } };
}

/** Its microphone hums, or is refused. */
export async function openFirefox(
  microphone: "hums" | "refused", colours: "light" | "dark" = "light",
): Promise<Browser> {
  const browser = await firefox.launch({
    channel: "moz-firefox",
    executablePath: EXECUTABLE ?? "",
    firefoxUserPrefs: {
      "media.navigator.streams.fake": true,
      ...(microphone === "hums"
        ? { "media.navigator.permission.disabled": true } : { "permissions.default.microphone": 2 }),
      "layout.css.prefers-color-scheme.content-override": colours === "dark" ? 0 : 1,
    },
  });
  // This version does not know a command that Playwright sends for every page.
  const session = (browser as unknown as Inside)._connection.toImpl(browser)._browserSession;
  const prototype = Object.getPrototypeOf(session) as Session;
  const { send } = prototype;
  prototype.send = function (method, parameters) {
    return method === "emulation.setMediaFeaturesOverride"
      ? Promise.resolve({}) : send.call(this, method, parameters);
  };
  return browser;
}
