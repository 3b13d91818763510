// The greeting beside the launcher: shown by itself after a while, on the pages the assistant
// names, and not again to the same visitor for as many days as it says.
import { icon, ICONS, make } from "./elements.ts";
import type { Settings } from "./api.ts";
import { isTaken } from "./stack.ts";
import type { Shown } from "./view.ts";
import type { Say } from "./texts.ts";

type Greeting = NonNullable<Settings["widget_settings"]["greeting"]>;

const DAY_MS = 86_400_000;
/** Defaults for what the settings do not say. */
const AFTER_S = 10;
const AGAIN_DAYS = 7;
/** How often it is checked whether the greeting is due. */
const TURN_MS = 1000;

/** `/shop/*` is every page below it. */
export function isOn(pages: string[] | undefined, path: string): boolean {
  return !pages?.length || pages.some((page) => page.endsWith("*")
    ? path.startsWith(page.slice(0, -1)) : path === page);
}

/** Pages may be forbidden to store anything; then each visit is the first. */
function lastShown(name: string): number {
  try {
    return Number(localStorage.getItem(name) ?? 0);
  } catch {
    return 0;
  }
}

function note(name: string): void {
  try {
    localStorage.setItem(name, String(Date.now()));
  } catch {
    // It may come again with the next page.
    return;
  }
}

interface Parts {
  /** The key in localStorage that holds when it was last shown. */
  name: string;
  say: Say;
  open(): void;
  /** It was dismissed by a button that had the focus. */
  dismissed(): void;
}

export function createGreeting({ name, say, open, dismissed }: Parts) {
  const text = make("button", { type: "button", class: "words", dir: "auto" });
  const dismiss = make("button", { type: "button" }, icon(ICONS.close));
  const element = make("div", { class: "greeting", hidden: "", role: "status" }, text, dismiss);
  let isPlanned = false;
  let isWanted = (): boolean => false;
  const hide = (): void => {
    element.hidden = true;
  };
  dismiss.addEventListener("click", () => {
    const hadFocus = dismiss.matches(":focus");
    hide();
    if (hadFocus) dismissed();
  });
  text.addEventListener("click", () => {
    hide();
    open();
  });
  const plan = (
    { after_seconds: after = AFTER_S, again_days: days = AGAIN_DAYS, pages }: Greeting,
  ): void => {
    isPlanned = true;
    let [path, cameAt] = [location.pathname, Date.now()];
    const look = (): void => {
      if (!isWanted() || !element.isConnected) return;
      // Single-page applications change the address without loading a page.
      if (path !== location.pathname) [path, cameAt] = [location.pathname, Date.now()];
      const isDue = isOn(pages, path) && Date.now() - cameAt >= after * 1000;
      if (!isDue || isTaken()) return void setTimeout(look, TURN_MS);
      element.hidden = false;
      note(name);
    };
    // Checked after this draw, once it is known which parts of the widget are shown.
    if (Date.now() - lastShown(name) > days * DAY_MS) setTimeout(look);
  };
  return {
    element,
    draw: ({ talk }: Shown): void => {
      const greeting = talk.settings?.widget_settings.greeting;
      isWanted = () => !talk.isOpen && !talk.items.some(({ role }) => role === "user");
      if (!isWanted()) hide();
      if (!greeting) return;
      text.textContent = greeting.text;
      dismiss.ariaLabel = say("dismiss");
      if (!isPlanned) plan(greeting);
    },
  };
}
