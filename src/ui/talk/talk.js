// The page of a web call: shows in words what call.js reports, and can be used by keyboard. Its
// English texts are looked up among the chat widget's in the visitor's language
// (data/widget-texts).
import { hearingOf, HEARINGS, PROBLEMS, REASONS, startCall, STATES } from "./call.js";

const element = (id) => document.getElementById(id);
const [
  start, type, end, mute, keys, keypad, state, log, lines, notice, hears, typing, words, path,
] = [
  "start", "type", "end", "mute", "keys", "keypad", "state", "log", "lines", "notice", "hearing",
  "typing", "words", "path",
].map(element);
const assistant = location.pathname.split("/").filter(Boolean).at(-1);

/** How the sound travels, for people who try the page out. */
const PATHS = { socket: "Sound by WebSocket", peer: "Sound by WebRTC" };
/** Who says a line; anybody else is the assistant. */
const SPEAKERS = { customer: "You", operator: "A colleague" };
const WORDS = { ...STATES, idle: "Ready when you are", over: "The call has ended" };

/** With these problems callers can still type, and hear the answers. */
const UNHEARD = [PROBLEMS.no_microphone, PROBLEMS.microphone_taken, PROBLEMS.microphone_refused];

/** The page's other texts, by their names. */
const OWN = {
  talk_title: "Talk to the assistant", talk_idle: WORDS.idle, talk_over: WORDS.over,
  talk_start: "Start the call", talk_again: "Call again", talk_instead: "Type instead", talk_keypad: "Keypad",
  talk_star: "Star", talk_hash: "Hash", talk_log: "Transcript", talk_what: "What you say",
  talk_type: "Type what you say", talk_say: "Say it", talk_socket: PATHS.socket,
  talk_peer: PATHS.peer, talk_colleague: SPEAKERS.operator, talk_microphone: HEARINGS.server,
  talk_typed: HEARINGS.typed, call_browser_hears: HEARINGS.browser, you: SPEAKERS.customer,
  talk_none: "This assistant takes no calls here.", assistant: "Assistant", mute: "Mute", hang_up: "Hang up",
};
const NAMES = new Map([
  ...[STATES, REASONS, PROBLEMS].flatMap((table) =>
    Object.entries(table).map(([name, text]) => [text, `call_${name}`])),
  ...Object.entries(OWN).map(([name, text]) => [text, name]),
]);
/** Empty: English. */
let texts = {};
const said = (text) => texts[NAMES.get(text.trim())] ?? text;

let call = null;
/** Who recognizes the caller's speech, and in which language. */
let hearing = { hearing: "server" };
let isTyped = false;
let isMuted = false;
/** The line that is still being spoken, by speaker. */
const open = new Map();
/** Nearer than this to the end counts as the end. */
const END_PX = 60;
let isAtEnd = true;

function show(name) {
  document.body.dataset.state = name;
  const isLive = name !== "idle" && name !== "over";
  const what = said(WORDS[name] ?? name);
  state.textContent = isLive && isMuted
    ? (texts.call_muted ?? "{state} (you are muted)").replace("{state}", what) : what;
  start.hidden = isLive;
  end.hidden = keys.hidden = !isLive;
  mute.hidden = !isLive || isTyped;
  if (isLive) type.hidden = true;
  else typing.hidden = true;
  keys.disabled = name === "connecting";
  if (!isLive) showKeypad(false);
  start.textContent = said(name === "over" ? OWN.talk_again : OWN.talk_start);
}

function showPath(name) {
  path.textContent = said(PATHS[name] ?? "");
  path.hidden = path.textContent === "";
}

function showKeypad(on) {
  keypad.hidden = !on;
  keys.setAttribute("aria-expanded", String(on));
  if (on) keypad.scrollIntoView({ block: "nearest" });
}

function setMuted(on) {
  isMuted = on;
  call?.mute(on);
  mute.setAttribute("aria-pressed", String(on));
  show(document.body.dataset.state);
}

