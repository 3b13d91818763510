// The dashboard in other languages: catalogs that say all of it, a language added by a file, and
// pages in a made-up language, in which whatever is not translatable stands out.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { keysOfDashboard, languages, problemsOf, readCatalog } from "#scripts/texts.ts";
import { translatable } from "#ui/translatable.ts";
import { TEMPLATES } from "#features/templates/gallery.ts";
import { dataRoot } from "#support/databases/data-folder.ts";
import { newKnowledgebase, uploadFile, whenRead } from "#support/documents/knowledge.ts";
import { noBrowser, openBrowser } from "#support/pages/browser.ts";
import { cutHeadings } from "#support/pages/dashboard-page.ts";
import { onlyProof } from "#support/proof.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = noBrowser();
const timeout = 240_000;
const keys = keysOfDashboard();

/** Letters that no text of the sources has. */
const wide = (text: string): string => text.split(/(\{\w+\})/).map((part, index) =>
  (index % 2 === 1 ? part : part.replaceAll(/[A-Za-z]/g, (letter) =>
    String.fromCharCode(letter.charCodeAt(0) + 0xFEE0)))).join("");

/** Japanese dates and names of countries have none of our letters. */
const PSEUDO = "ja";
const dataDir = mkdtempSync(join(dataRoot(), "parley-languages-"));
mkdirSync(join(dataDir, "dashboard-texts"));
const put = (language: string, texts: object): void =>
  writeFileSync(join(dataDir, "dashboard-texts", `${language}.json`), JSON.stringify(texts));
put(PSEUDO, Object.fromEntries([...keys].map(([key, { one }]) =>
  [key, one === null ? wide(key) : { other: wide(key) }])));
put("de", { Inbox: "Eingang <b>hier</b>", "Said by nobody": "Von niemandem gesagt" });

const model = await startScriptedModel();
const server = await startTestServer({
  dataDir,
  env: {
    PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
    PARLEY_RATE_KEY_PER_MINUTE: "100000", PARLEY_RATE_KEY_BURST: "100000",
  },
});
const browser = skip ? null : await openBrowser("refused");
after(async () => {
  await browser?.close();
  await server.close();
  await model.close();
  rmSync(dataDir, { recursive: true, force: true });
});

for (const language of languages()) {
  test(`[DB440] the catalog "${language}" is complete and has nothing extra (npm run texts)`, () => {
    assert.deepEqual(problemsOf(language, readCatalog(language), keys), {
      missing: [], stale: [], wrong: [],
    });
  });
}

test("[DB1187] a language without a catalog is answered with the languages and how to begin", () => {
  for (const args of [["missing", "xx"], ["missing"], ["add", "xx", "new.json"]]) {
    const { status, stderr } = spawnSync(
      process.execPath, [join(import.meta.dirname, "../../../scripts/texts.ts"), ...args], { encoding: "utf8" });
    assert.deepEqual([status, stderr], [64,
      "There are texts in de, es, fr: for another language, begin with "
        + "data/dashboard-texts/CODE.json, a file of {}.\n"]);
  }
});

test("[DB441] texts are translated, and code stays as it is", () => {
  const { code, texts } = translatable(`
    const KINDS = { open: "Open", method: "GET" };
    const key = event.key === "Enter" ? "end" : null;
    export const Shown = ({ name, count }: Props) => (
      <p class="Badge" title={\`\${name} is here\`}>
        Hello <b>{name}</b>, you have {count} new ones.
        <Icon name="bell" />
        {count > 9 && <i>Many!</i>}
        <code>parley run</code>
      </p>
    );`, "x.tsx");
  assert.deepEqual([...texts.keys()].sort(), [
    "Hello {b}, you have {count} new ones.{icon}{count2}{code}", "Many!", "Open", "{name} is here",
  ]);
  for (const kept of [`"GET"`, `"Enter"`, `"end"`, `class="Badge"`, "<code>parley run</code>"]) {
    assert.ok(code.includes(kept), kept);
  }
});

