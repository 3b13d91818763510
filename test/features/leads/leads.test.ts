// Leads over HTTP: the contract's routes, the import of files with broken rows, and the numbers
// nobody may call.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { newAssistant, startTestServer } from "#support/server.ts";

const server = await startTestServer({ env: { PARLEY_SPEECH: "loopback" } });
after(() => server.close());
const assistant = await newAssistant(server, { type: "outbound", status: "active" });
const stranger = await server.newAccount();

async function newCampaign(name = "Spring"): Promise<number> {
  const { status, body } = await server.call("POST", "/user/campaigns", {
    body: { name, assistant_id: assistant.id },
  });
  assert.equal(status, 201, JSON.stringify(body));
  return body.data.id as number;
}
const add = (campaignId: number, body: object) =>
  server.call("POST", "/user/lead", { body: { campaign_id: campaignId, ...body } });
const lead = async (id: number) => (await server.call("GET", `/user/leads/${id}`)).body;

async function upload(
  campaignId: unknown, text: string | Buffer<ArrayBuffer> | null, fields: object = {},
  key = server.key, path = "import",
) {
  const form = new FormData();
  for (const [name, value] of Object.entries({ campaign_id: campaignId, ...fields })) {
    form.set(name, String(value));
  }
  if (text !== null) form.set("file", new Blob([text]), "leads.csv");
  const response = await fetch(`${server.url}/api/user/leads/${path}`, {
    method: "POST", headers: { Authorization: `Bearer ${key}` }, body: form,
  });
  // oxlint-disable-next-line typescript/no-explicit-any
  return { status: response.status, body: await response.json() as any };
}

