// The page of a web call: shows what call.js tells, in words and with the keyboard.
import { CallError, startCall } from "./call.js";

const element = (id) => document.getElementById(id);
const [start, end, mute, keys, keypad, state, log, notice, meter] =
  ["start", "end", "mute", "keys", "keypad", "state", "log", "notice", "orb"].map(element);
const assistant = location.pathname.split("/").filter(Boolean).at(-1);

const STATES = {
  idle: "Ready when you are",
  connecting: "Connecting…",
  listening: "Listening",
  thinking: "Thinking…",
  speaking: "Speaking",
  over: "The call has ended",
};
const REASONS = {
  balance: "The call ended because the account's balance is used up.",
  speech_failed: "The call ended because speech does not work at the moment.",
  server_restarted: "The call ended because the server was restarted.",
  silence: "The call ended because nobody spoke.",
  no_first_words: "The call ended because nobody spoke.",
  max_duration: "The call reached its longest duration.",
};

let call = null;
let isMuted = false;
/** The line that is still being spoken, by speaker. */
const open = new Map();

function show(name) {
  document.body.dataset.state = name;
  state.textContent = STATES[name] ?? name;
  const isLive = name !== "idle" && name !== "over";
  start.hidden = isLive;
  end.hidden = mute.hidden = keys.hidden = !isLive;
  if (!isLive) keypad.hidden = true;
  start.textContent = name === "over" ? "Call again" : "Start the call";
}

function tell(text) {
  notice.textContent = text;
  notice.hidden = text === "";
}

function line(role, text, isFinal) {
  let entry = open.get(role);
  if (!entry) {
    entry = document.createElement("li");
    entry.className = role;
    const name = document.createElement("span");
    name.className = "who";
    name.textContent = role === "customer" ? "You" : "Assistant";
    entry.append(name, document.createElement("p"));
    log.append(entry);
    open.set(role, entry);
  }
  entry.lastChild.textContent = text;
  entry.classList.toggle("partial", !isFinal);
  if (isFinal) open.delete(role);
  log.scrollTop = log.scrollHeight;
}

const handlers = {
  message(message) {
    switch (message.type) {
      case "ready":
        return show("listening");
      case "state":
        return show(message.state);
      case "transcript":
        return line(message.role, message.text, message.final);
      case "error":
        return tell(message.error);
      case "end":
        return tell(REASONS[message.reason] ?? "");
    }
  },
  closed(wasOver) {
    call = null;
    for (const entry of open.values()) entry.classList.remove("partial");
    open.clear();
    if (!wasOver) tell("The connection was lost.");
    show("over");
    start.focus();
  },
};

start.addEventListener("click", async () => {
  tell("");
  log.replaceChildren();
  show("connecting");
  end.focus();
  try {
    call = await startCall(assistant, handlers);
  } catch (error) {
    show("idle");
    tell(error instanceof CallError ? error.message : "The call could not be started.");
    start.focus();
  }
});
end.addEventListener("click", () => call?.hangUp());
mute.addEventListener("click", () => {
  isMuted = !isMuted;
  call?.mute(isMuted);
  mute.setAttribute("aria-pressed", String(isMuted));
  mute.textContent = isMuted ? "Unmute" : "Mute";
});
keys.addEventListener("click", () => {
  keypad.hidden = !keypad.hidden;
  keys.setAttribute("aria-expanded", String(!keypad.hidden));
});
keypad.addEventListener("click", ({ target }) => {
  if (target instanceof HTMLButtonElement) call?.press(target.value);
});
meter.addEventListener("click", () => (start.hidden ? null : start.click()));
show("idle");
