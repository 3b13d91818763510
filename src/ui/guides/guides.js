// Fills in the examples of a guide, in the browser only: the server's address, the key of a reader
// who is signed in with one, one of their assistants; and shows one language at a time.
const KEY = "parley-api-key";
const LANGUAGE = "parley-docs-language";
const ADDRESS = "https://parley.example.com";
const NO_KEY = "YOUR_API_KEY";
const NO_ASSISTANT = "YOUR_ASSISTANT";

/** The stored value; null also where the browser stores nothing, as when cookies are blocked. */
function kept(place, name) {
  try {
    return globalThis[place].getItem(name);
  } catch {
    return null;
  }
}

const theme = kept("localStorage", "parley-theme");
if (theme) document.documentElement.dataset.theme = theme;

const key = kept("sessionStorage", KEY) ?? kept("localStorage", KEY);
const headers = key === null ? {} : { Authorization: `Bearer ${key}` };
const filling = { key: NO_KEY, assistant: NO_ASSISTANT };
/** Each example as it was written, by the element that shows it. */
const written = new Map();

function fill() {
  for (const [code, text] of written) {
    code.textContent = text.replaceAll(ADDRESS, location.origin)
      .replaceAll(NO_KEY, filling.key).replaceAll(NO_ASSISTANT, filling.assistant);
  }
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}

/** Shows each group's example in this language, or else its first. */
function choose(language) {
  for (const group of document.querySelectorAll(".examples")) {
    const examples = [...group.querySelectorAll(".example")];
    const chosen = examples.find((one) => one.dataset.language === language) ?? examples[0];
    for (const one of examples) one.hidden = one !== chosen;
    for (const button of group.querySelectorAll(".languages button")) {
      button.setAttribute("aria-pressed", String(button.textContent === chosen.dataset.language));
    }
  }
}

function setUp(group) {
  const bar = element("div", "", { class: "languages", role: "group", "aria-label": "Language" });
  const examples = [...group.querySelectorAll(".example")];
  for (const example of examples) {
    const { language } = example.dataset;
    written.set(example.querySelector("code"), example.querySelector("code").textContent);
    example.querySelector("h3").hidden = true;
    const button = element("button", language, { type: "button", "aria-pressed": "false" });
    button.addEventListener("click", () => {
      choose(language);
      localStorage.setItem(LANGUAGE, language);
    });
    bar.append(button);
  }
  // Browsers offer the clipboard to secure origins only.
  if (navigator.clipboard) {
    const copy = element("button", "Copy", { type: "button", class: "copy" });
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(
        group.querySelector(".example:not([hidden]) code").textContent);
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 2000);
    });
    bar.append(copy);
  }
  group.prepend(bar);
}

/** `parts`: texts, and [text, address] for links. */
function say(...parts) {
  const nodes = parts.map((part) =>
    (typeof part === "string" ? part : element("a", part[0], { href: part[1] })));
  document.getElementById("filled").replaceChildren(...nodes);
}

function offerAssistants(assistants) {
  const [first] = assistants;
  if (![...written.values()].some((text) => text.includes(NO_ASSISTANT))) return;
  if (!first) return void document.getElementById("filled")
    .append(" You have no assistant yet: make one first.");
  filling.assistant = first.uuid;
  const select = element("select", "");
  select.append(...assistants.map(({ uuid, name }) => element("option", name, { value: uuid })));
  select.addEventListener("change", () => {
    filling.assistant = select.value;
    fill();
  });
  const label = element("label", "Assistant in the examples ");
  label.append(select);
  document.getElementById("filled").after(label);
}

async function fillForWhomeverIsSignedIn() {
  const answer = await fetch("/api/user/assistants/get?per_page=100", { headers });
  if (answer.ok) {
    if (key === null) {
      say("You are signed in without a key. Make one under ", ["API keys", "/#/keys"],
        ` and put it where the examples say ${NO_KEY}.`);
    } else {
      filling.key = key;
      say("The examples have the key you are signed in with. Keep it to yourself.");
    }
    offerAssistants((await answer.json()).data);
  } else if (key !== null && answer.status === 401) {
    say("The key you signed in with is not valid any more. ", ["Sign in again", "/"], ".");
  } else {
    say(["Sign in", "/"], " with an API key, and the examples have it filled in.");
  }
  fill();
}

document.addEventListener("DOMContentLoaded", () => {
  for (const group of document.querySelectorAll(".examples")) setUp(group);
  choose(kept("localStorage", LANGUAGE));
  fill();
  void fillForWhomeverIsSignedIn();
});