test("[LD1] a lead is created with its contacts, numbers as E.164, variables merged", async () => {
  const campaignId = await newCampaign("Autumn");
  const { status, body } = await add(String(campaignId) as never, {
    phone_number: "+49 (151) 2345-6789",
    variables: [{ customer_name: "Eva" }, { email: "eva@example.org", age: 41 }],
    secondary_contacts: [{ phone_number: "+1 555 010 0042", variables: { customer_name: "Al" } }],
  });
  assert.equal(status, 200);
  assert.equal(body.message, "Lead created successfully");
  const { id, created_at, updated_at, secondary_contacts: contacts, ...rest } = body.data;
  assert.match(created_at, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  assert.equal(updated_at, created_at);
  assert.deepEqual(rest, {
    campaign_id: campaignId, phone_number: "+4915123456789", status: "created", call_tries: 0,
    variables: { customer_name: "Eva", email: "eva@example.org", age: "41" },
    next_try_at: created_at, last_call_id: null, last_outcome: null,
    campaign: { id: campaignId, name: "Autumn" },
  });
  assert.deepEqual(contacts, [{
    id: contacts[0].id, phone_number: "+15550100042", variables: { customer_name: "Al" },
    status: "created", call_tries: 0, next_try_at: null, last_call_id: null,
    last_outcome: null, created_at, updated_at,
  }]);
  assert.deepEqual(await lead(id), body.data);
});

test("[LD2] invalid leads are refused by field; a duplicate unless allowed", async () => {
  const campaignId = await newCampaign();
  const none = await add(999_999, { phone_number: "+15550100042" });
  assert.deepEqual([none.status, none.body], [404, { message: "Campaign not found" }]);
  const bad = await add(campaignId, {
    phone_number: "12345",
    variables: "x",
    secondary_contacts: [{ phone_number: "+15550100042" }, { phone_number: "+1" }],
  });
  assert.deepEqual([bad.status, bad.body], [422, {
    message: "Invalid phone number",
    errors: {
      phone_number: ["Invalid phone number"],
      variables: ["Variables must be an array"],
      "secondary_contacts.1.phone_number": ["Invalid phone number"],
    },
  }]);
  const blank = await server.call("POST", "/user/lead", { body: {} });
  assert.equal(blank.status, 422);
  assert.deepEqual(Object.keys(blank.body.errors as object).sort(), ["campaign_id", "phone_number"]);
  const same = { phone_number: "+15550100043" };
  assert.equal((await add(campaignId, same)).status, 200);
  const twice = await add(campaignId, { phone_number: "+1 555 0100 043" });
  assert.equal(twice.status, 422);
  assert.deepEqual(Object.keys(twice.body.errors as object), ["phone_number"]);
  assert.equal((await add(campaignId, { ...same, allow_dupplicate: 1 })).status, 200);
  assert.equal((await add(await newCampaign(), same)).status, 200);
  assert.equal((await server.call("POST", "/user/lead", { key: null, body: same })).status, 401);
});

test("[LD3] the list: filters, pages, contacts included; nobody sees another account's leads", async () => {
  const campaignId = await newCampaign();
  for (const ending of ["0061", "0062", "0063"]) {
    await add(campaignId, {
      phone_number: `+1555010${ending}`, secondary_contacts: [{ phone_number: "+15550109999" }],
    });
  }
  const list = async (query: string, key = server.key) =>
    (await server.call("GET", `/user/leads?${query}`, { key })).body;
  const page = await list(`campaign_id=${campaignId}&per_page=2`);
  assert.deepEqual([page.total, page.last_page, page.data.length], [3, 2, 2]);
  assert.deepEqual(
    page.data.map((one: { phone_number: string }) => one.phone_number),
    ["+15550100063", "+15550100062"]);
  assert.equal(page.data[0].secondary_contacts.length, 1);
  const day = new Date().toISOString().slice(0, 10);
  for (const [query, total] of [
    ["phone_number=100062", 1], ["phone_number=%2B15550100062", 1], ["phone_number=9999", 0],
    ["status=created", 3], ["status=completed", 0], [`date_from=${day}&date_to=${day}`, 3],
    ["date_to=2020-01-01", 0],
  ] as const) {
    assert.equal((await list(`campaign_id=${campaignId}&${query}`)).total, total, query);
  }
  assert.equal((await list("", stranger.key)).total, 0);
  for (const query of ["status=contacted", "per_page=101", "date_from=2026-02-31"]) {
    assert.equal((await server.call("GET", `/user/leads?${query}`)).status, 422, query);
  }
});

test("[LD4] an update as the contract words it, on both paths", async () => {
  const [from, to] = [await newCampaign(), await newCampaign("Second")];
  const { body: made } = await add(from, {
    phone_number: "+15550100071", variables: { customer_name: "Eva", email: "e@example.org" },
    secondary_contacts: [{ phone_number: "+15550100072" }],
  });
  const { id, secondary_contacts: [contact] } = made.data;
  const put = (body: object, path = `/user/leads/${id}`, key = server.key) =>
    server.call("PUT", path, { key, body });
  const ok = await put({ variables: { customer_name: "Eve" } });
  assert.deepEqual([ok.status, ok.body.message], [200, "Lead updated successfully"]);
  const moved = await put(
    { campaign_id: to, phone_number: "+49 151 23456780", status: "completed" }, `/leads/${id}`);
  assert.equal(moved.status, 200, JSON.stringify(moved.body));
  const now = await lead(id);
  assert.deepEqual(
    [now.campaign, now.phone_number, now.status, now.next_try_at, now.variables],
    [{ id: to, name: "Second" }, "+4915123456780", "completed", null,
      { customer_name: "Eve", email: "e@example.org" }]);
  assert.equal((await lead(contact.id)).campaign_id, to);
  const unknown = await put({ invalid_field: 1, another_invalid_field: 2 });
  assert.deepEqual([unknown.status, unknown.body], [
    422, { message: "Invalid fields: invalid_field, another_invalid_field" }]);
  const wrong = await put({ campaign_id: "x", status: "processing", variables: 7 });
  assert.deepEqual([wrong.status, wrong.body], [422, {
    message: "Validation failed",
    errors: {
      campaign_id: ["The selected campaign does not exist"],
      status: ["This status is assigned automatically and cannot be set manually"],
      variables: ["Variables must be an array"],
    },
  }]);
  const gone = await put({ campaign_id: 999_999 });
  assert.deepEqual(gone.body.errors, { campaign_id: ["The selected campaign does not exist"] });
  const number = await put({ phone_number: "0" });
  assert.deepEqual([number.status, number.body], [422, { message: "Invalid phone number" }]);
  const secondary = await put({ campaign_id: from }, `/user/leads/${contact.id}`);
  assert.equal(secondary.status, 422);
  await add(to, { phone_number: "+15550100073" });
  assert.equal((await put({ phone_number: "+15550100073" })).status, 422);
  for (const [path, key] of [
    ["/user/leads/999999", server.key], [`/user/leads/${id}`, stranger.key],
  ] as const) {
    const answer = await put({ status: "created" }, path, key);
    assert.deepEqual([answer.status, answer.body], [404, { message: "Lead not found" }]);
  }
});

test("[LD5] status set by hand: created starts over, exhausted continues with the first contact", async () => {
  const campaignId = await newCampaign();
  const { body: { data } } = await add(campaignId, {
    phone_number: "+15550100081",
    secondary_contacts: [{ phone_number: "+15550100082" }, { phone_number: "+15550100083" }],
  });
  const [first, second] = data.secondary_contacts as { id: number }[];
  const set = (id: number, status: string) =>
    server.call("PUT", `/user/leads/${id}`, { body: { status } });
  const states = async () => {
    const { status, secondary_contacts: contacts } = await lead(data.id);
    return [status, ...contacts.map((one: { status: string }) => one.status)];
  };
  await set(data.id, "reached-max-retries");
  assert.deepEqual(await states(), ["reached-max-retries", "scheduled", "created"]);
  await set(first!.id, "reached-max-retries");
  assert.deepEqual(await states(), ["reached-max-retries", "reached-max-retries", "scheduled"]);
  await server.call("DELETE", `/user/leads/${second!.id}`);
  await set(data.id, "created");
  assert.deepEqual(await states(), ["created", "created"]);
  await set(data.id, "reached-max-retries");
  await set(data.id, "completed");
  assert.deepEqual(await states(), ["completed", "created"]);
});

test("[LD130] changing a secondary contact's status publishes its lead", async () => {
  const { body: { data } } = await add(await newCampaign(), {
    phone_number: "+15550100084", secondary_contacts: [{ phone_number: "+15550100085" }],
  });
  const { sequence } = await server.app.features.calls.liveSnapshot(server.accountId);
  await server.call("PUT", `/user/leads/${data.id}`, { body: { status: "reached-max-retries" } });
  const { body } = await server.call("GET", `/user/events?after=${sequence}`);
  assert.deepEqual(
    (body.data as Record<string, unknown>[]).map((event) =>
      [event.lead_id, event.main_lead_id, event.phone_number, event.status]),
    [
      [data.id, null, "+15550100084", "reached-max-retries"],
      [data.secondary_contacts[0].id, data.id, "+15550100085", "scheduled"],
    ]);
});

test("[LD6] a deleted lead is gone with its contacts; strangers cannot delete it", async () => {
  const { body: { data } } = await add(await newCampaign(), {
    phone_number: "+15550100091", secondary_contacts: [{ phone_number: "+15550100092" }],
  });
  const remove = (key: string) => server.call("DELETE", `/user/leads/${data.id}`, { key });
  assert.equal((await remove(stranger.key)).status, 404);
  const done = await remove(server.key);
  assert.deepEqual([done.status, done.body], [200, { message: "Lead deleted successfully" }]);
  const again = await remove(server.key);
  assert.deepEqual([again.status, again.body], [404, { message: "Lead not found" }]);
  for (const id of [data.id, data.secondary_contacts[0].id]) {
    assert.equal((await server.call("GET", `/user/leads/${id}`)).status, 404);
  }
});

test("[LD7] 10,000 rows with invalid ones: every row is counted, none is lost", async () => {
  const campaignId = await newCampaign();
  const rows: string[] = [];
  const wanted: string[] = [];
  let broken = 0;
  let repeated = 0;
  for (let at = 0; at < 10_000; at += 1) {
    const number = `+4915${String(100_000_000 + at)}`;
    if (at % 50 === 7) {
      broken += 1;
      rows.push([
        `+49,Nobody ${at}`, `${number},"Never closed ${at}`, ",No number", `${number},"a" b`,
        `${number},a,b,too many`,
      ][broken % 5]!);
    } else if (at % 400 === 11) {
      repeated += 1;
      rows.push(`${wanted.at(-1)},Again`);
    } else {
      wanted.push(number);
      rows.push(at % 30 === 3 ? `"${number}","Two\r\nlines, ${at}"` : `${number},Name ${at}`);
    }
  }
  const { status, body } = await upload(
    campaignId, `phone_number,customer_name\r\n${rows.join("\r\n")}\r\n`);
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.message, "Leads imported successfully");
  const { imported, duplicates, failed, errors, errors_truncated } = body.data;
  assert.deepEqual([imported, duplicates, failed], [wanted.length, repeated, broken]);
  assert.equal(imported + duplicates + failed, rows.length);
  assert.deepEqual([errors.length, errors_truncated], [100, true]);
  assert.deepEqual(errors[0].row, 9);
  const { body: list } = await server.call("GET", `/user/leads?campaign_id=${campaignId}&per_page=1`);
  assert.equal(list.total, wanted.length);
  assert.equal(list.data[0].phone_number, wanted.at(-1));
  const again = await upload(campaignId, `number\n${wanted.slice(0, 500).join("\n")}`);
  assert.deepEqual([again.body.data.imported, again.body.data.duplicates], [0, 500]);
  const allowed = await upload(campaignId, `phone\n${wanted[0]}`, { allow_dupplicate: "true" });
  assert.equal(allowed.body.data.imported, 1);
});