test("[DB442] the language is the chosen one, else the browser's, else English; the server's own file can add texts", async () => {
  const textsFor = async (headers: Record<string, string>) => {
    const response = await fetch(`${server.url}/dashboard/texts.js`, { headers });
    assert.match(response.headers.get("vary") ?? "", /Accept-Language, Cookie/);
    const script = await response.text();
    return JSON.parse(script.slice(script.indexOf("{"), script.lastIndexOf("}") + 1)) as {
      language: string; languages: string[]; texts: Record<string, unknown>; command: string;
    };
  };
  const english = await textsFor({ "accept-language": "tlh, en;q=0.5, de;q=0.1" });
  assert.deepEqual(english, {
    language: "en", languages: ["de", "en", "es", "fr", PSEUDO], texts: {},
    command: "npm run -s parley --",
  });
  const german = await textsFor({ "accept-language": "de-AT,en;q=0.9" });
  assert.equal(german.language, "de");
  assert.equal(german.texts.Inbox, "Eingang <b>hier</b>");
  assert.equal(german.texts.Overview, readCatalog("de").Overview);
  const chosen = await textsFor({ "accept-language": "de", cookie: "a=b; parley-language=fr" });
  assert.equal(chosen.language, "fr");
  assert.equal((await textsFor({ cookie: "parley-language=../etc" })).language, "en");
});

test("[DB443] the language is chosen at sign-in and in the menu, and remembered; texts are never markup", { skip, timeout }, async () => {
  assert.ok(browser);
  const context = await browser.newContext({ locale: "en-GB" });
  const page = await context.newPage();
  await page.goto(server.url);
  await page.getByLabel("Language").selectOption({ label: "Deutsch" });
  await page.getByRole("button", { name: "Anmelden" }).waitFor();
  assert.equal(await page.evaluate("document.documentElement.lang"), "de");
  await page.evaluate(`sessionStorage.setItem("parley-api-key", ${JSON.stringify(server.key)})`);
  await page.reload();
  await page.getByRole("link", { name: "Eingang <b>hier</b>" }).waitFor();
  await page.getByTitle("Guthaben").getByText(/^\d+,\d\d\s\$$/).waitFor();
  await page.getByLabel("Sprache").selectOption({ label: "Français" });
  await page.getByRole("link", { name: "Vue d’ensemble" }).waitFor();
  await page.goto(`${server.url}/#/calls`);
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Appels" }).waitFor();
  await context.close();
});

/** What is shown and may be read aloud, but for what people type and what is to be copied. */
const SAID = `(() => {
  const said = [];
  const kept = "code, kbd, pre, samp, textarea, script, style, noscript, [lang]:not(html)";
  const isKept = (element) => element.closest(kept) !== null;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: parent, data } = walker.currentNode;
    // Options are invisible while their select is closed. Zones are named as they are chosen.
    const shown = parent.closest("select") ?? parent;
    const isZone = String(parent.value).replaceAll("_", " ") === data;
    if (!isKept(parent) && !isZone && shown.checkVisibility()) said.push(data);
  }
  for (const name of ["aria-label", "title", "placeholder", "alt"]) {
    for (const element of document.body.querySelectorAll("[" + name + "]")) {
      if (!isKept(element) && element.checkVisibility()) said.push(element.getAttribute(name));
    }
  }
  return [...said, document.title];
})()`;

/** Units, names, and what has the look of an identifier, an address or a zone. */
const SAME_EVERYWHERE = new RegExp(String.raw`\b(?:Parley|API|KB|MB|GB|UTC|USD|HTTP|ms|min)\b`
  + String.raw`|[0-9a-f-]{36,}|\b[0-9a-f]{8}\b|\S+[/@_]\S+|\b[A-Za-z][\w-]*\.[\w.-]+`, "g");

/** Everything the server answers: content, which nobody translates. */
function contentOf(page: Page): () => Promise<Set<string>> {
  const content = new Set<string>();
  const reading: Promise<void>[] = [];
  const keep = (value: unknown): void => {
    if (typeof value === "string") {
      content.add(value);
      // The log of who did what writes its codes so.
      content.add(value.replaceAll("_", " ").replace(".", ": "));
    } else if (typeof value === "object" && value !== null) {
      content.add(JSON.stringify(value));
      for (const [name, one] of Object.entries(value)) {
        content.add(name);
        keep(one);
      }
    }
  };
  page.on("response", (response) => {
    // Streams have no end.
    if (!response.headers()["content-type"]?.includes("json")) return;
    reading.push(response.json().then(keep, () => undefined));
  });
  return async () => {
    await Promise.all(reading);
    return content;
  };
}

