// The import of leads over HTTP: workbooks beside CSV, and who watches how far it is.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { accountEvent } from "#support/account-events.ts";
import { docxAround } from "#support/documents/documents.ts";
import { makeXlsx, xlsxAround } from "#support/documents/office.ts";
import { newAssistant, startTestServer } from "#support/server.ts";

const server = await startTestServer({ env: { PARLEY_SPEECH: "loopback" } });
after(() => server.close());
const NO_COUNTRY = "The number lacks the + and the country code, as in +1 555 010 0204.";
const assistant = await newAssistant(server, { type: "outbound", status: "active" });

async function newCampaign(): Promise<number> {
  const { body } = await server.call("POST", "/user/campaigns", {
    body: { name: "Spring", assistant_id: assistant.id },
  });
  return body.data.id as number;
}

function formOf(file: Buffer | string, name: string, fields: object): FormData {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.set(field, String(value));
  form.set("file", new Blob([new Uint8Array(Buffer.from(file as string))]), name);
  return form;
}

async function send(path: string, file: Buffer | string, fields: object = {}, name = "leads.xlsx") {
  const response = await fetch(`${server.url}/api/user/leads/${path}`, {
    method: "POST", headers: { Authorization: `Bearer ${server.key}` },
    body: formOf(file, name, fields),
  });
  // oxlint-disable-next-line typescript/no-explicit-any
  return { status: response.status, body: await response.json() as any };
}

const leadsOf = async (campaignId: number) =>
  (await server.call("GET", `/user/leads?campaign_id=${campaignId}&per_page=100`)).body as {
    total: number; data: { phone_number: string; variables: object }[];
  };

test("[LD135] a workbook is imported and previewed like CSV: its first visible sheet, its own row numbers", async () => {
  const book = makeXlsx([
    { name: "Notes", isHidden: true, rows: [["phone"], ["+15550100900"]] },
    {
      name: "Kunden; 2026", rows: [
        [], ["Name, first;last|x", "Mobil", "Since", "Points"],
        ["Zoë \"Z\"\nMüller", "+49 151 11111111", { value: 45_292, style: 1 }, 4.5], [],
        ["Bo", 15550100204, null, null], ["", "+15550100205", null, 7],
        ["x".repeat(32_000), "+15550100206", ...Array<string>(2).fill("x".repeat(32_000))],
      ],
    },
    { name: "More", rows: [["phone"], ["+15550100901"]] },
  ]);
  const { status, body } = await send("import/preview", book);
  assert.equal(status, 200, JSON.stringify(body));
  const { rows, columns, ...rest } = body.data;
  const others = [{ column: 3, name: "Since" }, { column: 4, name: "Points" }];
  assert.deepEqual(rest, {
    encoding: null, delimiter: null, sheet: "Kunden; 2026", mapping: {
      phone_number: 2, variables: [{ column: 1, name: "Name, first;last|x" }, ...others],
    },
  });
  assert.deepEqual(columns.map(({ name }: { name: string }) => name),
    ["Name, first;last|x", "Mobil", "Since", "Points"]);
  assert.deepEqual(rows, [
    { row: 3, cells: ["Zoë \"Z\"\nMüller", "+49 151 11111111", "2024-01-01", "4.5"] },
    { row: 5, cells: ["Bo", "15550100204"] }, { row: 6, cells: ["", "+15550100205", "", "7"] },
  ]);

  const campaignId = await newCampaign();
  const imported = await send("import", book, {
    campaign_id: campaignId, mapping: JSON.stringify({
      phone_number: 2, variables: [{ column: 1, name: "name" }, ...others],
    }),
  });
  assert.deepEqual([imported.status, imported.body.data], [200, {
    imported: 2, duplicates: 0, updated: 0, failed: 2, errors_truncated: false, errors: [
      { row: 5, phone_number: "15550100204", message: NO_COUNTRY },
      { row: 7, phone_number: "x".repeat(64), message: "The row is too long." },
    ],
  }]);
  assert.deepEqual((await leadsOf(campaignId)).data.map(({ variables }) => variables), [
    { Points: "7" }, { name: "Zoë \"Z\"\nMüller", Since: "2024-01-01", Points: "4.5" },
  ]);
  // The header says it where nobody else does, and a repetition adds nobody.
  const plain = makeXlsx([{ name: "A", rows: [["phone", "name"], ["+15550100205", "Al"]] }]);
  const again = await send("import", plain, { campaign_id: campaignId, duplicates: "update" });
  assert.deepEqual([again.body.data.duplicates, again.body.data.updated], [1, 1]);
  assert.equal((await leadsOf(campaignId)).total, 2);
});