test("[LD8] file variants: BOM, semicolons, quotes, blank lines; and files that are none", async () => {
  const campaignId = await newCampaign();
  const { body } = await upload(campaignId, [
    "\ufeffName;Phone;;city", "\"Eva; M.\";+49 151 11111111;x;", "", "5\" pipe;+15550100201;;Ulm",
    "\"open;+15550100202;;", "Al;+15550100203;;\"Two", "lines\"", "Bo;15550100204;;",
  ].join("\r\n"));
  const { imported, failed, errors } = body.data;
  assert.deepEqual([imported, failed], [3, 2]);
  assert.deepEqual(errors, [
    { row: 5, phone_number: "\"open;+15550100202;;", message: "The row is not valid CSV." },
    { row: 7, phone_number: "15550100204", message: "The number lacks the + and the country code, as in +1 555 010 0204." },
  ]);
  const { body: list } = await server.call("GET", `/user/leads?campaign_id=${campaignId}`);
  assert.deepEqual(list.data.map((one: { variables: object }) => one.variables), [
    { Name: "Al", city: "Two\nlines" }, { Name: "5\" pipe", city: "Ulm" }, { Name: "Eva; M." },
  ]);
  const refused = async (id: unknown, text: string | null, key = server.key) =>
    (await upload(id, text, {}, key)).status;
  assert.equal(await refused(campaignId, "name,city\nEva,Ulm"), 422);
  assert.equal(await refused(campaignId, null), 422);
  assert.equal(await refused(campaignId, ""), 422);
  assert.equal(await refused("x", "phone\n+15550100205"), 422);
  assert.equal(await refused(999_999, "phone\n+15550100205"), 404);
  assert.equal(await refused(campaignId, "phone\n+15550100205", stranger.key), 404);
});

