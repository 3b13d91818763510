// What a page shows of the chat before somebody opens it: the launcher with its badge. The panel is
// a bundle of its own (chat.ts) that is loaded when it is first wanted, so that a page waits for
// little. Draws what it receives and passes on what people do.
import type { openPanel, Panel } from "./chat.ts";
import { palette } from "./colour.ts";
import { icon, ICONS, make } from "./elements.ts";
import { createGreeting } from "./greeting.ts";
import { readPosition } from "./options.ts";
import { stack } from "./stack.ts";
import type { Talk } from "./store.ts";
import type { ShellParts, Shown, View } from "./view.ts";

const DARK = "(prefers-color-scheme: dark)";

/**
 * Events that stop at the root: the page must not take typing for its shortcuts, scroll instead of
 * the log, take the focus back to a dialog of its own, or forbid copying and pasting.
 */
const OWN = [
  "keydown", "keypress", "keyup", "wheel", "touchmove", "focusin", "copy", "cut", "paste",
  "contextmenu", "selectstart",
];

function createLauncher({ options, actions, say }: ShellParts) {
  const launcher = make("button", { class: "launcher", type: "button", "aria-haspopup": "dialog" });
  launcher.addEventListener("click", actions.open);
  return {
    launcher,
    fill: ({ talk, call: { isLive } }: Shown): void => {
      const { launcherText: text, launcherSubtext: more } = options;
      launcher.replaceChildren(icon(isLive ? ICONS.call : ICONS.chat));
      launcher.classList.toggle("calling", isLive);
      launcher.ariaLabel = isLive ? say("back_to_call")
        : text ? null : say("chat_with", { name: talk.settings?.name ?? "" });
      if (text === undefined || isLive) return;
      launcher.append(make("span", { dir: "auto" }, text, ...(more ? [make("small", {}, more)] : [])));
    },
    count: (unread: number): void => {
      launcher.classList.toggle("unread", unread > 0);
      launcher.dataset.unread = String(unread);
      launcher.ariaDescription = unread > 0 ? say("unread", { count: unread }) : null;
    },
  };
}

function createRoot(...children: HTMLElement[]): HTMLElement {
  const root = make("div", { class: "root", hidden: "", popover: "manual" }, ...children);
  for (const type of OWN) {
    root.addEventListener(type, (event) => event.stopPropagation(), { passive: true });
  }
  return root;
}

/**
 * If a page transforms or filters its body, fixed elements follow the body instead of the window,
 * except in the browser's top layer. The root goes there only then, because it would also cover
 * what a page shows over the widget.
 */
function raise(root: HTMLElement): void {
  if (!root.isConnected || !root.showPopover || root.matches(":popover-open")) return;
  const places = (): string =>
    JSON.stringify([...root.children].map((part) => part.getBoundingClientRect()));
  const before = places();
  root.showPopover?.();
  if (places() === before) root.hidePopover?.();
}

/** A page may begin to do so at any time: a part that goes out of sight raises the root. */
function createWatch(root: HTMLElement, signal: AbortSignal): () => void {
  const sight = new IntersectionObserver((parts) => {
    const isLost = parts.some(({ isIntersecting, boundingClientRect: place }) =>
      !isIntersecting && place.width > 0);
    if (isLost) raise(root);
  });
  signal.addEventListener("abort", () => sight.disconnect());
  return () => {
    for (const part of root.children) sight.observe(part);
  };
}

/** Applies the look that the assistant's settings and the page's attributes decide. */
function dress(root: HTMLElement, { options, say }: ShellParts, { talk }: Shown): void {
  const { widget_settings: widget = {}, texts_language: language = "" } = talk.settings ?? {};
  const theme = options.theme ?? widget.theme;
  const isDark = theme === "dark" || (theme !== "light" && matchMedia(DARK).matches);
  const colours = palette(options.color ?? widget.color ?? "", isDark);
  for (const [property, value] of Object.entries(colours)) root.style.setProperty(property, value);
  root.style.colorScheme = isDark ? "dark" : "light";
  const { x, y } = readPosition(options.position, widget.position);
  Object.assign(root.dataset, { x, y });
  root.hidden = false;
  stack();
  root.lang = language;
  root.dir = say("direction") === "rtl"
    ? "rtl" : getComputedStyle(document.documentElement).direction;
  raise(root);
}

/** Loads the panel's bundle; a failed load is tried again under another address. */
function createLoader(origin: string) {
  let tries = 0;
  let loading: Promise<typeof openPanel> | null = null;
  return (): Promise<typeof openPanel> => {
    const address = `${origin}/widget-chat.js${tries > 0 ? `?try=${tries}` : ""}`;
    loading ??= import(address).then((chat: { openPanel: typeof openPanel }) => chat.openPanel);
    loading.catch(() => {
      tries += 1;
      loading = null;
    });
    return loading;
  };
}

export function createShell(parts: ShellParts): View {
  const { shadow, options, actions, say } = parts;
  const { launcher, fill, count } = createLauncher(parts);
  // The root is hidden until the settings say how it looks (`dress`).
  const greeting = createGreeting({
    name: `assistant-chat greeted ${options.origin} ${options.assistant}`, say,
    open: actions.open, dismissed: () => launcher.focus(),
  });
  const root = createRoot(launcher, greeting.element);
  shadow.append(root);
  const keepInSight = createWatch(root, parts.signal);
  keepInSight();
  const load = createLoader(options.origin);
  for (const sign of ["pointerenter", "focus", "touchstart"]) {
    launcher.addEventListener(sign, () => void load().catch(() => undefined), { passive: true });
  }
  let panel: Panel | null = null;
  let isLoading = false;
  let wantsFocus = false;
  let bar: HTMLElement | null = null;
  let dressed: Talk["settings"] = null;
  let last: Shown | null = null;
  matchMedia(DARK).addEventListener("change", () => {
    if (last) dress(root, parts, last);
  }, { signal: parts.signal });

  const place = (open: typeof openPanel): void => {
    panel ??= open({ ...parts, root });
    keepInSight();
    if (bar) panel.placeCall(bar);
    if (last) draw(last);
    if (wantsFocus) panel.focus();
  };
  const bring = (): void => {
    isLoading = true;
    load().then(place, () => {
      actions.close();
      launcher.ariaDescription = launcher.title = say("not_started");
    }).finally(() => {
      isLoading = false;
    });
  };
  const draw = (shown: Shown): void => {
    const { talk, call } = shown;
    const wasOpen = launcher.hidden;
    if (talk.settings !== dressed || call.isLive !== last?.call.isLive) {
      dress(root, parts, shown);
      fill(shown);
    }
    dressed = talk.settings;
    last = { ...shown };
    count(talk.unread);
    greeting.draw(shown);
    launcher.ariaBusy = String(talk.isOpen && panel === null);
    launcher.hidden = talk.isOpen && panel !== null;
    if (panel) panel.draw(shown);
    else if (talk.isOpen && !isLoading) bring();
    if (launcher.hidden !== wasOpen) raise(root);
  };
  return {
    draw,
    placeCall: (next) => {
      bar = next;
      panel?.placeCall(next);
    },
    focus: () => {
      wantsFocus = last?.talk.isOpen === true;
      if (!wantsFocus) launcher.focus();
      else panel?.focus();
    },
  };
}
