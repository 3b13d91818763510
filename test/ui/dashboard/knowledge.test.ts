// Knowledge in the dashboard: knowledgebases, adding documents by hand, what becomes of them.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { askUntil } from "#support/asking.ts";
import { noBrowser, until } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const { server, withDashboard, close } = await startDashboard();
const folder = mkdtempSync(join(tmpdir(), "parley-files-"));
after(async () => {
  await close();
  rmSync(folder, { recursive: true });
});

const LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenfabrik".repeat(3);

interface WireDocument {
  name: string;
  status: string;
  type: string;
  failure_reason: string | null;
}

async function newKnowledgebase(name: string): Promise<number> {
  const { body } = await server.call("POST", "/user/knowledgebases", { body: { name } });
  return body.data.id as number;
}
const documentsOf = async (id: number): Promise<WireDocument[]> =>
  (await server.call("GET", `/user/knowledgebases/${id}/documents`)).body.data as WireDocument[];

const textFile = (name: string, text: string) =>
  ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
const rowOf = (page: Page, name: string) => page.getByRole("row", { name });

test("[DB60] a knowledgebase is created, renamed and deleted, each as the server confirms it", { skip }, async () => {
  await withDashboard(async ({ page, go, look }) => {
    await go("/knowledgebases");
    await page.getByText("No knowledge yet").waitFor();
    await look();
    await page.getByRole("button", { name: "New knowledgebase" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Price list");
    await page.getByLabel("Description").fill("For the front desk");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Price list", level: 1 }).waitFor();
    await page.getByText("Empty", { exact: true }).waitFor();
    await page.getByText("No assistant uses it.").waitFor();
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill(LONG);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: LONG, level: 1 }).waitFor();
    await look();
    const [kept] = (await server.call("GET", "/user/knowledgebases")).body.data;
    assert.deepEqual([kept.name, kept.description], [LONG, "For the front desk"]);
    await go("/knowledgebases");
    await rowOf(page, LONG).waitFor();
    await look();
    await rowOf(page, LONG).getByRole("link").click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("Assistants that use it continue without it.").waitFor();
    assert.equal((await server.call("GET", "/user/knowledgebases")).body.data.length, 1);
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("No knowledge yet").waitFor();
    assert.deepEqual((await server.call("GET", "/user/knowledgebases")).body.data, []);
  });
});

test("[DB61] files are uploaded by picker and by drop, and their states update by themselves", { skip }, async () => {
  const id = await newKnowledgebase("Files");
  await withDashboard(async ({ page, go, look }) => {
    await go(`/knowledgebases/${id}`);
    await page.getByText("No documents yet").waitFor();
    await page.getByLabel("Drop files here").setInputFiles([
      textFile("prices.txt", "A service costs 79 dollars."), textFile("broken.pdf", "no PDF"),
    ]);
    await rowOf(page, "prices.txt").getByText("Active").waitFor();
    await rowOf(page, "broken.pdf").getByText("The file is not a PDF document.").waitFor();
    await page.evaluate(`{
      const files = new DataTransfer();
      files.items.add(new File(["Closed on Sundays."], "hours.txt", { type: "text/plain" }));
      document.querySelector(".drop").dispatchEvent(
        new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: files }));
    }`);
    await rowOf(page, "hours.txt").getByText("Active").waitFor();
    assert.deepEqual(
      (await documentsOf(id)).map(({ name, type, status }) => [name, type, status]).toSorted(),
      [["broken.pdf", "pdf", "failed"], ["hours.txt", "txt", "active"], ["prices.txt", "txt", "active"]]);
    await page.getByRole("list", { name: "Uploads" }).waitFor({ state: "detached" });
    await look();
    await page.getByRole("button", { name: "broken.pdf" }).click();
    await page.getByRole("alert").getByText("The file is not a PDF document.").waitFor();
    await look();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await rowOf(page, "broken.pdf").waitFor({ state: "detached" });
    assert.equal((await documentsOf(id)).length, 2);
  });
});