test("[LD131] a number already in the campaign is skipped, added or updated, as asked; repeats count once", async () => {
  const campaignId = await newCampaign();
  const leadsOf = async () => (await server.call(
    "GET", `/user/leads?campaign_id=${campaignId}`)).body.data.map(
    (one: { variables: object }) => one.variables) as object[];
  await upload(campaignId, "phone,name,city\n+15550100301,Ada,Linz");
  const counts = async (duplicates: string) => {
    const { status, body } = await upload(
      campaignId, "phone,name\n+15550100301,Grace\n+15550100302,Al\n", { duplicates });
    assert.equal(status, 200, JSON.stringify(body));
    return [body.data.imported, body.data.duplicates, body.data.updated];
  };
  assert.deepEqual(await counts("update"), [1, 1, 1]);
  assert.deepEqual(await counts("update"), [0, 2, 2]);
  assert.deepEqual(await leadsOf(), [{ name: "Al" }, { name: "Grace", city: "Linz" }]);
  assert.deepEqual(await counts("skip"), [0, 2, 0]);
  assert.equal((await leadsOf()).length, 2);
  assert.deepEqual(await counts("add"), [2, 0, 0]);
  assert.equal((await leadsOf()).length, 4);
  const { status } = await upload(campaignId, "phone\n+15550100301", { duplicates: "twice" });
  assert.equal(status, 422);
});

