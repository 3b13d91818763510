// Why a document was not read, a call came to nothing or nobody took a transfer: the server says it
// in English, and the dashboard in the reader's language.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { readCatalog } from "#scripts/texts.ts";
import { ask } from "#support/api.ts";
import { askUntil } from "#support/asking.ts";
import { noBrowser, openBrowser } from "#support/pages/browser.ts";
import { sentencesIn } from "#support/sentences.ts";
import { newAssistant, startTestServer } from "#support/server.ts";

const ROOT = join(import.meta.dirname, "../../..");
/** Wherever the server puts such a reason into words. */
const SPOKEN_IN = [
  "workers/documents/**/*.ts", "workers/extract*.ts",
  "src/features/knowledgebases/{extraction,processing}.ts",
  "src/features/calls/{lines,voice-choice}.ts",
  "src/features/calls/records/{failures,transfers,warm-stages}.ts",
  "src/features/phone-numbers/dial-guard.ts", "src/providers/carriers/sip/leg.ts",
  "src/storage/calls/transfers.ts",
];
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** The page has its texts before its modules run, which read the language once. */
const PROGRAM = `
  const { texts, english } = JSON.parse((await import("node:fs")).readFileSync(0, "utf8"));
  globalThis.parleyTexts = { language: "de", texts };
  const { said } = await import("#ui/dashboard/kit/said.ts");
  process.stdout.write(JSON.stringify(english.map(said)));`;

const inGerman = (english: string[]): string[] => JSON.parse(execFileSync(
  process.execPath, ["--input-type=module", "--eval", PROGRAM], {
    cwd: ROOT, input: JSON.stringify({ texts: readCatalog("de"), english }),
    encoding: "utf8", stdio: ["pipe", "pipe", "ignore"],
  })) as string[];

const skip = noBrowser();
const server = skip ? null : await startTestServer({ env: { PARLEY_SPEECH: "loopback" } });
const browser = skip ? null : await openBrowser("refused");
after(async () => {
  await browser?.close();
  await server?.close();
});

test("[DB1280] every reason the server gives for a document, a call or a transfer is translated", () => {
  const files = globSync(SPOKEN_IN, { cwd: ROOT });
  const sentences = files.flatMap((file) => sentencesIn(read(file)));
  assert.ok(sentences.length > 80, String(sentences.length));
  // A value may be a number, a word or, behind a sentence, nothing.
  const forms = ["5", ""].map((value) => sentences.map((text) => text.replaceAll("{}", value)));
  const [some, none] = forms.map((texts) => {
    const told = inGerman(texts);
    return texts.map((text, at) => told[at] === text);
  });
  assert.deepEqual(sentences.filter((_, at) => some?.[at] && none?.[at]), []);
  const elsewhere = globSync("{src,workers}/**/*.ts", { cwd: ROOT })
    .filter((file) => !files.includes(file))
    .filter((file) => /\bUnreadable\(|failureReason: ["`]/.test(read(file)));
  assert.deepEqual(elsewhere, []);
});

test("[DB1281] what is told behind a colon is translated too, where it is known", () => {
  const told = [
    ["The number was busy. Call again later.", "Die Nummer war besetzt. Rufen Sie später noch einmal an."],
    ["The call could not be put through: the trunk answered 404 Not Found. Check the number: the carrier does not know it.",
      "Der Anruf konnte nicht durchgestellt werden: der Trunk antwortete 404 Not Found. "
        + "Prüfen Sie die Nummer: Der Anbieter kennt sie nicht."],
    ["The language model failed: Incorrect API key. Check the assistant's model, its key and its address; the call cost nothing.",
      "Das Sprachmodell ist ausgefallen: Incorrect API key. Prüfen Sie das Modell des Assistenten, "
        + "seinen Schlüssel und seine Adresse; der Anruf hat nichts gekostet."],
    ["The page could not be reached: its certificate has expired.",
      "Die Seite war nicht erreichbar: ihr Zertifikat ist abgelaufen."],
    ["The colleague's line was busy: the trunk answered 486 Busy Here.",
      "Die Leitung des Kollegen war besetzt: der Trunk antwortete 486 Busy Here."],
    ["Nobody knows: not even we.", "Nobody knows: not even we."],
  ] as const;
  assert.deepEqual(inGerman(told.map(([english]) => english)), told.map(([, german]) => german));
});

test("[DB1583] a reason names languages in the reader's language", () => {
  const names = ["German", "Norwegian", "Klingon of the North"];
  assert.deepEqual(
    inGerman(names.map((name) => `No speech engine of this server can speak ${name}.`)),
    ["Deutsch", "Norwegisch", "Klingon of the North"]
      .map((name) => `Keine Sprach-Engine dieses Servers kann ${name} sprechen.`));
});

test("[DB1282] a failed call's page says why in the reader's language", { skip, timeout: 120_000 }, async () => {
  assert.ok(browser && server);
  const { id } = await newAssistant(server, {
    name: "Caller", type: "outbound", status: "active", post_call_evaluation: false,
  });
  const { call_id: call } = await ask(server, "/user/make_call", {
    assistant_id: id, phone_number: "+14155550001",
  });
  await askUntil(() => ask(server, `/user/calls/${call}`), ({ end_reason: why }) => why !== null);
  const context = await browser.newContext({ locale: "de" });
  const page = await context.newPage();
  await page.goto(server.url);
  await page.evaluate(`sessionStorage.setItem("parley-api-key", ${JSON.stringify(server.key)})`);
  await page.goto(`${server.url}/#/calls/${call}`);
  await page.reload();
  await page.getByText("Die Nummer war besetzt. Rufen Sie später noch einmal an.").waitFor();
  await context.close();
});