test("[DB62] a file shows its progress, and a cancelled one never arrives", { skip }, async () => {
  const id = await newKnowledgebase("Slow");
  await withDashboard(async ({ page, go }) => {
    const network = await page.context().newCDPSession(page);
    const throttle = (uploadThroughput: number) => network.send("Network.emulateNetworkConditions", {
      offline: false, latency: 0, downloadThroughput: -1, uploadThroughput,
    });
    await network.send("Network.enable");
    await go(`/knowledgebases/${id}`);
    await page.getByText("No documents yet").waitFor();
    await throttle(400_000);
    await page.getByLabel("Drop files here").setInputFiles([
      textFile("big.txt", "word ".repeat(800_000)), textFile("small.txt", "A few words."),
    ]);
    await page.getByText("waiting").waitFor();
    await until(page, `[...document.querySelectorAll("[role=progressbar]")]
      .some(({ ariaValueNow: now }) => Number(now) > 0 && Number(now) < 90)`);
    await page.getByText(/\d % of 3.8 MB/).waitFor();
    await page.getByRole("button", { name: "Cancel big.txt" }).click();
    await throttle(-1);
    await rowOf(page, "small.txt").getByText("Active").waitFor();
    assert.deepEqual((await documentsOf(id)).map(({ name }) => name), ["small.txt"]);
  });
});

test("[DB63] files the server would refuse are reported before anything is sent", { skip }, async () => {
  const id = await newKnowledgebase("Picky");
  await withDashboard(async ({ page, go, look }) => {
    await go(`/knowledgebases/${id}`);
    await page.getByText("No documents yet").waitFor();
    let sent = 0;
    page.on("request", (request) => void (sent += Number(request.method() === "POST")));
    // From the disk, as people's files: handed over in a message, the large one takes seconds.
    const sizes = { [`${LONG}.exe`]: 1, "empty.txt": 0, "large.txt": 20 * 1024 * 1024 + 1 };
    const files = Object.entries(sizes).map(([name, bytes]) => {
      const file = join(folder, name);
      writeFileSync(file, "");
      truncateSync(file, bytes);
      return file;
    });
    await page.getByLabel("Drop files here").setInputFiles(files);
    await page.getByText("Only PDF, DOCX, XLSX, PPTX, TXT, Markdown, HTML and CSV files can be read.").waitFor();
    await page.getByText("The file is empty.").waitFor();
    await page.getByText("The file is larger than 20 MB.").waitFor();
    await look();
    await page.getByRole("button", { name: "Dismiss empty.txt" }).click();
    await page.getByText("The file is empty.").waitFor({ state: "detached" });
    assert.equal(sent, 0);
  });
});

test("[DB64] a website is added whole or page by page, and the assistants that use it are named", { skip }, async () => {
  const id = await newKnowledgebase("Web");
  await newAssistant(server, {
    name: "Web reader", knowledgebase_id: id, knowledgebase_mode: "function_call",
  });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/knowledgebases/${id}`);
    await page.getByRole("link", { name: "Web reader" }).waitFor();
    await page.getByRole("button", { name: "Add a website" }).click();
    await page.getByLabel("Address").fill(`${server.url}/`);
    await page.getByLabel("Pages to follow").fill("3");
    await look();
    await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
    await rowOf(page, `${server.url}/`).getByText("Website").waitFor();
    await page.getByRole("button", { name: "Add a website" }).click();
    await page.getByLabel("Single pages").check();
    await page.getByLabel("Addresses").fill(`${server.url}/docs\nno-address`);
    await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
    await page.getByText("The link must be a valid URL. (no-address)").first().waitFor();
    await page.getByLabel("Addresses").fill(`${server.url}/docs`);
    await page.getByRole("textbox", { name: "Name" }).fill("The reference");
    await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
    await rowOf(page, "The reference").getByText(/Active|Failed/).waitFor();
    // How it is read is changed afterwards, and stands among its facts.
    await page.getByRole("button", { name: "The reference" }).click();
    await page.getByRole("button", { name: "How it is read" }).click();
    await page.getByLabel("Read again").selectOption({ label: "Every week" });
    await page.getByLabel(/This site is mine/).check();
    await look();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Every week, next /).waitFor();
    await page.getByText("Not obeyed: the site is yours").waitFor();
    await look();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Add a website" }).click();
    await page.getByLabel("The pages of a sitemap").check();
    await page.getByLabel("Sitemap address").fill(`${server.url}/sitemap.xml`);
    await look();
    await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
    await rowOf(page, `${server.url}/sitemap.xml`).getByText(/Active|Failed/).waitFor();
    assert.deepEqual((await documentsOf(id)).map(({ name, type }) => [name, type]).toSorted(),
      [
        ["The reference", "website"], [`${server.url}/`, "website"],
        [`${server.url}/sitemap.xml`, "website"],
      ]);
  });
});

test("[DB360] a question is tried on the page, and the knowledgebase given to assistants there", { skip }, async () => {
  const id = await newKnowledgebase("Harbour");
  const other = await newKnowledgebase("Elsewhere");
  const { id: assistantId } = await newAssistant(server, {
    name: "Harbour master", knowledgebase_id: other, knowledgebase_mode: "function_call",
  }) as { id: number };
  const usedBy = async (): Promise<number | null> => {
    const { body } = await server.call("GET", `/user/assistant/${assistantId}`);
    return (body.data ?? body).knowledgebase_id as number | null;
  };
  await withDashboard(async ({ page, go, look }) => {
    await go(`/knowledgebases/${id}`);
    await page.getByText("No documents yet").waitFor();
    assert.equal(await page.getByLabel("Question").count(), 0);
    await page.getByLabel("Drop files here").setInputFiles([
      textFile("ferries.txt", `# Ferries\n\nThe ferry to the island leaves at ten. ${LONG}`),
    ]);
    await rowOf(page, "ferries.txt").getByText("Active").waitFor();
    const question = page.getByLabel("Question");
    await question.fill("When does the ferry leave?");
    await question.press("Enter");
    const found = page.locator(".knowledge-found li");
    await found.getByText("The ferry to the island leaves at ten.").waitFor();
    await found.getByText("Given", { exact: true }).waitFor();
    await found.getByText(/^score 100 %, words \d/).waitFor();
    await look();
    await question.fill("zeppelins");
    await question.press("Enter");
    await page.getByText("Nothing found").waitFor();
    await page.getByLabel("Add it to an assistant").selectOption({ label: "Harbour master" });
    await page.getByText("It replaces the one it uses now.").waitFor();
    await look();
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("link", { name: "Harbour master" }).waitFor();
    assert.equal(await usedBy(), id);
    await look();
    await page.getByRole("button", { name: "Remove it from Harbour master" }).click();
    await page.getByText("No assistant uses it.").waitFor();
    assert.equal(await usedBy(), null);
  });
});