function say(text) {
  notice.textContent = said(text);
  notice.hidden = text === "";
}

function line(role, text, isFinal) {
  let entry = open.get(role);
  if (!entry) {
    entry = document.createElement("li");
    entry.className = role;
    const name = document.createElement("span");
    name.className = "who";
    name.textContent = said(SPEAKERS[role] ?? OWN.assistant);
    const spoken = document.createElement("p");
    spoken.dir = "auto";
    entry.append(name, spoken);
    lines.append(entry);
    open.set(role, entry);
  }
  entry.lastChild.textContent = text;
  entry.classList.toggle("partial", !isFinal);
  if (isFinal) open.delete(role);
  showNewest();
}

/** For a new line, and when the keypad takes room from the log; not for readers who scrolled up. */
function showNewest() {
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

/** There is no call to start. */
function refuse(why) {
  say(why);
  start.hidden = true;
  state.textContent = hears.textContent = "";
}

/** Translates what the page says so far into the visitor's language. */
function translate(settings) {
  texts = settings.texts ?? {};
  document.documentElement.lang = settings.texts_language ?? "en";
  document.documentElement.dir = texts.direction ?? "ltr";
  for (const part of document.querySelectorAll("h1, button, section, input, [role=group], #hearing")) {
    if (part.childElementCount === 0) part.textContent = said(part.textContent);
    for (const name of ["aria-label", "placeholder"]) {
      const text = part.getAttribute(name);
      if (text !== null) part.setAttribute(name, said(text));
    }
  }
  show(document.body.dataset.state);
}

const handlers = {
  message(message) {
    switch (message.type) {
      case "ready":
        showPath("socket");
        return show("listening");
      case "path":
        return showPath(message.path);
      case "state":
        return show(message.state);
      case "transcript":
        return line(message.role, message.text, message.final);
      case "error":
        return say(message.error);
      case "end":
        return say(REASONS[message.reason] ?? "");
    }
  },
  notice: say,
  typed() {
    typing.hidden = false;
    words.focus();
  },
  closed(problem) {
    call = null;
    showPath("");
    for (const entry of open.values()) entry.classList.remove("partial");
    open.clear();
    if (problem !== "") say(problem);
    show(document.body.dataset.state === "connecting" ? "idle" : "over");
    type.hidden = !UNHEARD.includes(problem);
    (type.hidden ? start : type).focus();
  },
};

function begin(how) {
  isTyped = how.hearing === "typed";
  say("");
  lines.replaceChildren();
  isAtEnd = true;
  show("connecting");
  setMuted(false);
  end.focus();
  call = startCall(assistant, handlers, how);
}

start.addEventListener("click", () => begin(hearing));
type.addEventListener("click", () => begin({ ...hearing, hearing: "typed" }));
end.addEventListener("click", () => call?.hangUp());
// Holding Enter on one button does not press the one that takes its place.
document.addEventListener("keydown", (event) => {
  if (event.repeat && event.key === "Enter") event.preventDefault();
});
mute.addEventListener("click", () => setMuted(!isMuted));
keys.addEventListener("click", () => showKeypad(keypad.hidden));
keypad.addEventListener("click", ({ target }) => {
  if (target instanceof HTMLButtonElement) call?.press(target.value);
});
typing.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = words.value.trim();
  if (text !== "") call?.say(text);
  words.value = "";
});
// Without an answer the call itself will say what is wrong.
fetch(`/api/widget/${assistant}?page=${navigator.language}`).then(async (response) => {
  const settings = await response.json();
  if ([403, 404].includes(response.status)) refuse(settings.error);
  if (!response.ok) return;
  translate(settings);
  if (call) return;
  if (!settings.calls) return refuse(OWN.talk_none);
  hearing = { hearing: hearingOf(settings), language: settings.language };
  hears.textContent = said(HEARINGS[hearing.hearing]);
}).catch(() => undefined);
log.addEventListener("scroll", () => {
  isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < END_PX;
});
new ResizeObserver(showNewest).observe(log);
show("idle");