test("[LD141] a number without its +, or with digits cut by a spreadsheet, is refused with what it lacks", async () => {
  const campaign_id = await newCampaign();
  const messages = async (file: Buffer | string, name: string) =>
    (await send("import", file, { campaign_id }, name)).body.data.errors
      .map(({ message }: { message: string }) => message);
  const cut = "The spreadsheet has cut the number's digits: make its column text and enter it again.";
  const numbers = ["491701234567", "0170 123-4567", "4.9E+11", "4,91701E+11", "nobody", "12"];
  const expected = [NO_COUNTRY, NO_COUNTRY, cut, cut, "Invalid phone number", "Invalid phone number"];
  assert.deepEqual(await messages(`phone;name\n${numbers.join(";A\n")};A`, "leads.csv"), expected);
  const cells = '<row r="1"><c t="str"><v>phone</v></c></row><row r="2"><c><v>491701234567</v></c></row>';
  assert.deepEqual(await messages(xlsxAround(cells), "leads.xlsx"), [NO_COUNTRY]);
});

test("[LD143] commas in header names, an Excel file's sep= and leading blank lines do not break an import", async () => {
  const files = {
    names: "Name, Vorname;phone\nRoss, Ann;+15550100301\n",
    quoted: "\"Name, Vorname, Titel\";phone;city\nRoss;+15550100301;Ulm\n",
    spaced: "name, phone\nRoss, +15550100301\n",
    told: "\ufeffsep=;\r\na,b,c;phone\r\nRoss;+15550100301\r\n",
    tabs: "sep=\t\nname\tphone\nRoss\t+15550100301\n", blank: "\n\nname;phone\nRoss;+15550100301\n",
  };
  for (const [name, file] of Object.entries(files)) {
    const campaignId = await newCampaign();
    const { body } = await send("import", file, { campaign_id: campaignId, import_id: name }, "a.csv");
    assert.equal(body.data?.imported, 1, `${name}: ${JSON.stringify(body)}`);
    assert.equal((await leadsOf(campaignId)).data[0]?.phone_number, "+15550100301");
  }
  const { body } = await send("import/preview", files.told, {}, "a.csv");
  assert.deepEqual([body.data.delimiter, body.data.rows[0].row], [";", 2]);
});

test("[LD142] a workbook's number is read as its cell displays it: with leading zeros, after its +", async () => {
  const campaignId = await newCampaign();
  const { body } = await send("import", makeXlsx([{
    name: "Kunden", rows: [
      ["phone", "plz", "rest"],
      [{ value: 4_915_111_111_101, style: 4 }, { value: 1067, style: 3 }, { value: -5, style: 3 }],
      [{ value: 15_550_100_203, style: 4 }, { value: 123_456, style: 3 }, { value: 0.5, style: 3 }],
    ],
  }]), { campaign_id: campaignId });
  assert.deepEqual(body.data.errors, []);
  const found = (await leadsOf(campaignId)).data
    .map(({ phone_number: number, variables }) => [number, variables]).toSorted();
  assert.deepEqual(found, [
    ["+15550100203", { plz: "123456", rest: "0.5" }],
    ["+4915111111101", { plz: "01067", rest: "-5" }],
  ]);
});

test("[NP3] merged again and again, a lead has no more variables than one request may give", async () => {
  const campaignId = await newCampaign();
  const full = Object.fromEntries(
    Array.from({ length: LIMITS.variablesMax }, (_, at) => [`v${at}`, "x"]));
  const { body: made } = await server.call("POST", "/user/lead", {
    body: { campaign_id: campaignId, phone_number: "+15550100401", variables: full },
  });
  const put = (variables: object) =>
    server.call("PUT", `/user/leads/${made.data.id}`, { body: { variables } });
  const refused = await put({ more: "x", v1: "y" });
  assert.deepEqual([refused.status, refused.body.errors], [
    422, { variables: [`The variables may not have more than ${LIMITS.variablesMax} items.`] }]);
  assert.equal((await put({ v1: "y" })).status, 200);
  const fields = { campaign_id: campaignId, duplicates: "update" };
  await send("import", "phone,more,v2\n+15550100401,x,z", fields, "leads.csv");
  assert.deepEqual((await leadsOf(campaignId)).data.map(({ variables }) => variables),
    [{ ...full, v1: "y", v2: "z" }]);
});