test("[DB361] a document's extracted text is shown, and a failed document retried", { skip }, async () => {
  const id = await newKnowledgebase("Read");
  await withDashboard(async ({ page, go, look }) => {
    await go(`/knowledgebases/${id}`);
    await page.getByText("No documents yet").waitFor();
    const paragraphs = Array.from({ length: 25 }, (_, at) => `# Rule ${at}\n\nRule number ${at}.`);
    await page.getByLabel("Drop files here").setInputFiles([
      textFile("rules.txt", paragraphs.join("\n\n")), textFile("broken.pdf", "no PDF"),
    ]);
    await rowOf(page, "rules.txt").getByText("Active").waitFor();
    await rowOf(page, "broken.pdf").getByText("Failed").waitFor();
    // The knowledgebase is what can be searched of it.
    await page.locator(".page-head").getByText("Active").waitFor();
    await page.getByRole("button", { name: "rules.txt" }).click();
    await page.getByText("What was read (25)").waitFor();
    await page.getByText("Rule number 9.").waitFor();
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByText("Rule number 24.").waitFor();
    await look();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "broken.pdf" }).click();
    const answer = page.waitForResponse((response) => response.url().endsWith("/read"));
    await page.getByRole("button", { name: "Try again" }).click();
    assert.equal((await answer).status(), 200);
    await page.getByRole("dialog").getByText("Failed").waitFor();
    await page.getByRole("alert").getByText("The file is not a PDF document.").waitFor();
  });
});