test("[LD132] Windows and spreadsheet files: UTF-16, Windows-1252, bars between columns", async () => {
  const campaignId = await newCampaign();
  const text = (number: string) => `phone|name\r\n${number}|Zoë Müller\r\n`;
  const utf16 = Buffer.from(`\ufeff${text("+15550100401")}`, "utf16le");
  const files = [
    utf16, Buffer.from(utf16).swap16(), Buffer.from(text("+15550100402"), "latin1"),
    Buffer.from(text("+15550100403")),
  ];
  const imported: number[] = [];
  for (const file of files) imported.push((await upload(campaignId, file)).body.data.imported);
  assert.deepEqual(imported, [1, 0, 1, 1]);
  const { body } = await server.call("GET", `/user/leads?campaign_id=${campaignId}`);
  for (const { variables } of body.data) assert.deepEqual(variables, { name: "Zoë Müller" });
});

const preview = (text: string | Buffer<ArrayBuffer> | null, key = server.key) =>
  upload(0, text, {}, key, "import/preview");

test("[LD133] a preview shows the start of a file as the import reads it, with guessed columns", async () => {
  const { status, body } = await preview([
    "\ufeffVorname;Kundennummer;Mobil;Vorname;;{x}", "Eva;17;+49 151 11111111;Ann;z;", "",
    `${"Al".repeat(200)};18;+15550100201;;;`, "\"Bo;19;+15550100202;;;", ...Array.from(
      { length: 20_000 }, (_, at) => `Row ${at};20;none;;;`),
  ].join("\r\n").slice(0, 200_000));
  assert.equal(status, 200, JSON.stringify(body));
  const { columns, rows, ...rest } = body.data;
  assert.deepEqual(rest, {
    encoding: "utf-8", delimiter: ";", sheet: null, mapping: {
      phone_number: 3,
      variables: [{ column: 1, name: "Vorname" }, { column: 2, name: "Kundennummer" }],
    },
  });
  assert.deepEqual(columns.map((one: { numbers: number }) => one.numbers), [0, 0, 2, 0, 0, 0]);
  assert.equal(columns[5].name, "{x}");
  assert.deepEqual(rows[0], { row: 2, cells: ["Eva", "17", "+49 151 11111111", "Ann", "z", ""] });
  assert.deepEqual(rows.map(({ row }: { row: number }) => row), [2, 4, 6, 7, 8]);
  assert.equal(rows[1].cells[0], "Al".repeat(100));

  const guessed = async (text: string) => (await preview(text)).body.data.mapping.phone_number;
  assert.equal(await guessed("mobile,number\n+15550100201,+15550100202"), 2);
  assert.equal(await guessed("Telefon,Name\n0151 1111,Eva"), 1);
  assert.equal(await guessed("who,where\nEva,Ulm"), null);
  // A character of three bytes stands across the end of what is sent.
  const cut = Buffer.from(`phone\n${"€".repeat(100_000)}`).subarray(0, 256 * 1024);
  assert.equal((await preview(Buffer.from(cut))).body.data.encoding, "utf-8");
  const german = await preview(Buffer.from("phone|name\n+15550100201|Zoë", "latin1"));
  assert.deepEqual([german.body.data.encoding, german.body.data.delimiter], ["windows-1252", "|"]);
  assert.equal(german.body.data.rows[0].cells[1], "Zoë");

  assert.equal((await preview(null)).status, 422);
  assert.equal((await preview("")).status, 422);
  assert.equal((await preview(Array.from({ length: 101 }, (_, at) => `c${at}`).join(","))).status, 422);
  assert.equal((await preview(Buffer.alloc(256 * 1024 + 1, "a"))).status, 422);
  assert.equal((await preview("phone", "nobody")).status, 401);
});