function untranslated(said: string[], content: Set<string>): string[] {
  const known = [...content].filter((text) => text.length > 2)
    .sort((one, other) => other.length - one.length);
  return said.filter((text) => {
    if (!/[A-Za-z]{2}/.test(text)) return false;
    const rest = known.reduce((left, one) => (left.includes(one) ? left.replaceAll(one, "") : left),
      content.has(text) ? "" : text.replaceAll(SAME_EVERYWHERE, ""));
    return /[A-Za-z]{2}/.test(rest);
  });
}

test("[DB445] the talk page is in the visitor's language", { skip, timeout }, async () => {
  assert.ok(browser);
  const { uuid } = await newAssistant(server);
  const context = await browser.newContext({ locale: "de-AT" });
  const page = await context.newPage();
  await page.goto(`${server.url}/talk/${uuid}`);
  await page.getByRole("heading", { name: "Mit dem Assistenten sprechen" }).waitFor();
  await page.getByRole("button", { name: "Anruf starten" }).waitFor();
  await page.getByText("Bereit, wenn Sie es sind").waitFor();
  assert.equal(await page.evaluate("document.documentElement.lang"), "de");
  await context.close();
});

test("[DB1230] templates and the reason why a document failed are in the reader's language", { skip, timeout }, async () => {
  assert.ok(browser);
  const id = await newKnowledgebase(server);
  const document = await uploadFile(server, id, " ");
  await whenRead(server, document);
  const context = await browser.newContext({ locale: "de" });
  const page = await context.newPage();
  await page.goto(server.url);
  await page.evaluate(`sessionStorage.setItem("parley-api-key", ${JSON.stringify(server.key)})`);
  await page.goto(`${server.url}/#/knowledgebases/${id}`);
  await page.reload();
  await page.getByText("Im Dokument wurde kein Text gefunden.").waitFor();
  await page.goto(`${server.url}/#/templates`);
  await page.getByText("Liest Ihre Website, antwortet aus deren Seiten").waitFor();
  for (const { description } of Object.values(TEMPLATES)) assert.ok(keys.has(description));
  await context.close();
});