test("[DB362] texts and tables of questions are written, found, and edited later", { skip }, async () => {
  const id = await newKnowledgebase("Written");
  await withDashboard(async ({ page, go, look }) => {
    const dialog = page.getByRole("dialog");
    await go(`/knowledgebases/${id}`);
    await page.getByRole("button", { name: "Write a text" }).click();
    await dialog.getByLabel("Title").fill("House rules");
    await dialog.getByLabel("Text", { exact: true }).fill("# Noise\n\nQuiet after ten.");
    await look();
    await dialog.getByRole("button", { name: "Add" }).click();
    await rowOf(page, "House rules").getByText("Active").waitFor();
    await page.getByRole("button", { name: "Add questions" }).click();
    await dialog.getByLabel("Title").fill("FAQ");
    await dialog.getByRole("textbox", { name: "Question 1" }).fill("Do you take dogs?");
    await dialog.getByRole("button", { name: "Another question" }).click();
    await dialog.getByRole("textbox", { name: "Question 2" }).fill("Where do I park?");
    await dialog.getByRole("textbox", { name: "Answer 2" }).fill("Behind the house.");
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await dialog.getByText(/answer field is required|answer.*invalid/i).first().waitFor();
    await dialog.getByRole("textbox", { name: "Answer 1" }).fill("Yes, on a lead.");
    await look();
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await rowOf(page, "FAQ").getByText("Active").waitFor();
    await page.getByRole("button", { name: "FAQ" }).click();
    await page.getByText("What was read (2)").waitFor();
    await dialog.getByRole("button", { name: "Edit" }).click();
    await dialog.getByRole("button", { name: "Remove question 2" }).click();
    await dialog.getByRole("textbox", { name: "Answer 1" }).fill("No dogs any more.");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("What was read (1)").waitFor();
    await dialog.getByText("No dogs any more.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByRole("textbox", { name: "Question" }).fill("dogs");
    await page.getByRole("textbox", { name: "Question" }).press("Enter");
    await page.locator(".knowledge-found").getByText("No dogs any more.").waitFor();
  });
});

test("[DB536] a document is edited from its current text, not from a cached one", { skip }, async () => {
  const id = await newKnowledgebase("Shared");
  const path = `/user/knowledgebases/${id}/documents`;
  const { body: { data: document } } = await server.call("POST", path, {
    body: { name: "House rules", type: "text", text: "Quiet after ten." },
  });
  await withDashboard(async ({ page, go }) => {
    const dialog = page.getByRole("dialog");
    const text = dialog.getByLabel("Text", { exact: true });
    await go(`/knowledgebases/${id}`);
    await rowOf(page, "House rules").getByText("Active").waitFor();
    await page.getByRole("button", { name: "House rules" }).click();
    await dialog.getByRole("button", { name: "Edit" }).click();
    await text.waitFor();
    assert.equal(await text.inputValue(), "Quiet after ten.");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await server.call("PATCH", `${path}/${document.id}`, { body: { text: "Quiet after eleven." } });
    await dialog.getByText("Quiet after eleven.").waitFor();
    await dialog.getByRole("button", { name: "Edit" }).click();
    await text.waitFor();
    assert.equal(await text.inputValue(), "Quiet after eleven.");
  });
});

test("[DB573] a concurrent change of a document is not overwritten unseen", { skip }, async () => {
  const id = await newKnowledgebase("Shared by two");
  const path = `/user/knowledgebases/${id}/documents`;
  const { body: { data: document } } = await server.call("POST", path, {
    body: { name: "House rules", type: "text", text: "Quiet after ten." },
  });
  const textOf = async (): Promise<string> =>
    (await server.call("GET", `${path}/${document.id}`)).body.data.text;
  await withDashboard(async ({ page, go }) => {
    const dialog = page.getByRole("dialog");
    await go(`/knowledgebases/${id}`);
    await rowOf(page, "House rules").getByText("Active").waitFor();
    await page.getByRole("button", { name: "House rules" }).click();
    await dialog.getByRole("button", { name: "Edit" }).click();
    await dialog.getByLabel("Text", { exact: true }).fill("Mine.");
    await server.call("PATCH", `${path}/${document.id}`, {
      body: { name: "Our rules", text: "Theirs." },
    });
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("alert").getByText("Somebody else has changed this").waitFor();
    assert.equal(await dialog.getByLabel("Title").inputValue(), "Our rules");
    assert.equal(await textOf(), "Theirs.");
    await dialog.getByRole("button", { name: "Save" }).click();
    await askUntil(textOf, (text) => text === "Mine.");
  });
});

test("[DB573] a concurrent change of how a website is read is not overwritten unseen", { skip }, async () => {
  const id = await newKnowledgebase("Read by two");
  const path = `/user/knowledgebases/${id}/documents`;
  const { body: { data: document } } = await server.call("POST", path, {
    body: { name: "Our site", type: "website", links: [{ link: `${server.url}/docs` }] },
  });
  const change = (body: object) => server.call("PATCH", `${path}/${document.id}`, { body });
  const howRead = async (): Promise<unknown[]> => {
    const { body: { data } } = await server.call("GET", `${path}/${document.id}`);
    return [data.read_again_every_hours, data.ignore_robots];
  };
  await withDashboard(async ({ page, go }) => {
    const dialog = page.getByRole("dialog");
    const open = async (): Promise<void> => {
      await go(`/knowledgebases/${id}`);
      await rowOf(page, "Our site").getByText(/Active|Failed/).waitFor();
      await page.getByRole("button", { name: "Our site" }).click();
      await page.getByRole("button", { name: "How it is read" }).click();
    };
    await open();
    await dialog.getByLabel(/This site is mine/).check();
    await change({ read_again_every_hours: 24 });
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Not obeyed: the site is yours").waitFor();
    assert.deepEqual(await howRead(), [24, true]);
    await page.keyboard.press("Escape");
    await open();
    await dialog.getByLabel("Read again").selectOption({ label: "Every week" });
    await change({ read_again_every_hours: 6 });
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Somebody else has changed this").first().waitFor();
    assert.deepEqual(await howRead(), [6, true]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Every week, next /).waitFor();
  });
});