test("[LD134] a mapping says which column is the number, which become variables and which are left out", async () => {
  const campaignId = await newCampaign();
  const text = "Wer;Rufnummer;phone;Rest\nEva;+15550100601;home;x\n;+15550100602;;y\n";
  const mapped = (mapping: unknown, file = text) => upload(
    campaignId, file, { mapping: typeof mapping === "string" ? mapping : JSON.stringify(mapping) });
  const { status, body } = await mapped({
    phone_number: 2, variables: [{ column: 1, name: "first_name" }, { column: 3, name: "place" }],
  });
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual([body.data.imported, body.data.failed], [2, 0]);
  assert.equal((await mapped({ phone_number: 2 }, "a;b\n;+15550100603")).body.data.imported, 1);
  const { body: list } = await server.call("GET", `/user/leads?campaign_id=${campaignId}`);
  assert.deepEqual(list.data.map((one: { variables: object }) => one.variables),
    [{}, {}, { first_name: "Eva", place: "home" }]);

  const one = { column: 1, name: "a" };
  const names = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ column: at + 2, name: `v${at}` }));
  for (const wrong of [
    "", "2", "[", "null", "[]", {}, { phone_number: 0 }, { phone_number: 1.5 }, { phone_number: 5 },
    { phone_number: 1, more: 1 }, { phone_number: 1, variables: {} },
    { phone_number: 1, variables: [one] }, { phone_number: 2, variables: [one, one] },
    { phone_number: 2, variables: [one, { column: 3, name: "a" }] },
    { phone_number: 2, variables: [{ column: 9, name: "a" }] },
    { phone_number: 2, variables: [{ column: 1, name: "{a}" }] },
    { phone_number: 2, variables: [{ column: 1, name: "__proto__" }] },
    { phone_number: 2, variables: [{ column: 1, name: "a".repeat(65) }] },
    { phone_number: 2, variables: [{ ...one, more: 1 }] },
    { phone_number: 1, variables: names(51) },
  ]) {
    const refused = await mapped(wrong);
    assert.equal(refused.status, 422, JSON.stringify(wrong));
    assert.ok(Object.keys(refused.body.errors ?? { mapping: 1 })[0]?.startsWith("mapping"));
  }
  const { body: after } = await server.call("GET", `/user/leads?campaign_id=${campaignId}`);
  assert.equal(after.total, 3);
  const wide = Array.from({ length: 51 }, (_, at) => `c${at}`).join(",");
  const most = await mapped({ phone_number: 1, variables: names(50).map(({ column, name }) =>
    ({ column, name: name.padEnd(64, "ü") })) }, `${wide}\n+15550100604`);
  assert.equal(most.body.data?.imported, 1, JSON.stringify(most.body));
});

test("[LD9] a blocked number is blacklisted in every campaign and refused to make_call, later ones too", async () => {
  const number = "+15550100301";
  const campaignId = await newCampaign();
  const { body: { data: before } } = await add(campaignId, { phone_number: number });
  const block = (method: string, options: object) =>
    server.call(method, "/user/blocked-numbers", options);
  const done = await block("POST", { body: { phone_number: "+1 555 010 0301", reason: "Asked" } });
  assert.deepEqual([done.status, done.body.was_blocked], [200, false]);
  assert.deepEqual([done.body.data.phone_number, done.body.data.reason], [number, "Asked"]);
  assert.ok(done.body.blacklisted_leads > 0);
  const again = await block("POST", { body: { phone_number: number } });
  assert.deepEqual([again.body.was_blocked, again.body.blacklisted_leads], [true, 0]);
  assert.equal((await lead(before.id)).status, "blacklisted");
  const { body: { data: later } } = await add(await newCampaign(), { phone_number: number });
  assert.deepEqual([later.status, later.next_try_at], ["blacklisted", null]);
  const back = await server.call("PUT", `/user/leads/${before.id}`, { body: { status: "created" } });
  assert.equal(back.status, 422);
  const call = () => server.call("POST", "/user/make_call", {
    body: { phone_number: number, assistant_id: assistant.id },
  });
  const refused = await call();
  assert.deepEqual([refused.status, refused.body], [
    422, { message: "The phone number is on the do-not-call list." }]);
  assert.equal((await block("POST", { body: { phone_number: "x" } })).status, 422);
  const { body: list } = await block("GET", {});
  assert.deepEqual([list.total, list.data[0].phone_number], [1, number]);
  assert.equal((await block("GET", { key: stranger.key })).body.total, 0);
  const body = { phone_number: number };
  assert.equal((await block("DELETE", { key: stranger.key, body })).status, 404);
  assert.equal((await block("DELETE", { body })).status, 200);
  assert.equal((await block("DELETE", { body })).status, 404);
  assert.equal((await lead(before.id)).status, "blacklisted");
  const anew = await server.call("PUT", `/user/leads/${before.id}`, { body: { status: "created" } });
  assert.equal(anew.body.data.status, "created");
  assert.equal((await call()).status, 200);
});
