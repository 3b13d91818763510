// A call inside the chat: state, mute and hanging up, in place of the message box. A bundle of its
// own that calling.ts loads when somebody calls, so that nobody else waits for it.
/// <reference lib="dom" />
import {
  hearingOf, PROBLEMS, REASONS, startCall, STATES, type CallMessage, type Cause,
} from "#ui/talk/call.js";
import type { Settings } from "./api.ts";
import { dress } from "./dress.ts";
import { icon, make } from "./elements.ts";
import type { Speaker } from "./store.ts";
import type { Say } from "./texts.ts";

interface CallOptions {
  shadow: ShadowRoot;
  say: Say;
  context: AudioContext;
  origin: string;
  assistant: string;
  settings: Settings | null;
  conversation(): Promise<string>;
  heard(by: Speaker, text: string, isFinal: boolean): void;
  /** Called once; the problem is empty when the call ended as it should. */
  over(problem: string, cause: Cause): void;
}

/** Maps the server's names for speakers to the log's; all others are the assistant. */
const SPEAKERS: Record<string, Speaker> = { customer: "user", operator: "colleague" };

const MICROPHONE = "M12 3a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3zM6 11a6 6 0 0 0 12 0M12 17v4";
const STRUCK = `${MICROPHONE}M4 4l16 16`;
const HANG_UP = "M3 14v-2c5-4 13-4 18 0v2l-2 2-3.500-1.500V12a12 12 0 0 0-7 0v2.500L5 16z";

const STYLES = `
.in-call {
  display: flex; flex-wrap: wrap; align-items: center; gap: 8px; padding: 10px 16px;
  border-top: 1px solid var(--line); padding-bottom: max(10px, env(safe-area-inset-bottom));
}
.in-call p { margin: 0; }
.in-call .state { flex: 1; min-width: 0; display: flex; align-items: center; gap: 10px; font-weight: 600; }
.in-call .trouble { flex-basis: 100%; color: var(--danger); font-size: 0.9375em; }
.in-call .dot { flex: none; width: 12px; height: 12px; border-radius: 50%; background: var(--strong); }
.in-call button { border: 1px solid var(--edge); font-weight: 600; }
.in-call [aria-pressed="true"] { background: var(--ink); color: var(--card); }
.in-call .end { border-color: #c62f37; background: #c62f37; color: #fff; }
@media (prefers-reduced-motion: no-preference) {
  .in-call:not([data-state="listening"]) .dot { animation: breathe 0.9s ease-in-out infinite alternate; }
}
@media (forced-colors: active) { .in-call .dot { background: CanvasText; } }
`;

/** Known problems in the visitor's language; other texts of the server stay as they are. */
function translated(text: string, say: Say): string {
  const key = Object.keys(PROBLEMS).find((name) => PROBLEMS[name] === text);
  return key === undefined ? text : say(`call_${key}`);
}

function createBar(say: Say) {
  const text = make("span");
  const trouble = make("p", { class: "trouble", role: "alert", hidden: "" });
  const mute = make("button", { type: "button", "aria-pressed": "false", "aria-label": say("mute") });
  const end = make("button", { type: "button", class: "end", "aria-label": say("hang_up") }, icon(HANG_UP));
  const element = make("div", { class: "in-call", role: "group", "aria-label": say("call_bar") }, trouble,
    make("p", { class: "state", role: "status" }, make("span", { class: "dot" }), text), mute, end);
  let state = "connecting";
  let isMuted = false;
  const draw = (): void => {
    element.dataset.state = state;
    const words = STATES[state] === undefined ? state : say(`call_${state}`);
    text.textContent = isMuted ? say("call_muted", { state: words }) : words;
    mute.ariaPressed = String(isMuted);
    mute.replaceChildren(icon(isMuted ? STRUCK : MICROPHONE));
  };
  // Enter that is still held down from another button must not press the one that replaces it.
  element.addEventListener("keydown", (event) => {
    if (event.repeat && event.key === "Enter") event.preventDefault();
  });
  draw();
  return {
    element, mute, end,
    show: (next: string): void => {
      state = next;
      draw();
    },
    toggle: (): boolean => {
      isMuted = !isMuted;
      draw();
      return isMuted;
    },
    trouble: (problem: string): void => {
      trouble.textContent = translated(problem, say);
      trouble.hidden = problem === "";
    },
  };
}

/** Starts the call; the caller shows the returned element until `over`. */
export function openCall(options: CallOptions): HTMLElement {
  const { shadow, say, assistant, context, origin, conversation, settings } = options;
  const bar = createBar(say);
  const undress = dress(shadow, STYLES);
  let reason = "";
  const receive = (message: CallMessage): void => {
    switch (message.type) {
      case "ready":
        if (message.hearing === "browser") bar.trouble(say("call_browser_hears"));
        return bar.show("listening");
      case "state":
        return bar.show(message.state ?? "");
      case "transcript":
        return options.heard(
          SPEAKERS[message.role ?? ""] ?? "assistant", message.text ?? "", message.final === true);
      case "error":
        return bar.trouble(message.error ?? "");
      case "end":
        reason = REASONS[message.reason ?? ""] ? say(`call_${message.reason ?? ""}`) : "";
    }
  };
  const call = startCall(assistant, {
    message: receive,
    notice: bar.trouble,
    typed: () => {
      // The chat itself is there to type in.
      reason = say("call_write");
      call.hangUp();
    },
    closed: (problem, cause) => {
      undress();
      options.over(translated(problem, say) || reason, cause);
    },
  }, {
    context, origin, conversation,
    hearing: hearingOf(settings ?? {}), language: settings?.language ?? "en",
  });
  bar.mute.addEventListener("click", () => call.mute(bar.toggle()));
  bar.end.addEventListener("click", call.hangUp);
  return bar.element;
}