test("[LD136] an invalid or hostile workbook is refused with the reason, and leaves nothing behind", async () => {
  const campaign_id = await newCampaign();
  const refused = async (file: Buffer | string) => {
    const said = await Promise.all(["import", "import/preview"].map(async (path) => {
      const { status, body } = await send(path, file, { campaign_id });
      assert.equal(status, 422, JSON.stringify(body));
      return String(body.errors?.file?.[0] ?? body.message);
    }));
    return said[0];
  };
  const cell = (text: string) => `<c t="inlineStr"><is><t>${text}</t></is></c>`;
  assert.equal(await refused(Buffer.from("PK\x03\x04 and no more")),
    "The file is not a valid XLSX workbook: save it as XLSX or CSV.");
  // As archives of other programs, OpenDocument's among them.
  assert.equal(await refused(docxAround("")),
    "The file is not a valid XLSX workbook: save it as XLSX or CSV.");
  assert.equal(await refused(makeXlsx([{ name: "A", isHidden: true, rows: [["phone"]] }])),
    "The workbook has no visible sheet.");
  assert.equal(await refused(makeXlsx([{ name: "A", rows: [] }])), "The file field is required.");
  assert.equal(await refused(Buffer.from("d0cf11e0a1b11ae1", "hex")),
    "The workbook is encrypted or in an old Excel format: save it as XLSX or CSV.");
  assert.equal(await refused(xlsxAround(" ".repeat(60 * 1024 * 1024))),
    "The document is too large to read once it is unpacked.");
  const long = "y".repeat(30_000);
  const laughs = `<row>${'<c t="s"><v>0</v></c>'.repeat(100)}</row>`.repeat(100);
  const { status, body } = await send("import", xlsxAround(
    `<row>${cell("phone")}</row>${laughs}`, `<sst><si><t>${long}</t></si></sst>`), { campaign_id });
  assert.deepEqual([status, body.errors.file], [422, ["The workbook is too large to read."]]);
  assert.equal((await leadsOf(campaign_id)).total, 0);
  const left = readdirSync(join(server.dataDir, "uploads"));
  assert.deepEqual(left.filter((name) => name.endsWith(".rows")), []);
});

interface Progress { import_id: string; rows: number; rows_total: number }

test("[LD137] account watchers see an import's rows done and total; an abandoned import runs to its end", async () => {
  const rows = Array.from({ length: 5000 }, (_, at) => at % 50 === 7
    ? `nobody,"Two\r\nlines ${at}"`
    : `+4915${String(200_000_000 + at)},${at % 50 === 8 ? "5\" pipe" : at}`);
  const file = `phone,name\r\n${rows.join("\r\n\r\n")}\r\n`;
  const told = (id: string, holds: (progress: Progress) => boolean) =>
    accountEvent(server, (event) => event.type === "lead_import_progress"
      && event.import_id === id && holds(event as unknown as Progress));
  const campaignId = await newCampaign();
  const last = told("one", ({ rows: done, rows_total: all }) => done === all);
  const begun = told("one", () => true);
  const { body } = await send(
    "import", file, { campaign_id: campaignId, import_id: "one" }, "leads.csv");
  assert.deepEqual([body.data.imported, body.data.failed], [4900, 100]);
  const { id: _, ...first } = await begun;
  assert.ok(Number(first.rows) > 0 && Number(first.rows) < 5000, JSON.stringify(first));
  assert.equal(first.campaign_id, campaignId);
  const { rows: done, imported, duplicates, failed } = await last;
  assert.deepEqual([done, imported, duplicates, failed], [5000, 4900, 0, 100]);

  const other = await newCampaign();
  const abort = new AbortController();
  const middle = told("two", ({ rows: some }) => some > 0);
  const end = told("two", ({ rows: some, rows_total: all }) => some === all);
  const asked = fetch(`${server.url}/api/user/leads/import`, {
    method: "POST", headers: { Authorization: `Bearer ${server.key}` }, signal: abort.signal,
    body: formOf(file, "leads.csv", { campaign_id: other, import_id: "two" }),
  });
  await middle;
  abort.abort();
  await assert.rejects(asked);
  await end;
  assert.equal((await leadsOf(other)).total, 4900);
});

test("[LD140] a number after a formula-blocking apostrophe, or among invisible characters, is imported", async () => {
  const rows = [
    ["phone", "name"], ["'+49 151 11111101", "'=Ada"], ["\u202a+49 151 11111102\u202c", "'t Hooft"],
    ["\ufeff+49 151 11111103\u200e", "'-5"],
  ];
  const csv = rows.map((row) => row.map((cell) => `"${cell}"`).join(",")).join("\n");
  for (const [name, file] of [["a.csv", csv], ["a.xlsx", makeXlsx([{ name: "A", rows }])]] as const) {
    const campaign = await newCampaign();
    const { body } = await send("import", file, { campaign_id: campaign }, name);
    assert.deepEqual(body.data?.errors, [], JSON.stringify(body));
    const found = (await leadsOf(campaign)).data
      .map(({ phone_number: number, variables }) => [number, variables]).toSorted();
    assert.deepEqual(found, [
      ["+4915111111101", { name: "=Ada" }], ["+4915111111102", { name: "'t Hooft" }],
      ["+4915111111103", { name: "-5" }],
    ]);
  }
});