test("[DB666] no column heading is truncated, in any language", { skip: skip || onlyProof, timeout }, async () => {
  assert.ok(browser);
  const { key } = await server.newAccount();
  const { id, uuid } = await newAssistant(server, { type: "inbound", status: "active" }, key);
  await newConversation(server, uuid);
  const call = await server.call("POST", "/user/try_call", { body: { assistant_id: id }, key });
  assert.equal(call.status, 200, JSON.stringify(call.body));
  for (const locale of ["de", "es", "fr"]) {
    const context = await browser.newContext({ locale, viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    await page.goto(server.url);
    await page.evaluate(`sessionStorage.setItem("parley-api-key", ${JSON.stringify(key)})`);
    for (const path of ["/conversations", "/calls"]) {
      await page.goto(`${server.url}/#${path}`);
      await page.reload();
      await page.locator(".list tbody a").first().waitFor();
      assert.deepEqual(await cutHeadings(page), [], `${locale} ${path}`);
    }
    await context.close();
  }
});

const DIALOGS = [
  ["/assistants", "New assistant"], ["/calls", "New call"], ["/calls", "Try an assistant"],
  ["/knowledgebases", "New knowledgebase"], ["/knowledgebases/KB", "Rename"],
  ["/knowledgebases/KB", "Delete"], ["/knowledgebases/KB", "Add a website"],
  ["/knowledgebases/KB", "Write a text"], ["/knowledgebases/KB", "Add questions"],
  ["/numbers/sip-trunks", "New trunk"], ["/leads", "Import leads"], ["/leads", "New lead"],
  ["/webhooks", "New endpoint"], ["/keys", "New key"], ["/team", "Invite"],
] as const;

test("[DB686] a proxy's response instead of the server's is explained in the reader's language, by its status", { skip, timeout }, async () => {
  assert.ok(browser);
  const context = await browser.newContext({ locale: "de" });
  const page = await context.newPage();
  const away = { status: 502, contentType: "text/html", body: "<h1>502 Bad Gateway</h1>" };
  await page.goto(server.url);
  await page.getByLabel("API-Schlüssel").fill(server.key);
  const signIn = page.getByRole("button", { name: "Anmelden" });
  const said = page.getByRole("alert").getByText("Der Server hat mit 502 geantwortet.");
  await page.route("**/api/user/me", (route) => route.fulfill(away));
  await signIn.click();
  await said.waitFor();
  await page.getByRole("button", { name: /^Lieber E-Mail/ }).click();
  await said.waitFor({ state: "detached" });
  await page.route("**/api/auth/login", (route) => route.fulfill(away));
  await page.getByLabel("E-Mail").fill("ana@example.org");
  await page.getByLabel("Passwort").fill("secret enough");
  await signIn.click();
  await said.waitFor();
  await context.close();
});

test("[DB521] the server's errors, refusals and confirmations appear in the reader's language", { skip, timeout }, async () => {
  assert.ok(browser);
  const context = await browser.newContext({ locale: "de" });
  const page = await context.newPage();
  await page.goto(server.url);
  await page.evaluate(`sessionStorage.setItem("parley-api-key", ${JSON.stringify(server.key)})`);
  await page.goto(`${server.url}/#/leads/blocked`);
  await page.reload();
  const number = page.getByLabel("Telefonnummer");
  const minded = async (typed: string, words: string): Promise<void> => {
    await number.fill(typed);
    await page.getByRole("button", { name: "Sperren", exact: true }).click();
    await page.getByText(words).waitFor();
  };
  await minded(" ", "„Telefonnummer“ fehlt.");
  await minded("nobody", "Die Telefonnummer ist ungültig.");
  await minded("+4930123456", "Die Nummer ist gesperrt.");
  // A rule no catalog has the words for.
  await page.route("**/api/user/blocked-numbers", (route) => route.fulfill({
    status: 422, json: { message: "The moon is full.", errors: { phone_number: ["The moon is full."] } },
  }));
  await minded("+4930123457", "The moon is full.");
  const { id } = await newAssistant(server, { mode: "multimodal" });
  await page.goto(`${server.url}/#/assistants/${id}`);
  await page.getByRole("button", { name: "Alle Abschnitte öffnen" }).click();
  const longest = page.getByLabel(String(readCatalog("de")["Longest call (s)"]), { exact: true });
  await longest.fill("2000");
  await page.getByRole("button", { name: "Speichern", exact: true }).click();
  // At the field, and in the bar that saves.
  const minds = page.getByText(/^„.+“ darf nicht größer als 1200 sein\.$/);
  await minds.nth(1).waitFor();
  assert.equal(await minds.count(), 2);
  await page.getByText("Die Einstellung PARLEY_REALTIME_URL ist auf diesem Server nicht gesetzt.").first()
    .waitFor({ state: "attached" });
  // A warning of the server, followed by its reason.
  await page.getByText("Anrufe laufen als Kette aus Erkenner, Sprachmodell und Stimme. Die Einstellung"
    + " PARLEY_REALTIME_URL ist auf diesem Server nicht gesetzt.").first().waitFor({ state: "attached" });
  await context.close();
});

test("[DB777] a draft campaign, a rating, a document's type and an invitation's role are translated in lists", { skip, timeout }, async () => {
  assert.ok(browser);
  const { key } = await server.newAccount();
  const { id, uuid } = await newAssistant(server, { type: "outbound", status: "active" }, key);
  const talk = await newConversation(server, uuid);
  await server.call("POST", `/conversations/${talk}/satisfaction`, { body: { score: 4 } });
  await server.call("POST", "/user/campaigns", { body: { name: "1", assistant_id: id }, key });
  const made = await server.call("POST", "/user/knowledgebases", { body: { name: "1" }, key });
  const base = String((made.body as { data: { id: number } }).data.id);
  await server.call("POST", `/user/knowledgebases/${base}/documents`, {
    body: { name: "1", type: "faq", questions: [{ question: "When?", answer: "At nine." }] }, key,
  });
  const email = "ana@example.org";
  await server.call("POST", "/user/invitations", { body: { email, role: "operator" }, key });
  const context = await browser.newContext({
    locale: PSEUDO, viewport: { width: 1440, height: 900 },
  });
  const page = await context.newPage();
  await page.goto(server.url);
  await page.evaluate(`sessionStorage.setItem("parley-api-key", ${JSON.stringify(key)})`);
  await page.reload();
  for (const [path, text] of [
    ["/campaigns", "Draft"], ["/conversations", "{score} of 5"],
    [`/knowledgebases/${base}`, "Questions and answers"], ["/team", "Operator"],
  ] as const) {
    await page.goto(`${server.url}/#${path}`);
    const shown = wide(text).replace("{score}", "4");
    await page.locator("main td").getByText(shown, { exact: true }).waitFor();
  }
  await context.close();
});

test("[DB1096] what figures are grouped by and who invited somebody are two words in German", { skip, timeout }, async () => {
  assert.ok(browser);
  const { key } = await server.newAccount();
  const email = "bea@example.org";
  await server.call("POST", "/user/invitations", { body: { email, role: "viewer" }, key });
  const context = await browser.newContext({ locale: "de" });
  const page = await context.newPage();
  await page.goto(server.url);
  await page.evaluate(`sessionStorage.setItem("parley-api-key", ${JSON.stringify(key)})`);
  await page.reload();
  await page.getByLabel("Nach", { exact: true }).waitFor();
  await page.goto(`${server.url}/#/team`);
  await page.getByRole("columnheader", { name: "Eingeladen von" }).waitFor();
  await context.close();
});

test("[DB1179] lists name languages and templates in the reader's language", { skip, timeout }, async () => {
  assert.ok(browser);
  const { id } = await newAssistant(server, { name: "Quai" });
  const context = await browser.newContext({
    locale: "fr-FR", viewport: { width: 1440, height: 900 },
  });
  const page = await context.newPage();
  await page.goto(server.url);
  await page.evaluate(`sessionStorage.setItem("parley-api-key", ${JSON.stringify(server.key)})`);
  await page.goto(`${server.url}/#/assistants`);
  await page.reload();
  await page.getByRole("row", { name: "Quai" }).getByText("Anglais").waitFor();
  await page.getByRole("button", { name: "Modèles" }).click();
  await page.getByRole("button", { name: "Service client" }).waitFor();
  await page.goto(`${server.url}/#/assistants/${id}/widget`);
  await page.getByRole("combobox").filter({ hasText: "Allemand" }).waitFor();
  await context.close();
});

test("[DB444] on every page and in its dialogs only content stays in English", { skip, timeout }, async () => {
  assert.ok(browser);
  const { id, uuid } = await newAssistant(server);
  model.script(() => ({ tokens: ["Good day."] }));
  const talk = await newConversation(server, uuid);
  await server.call("POST", `/conversations/${talk}/messages`, { body: { message: "Hi there" } });
  const made = await server.call("POST", "/user/knowledgebases", { body: { name: "Harbour" } });
  const base = String((made.body as { data: { id: number } }).data.id);
  const context = await browser.newContext({
    locale: PSEUDO, viewport: { width: 1440, height: 900 },
  });
  const page = await context.newPage();
  const content = contentOf(page);
  await page.goto(server.url);
  await page.getByRole("button", { name: wide("Sign in"), exact: true }).waitFor();
  const left: string[] = [];
  const look = async (where: string): Promise<void> => {
    await page.locator("h1").first().waitFor();
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
    const said = await page.evaluate(SAID) as string[];
    left.push(...untranslated(said, await content()).map((text) => `${where}: ${text.trim()}`));
  };
  await look("sign-in");
  await page.evaluate(`sessionStorage.setItem("parley-api-key", ${JSON.stringify(server.key)})`);
  await page.reload();
  await page.getByText(wide("Live"), { exact: true }).waitFor();
  const paths = [
    "/", "/inbox", "/assistants", `/assistants/${id}`, `/assistants/${id}/test`,
    `/assistants/${id}/embed`, "/calls", "/conversations", `/conversations/${talk}`,
    "/knowledgebases", `/knowledgebases/${base}`, "/tools", "/numbers", "/numbers/buy",
    "/numbers/sip-trunks", "/campaigns", "/leads", "/leads/blocked", "/webhooks",
    "/webhooks/deliveries", "/ledger", "/keys", "/team", "/audit", "/server",
  ];
  for (const path of paths) {
    await page.goto(`${server.url}/#${path}`);
    await look(path);
    if (path === `/assistants/${id}`) {
      await page.getByRole("button", { name: wide("Open all sections") }).click();
      await look(`${path}, all sections`);
    }
  }
  for (const [path, opener] of DIALOGS) {
    await page.goto(`${server.url}/#${path.replace("KB", base)}`);
    await page.getByRole("button", { name: wide(opener), exact: true }).first().click();
    await page.getByRole("dialog").waitFor();
    await look(`${path}, ${opener}`);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await look("keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").waitFor();
  await look("palette");
  assert.equal([...new Set(left)].join("\n"), "");
  await context.close();
});
