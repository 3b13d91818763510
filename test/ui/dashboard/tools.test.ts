// The dashboard's pages of tools in a real browser: created, changed without showing a secret,
// tried against a real endpoint, deleted.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { askUntil } from "#support/asking.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { noBrowser, until } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant } from "#support/server.ts";
import { startMcpServer } from "#support/vendors/mcp-server.ts";

const skip = noBrowser();
const { server, withDashboard, close } = await startDashboard();
const endpoint = await startEndpoint();
after(async () => {
  await endpoint.close();
  await close();
});

const SECRET = "Bearer very-secret-7f3a";
const LONG = "unbroken".repeat(40);

// oxlint-disable-next-line typescript/no-explicit-any
const read = async (id: number): Promise<any> => (await server.call("GET", `/user/tools/${id}`)).body;

async function newTool(changes: Record<string, unknown> = {}): Promise<number> {
  const { status, body } = await server.call("POST", "/user/tools", {
    body: {
      name: "order_status", description: "Where an order is", method: "POST",
      endpoint: `${endpoint.url}/orders/{order_number}`,
      headers: [{ name: "Authorization", value: SECRET }],
      schema: [
        { name: "order_number", type: "string", description: "Its number" },
        { name: "count", type: "number", description: "How many" },
        { name: "is_express", type: "boolean", description: "Whether it is express" },
      ],
      ...changes,
    },
  });
  assert.equal(status, 201);
  return body.data.id as number;
}

test("[DB32] a tool is created; refusals appear beside their fields", { skip }, async () => {
  await withDashboard(async ({ page, go, look }) => {
    await go("/tools");
    await page.getByText("No tools yet").waitFor();
    await page.getByRole("link", { name: "New tool" }).first().click();
    await page.getByLabel("Name", { exact: true }).fill("Order Status");
    await page.getByRole("button", { name: "Add header" }).click();
    await page.getByRole("button", { name: "Add parameter" }).click();
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("Tool name must contain only lowercase letters").waitFor();
    const parameter = page.getByRole("group", { name: "Parameter 1" });
    assert.equal(await parameter.getByLabel("Name", { exact: true }).getAttribute("aria-invalid"), "true");
    await look();
    await page.getByLabel("Name", { exact: true }).first().fill("order_status");
    await page.getByLabel("Description", { exact: true }).first().fill("Where an order is");
    await page.getByLabel("Endpoint").fill(`${endpoint.url}/orders`);
    await page.getByLabel("Header", { exact: true }).fill("X-Key");
    await page.getByLabel("Value").fill(SECRET);
    await parameter.getByLabel("Name", { exact: true }).fill("number_of");
    await parameter.getByLabel("Type").selectOption("number");
    await parameter.getByLabel("Description").fill("Its number");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "order_status", level: 1 }).waitFor();
    const tool = await read(Number(new URL(page.url()).hash.split("/").at(-1)));
    assert.deepEqual(
      [tool.method, tool.timeout, tool.headers, tool.schema],
      [
        "POST", 10, [{ name: "X-Key", value: SECRET }],
        [{ name: "number_of", type: "number", description: "Its number" }],
      ]);
  });
});

test("[DB373] a tool is filled in from a cURL command, tried before it is saved, and its calls are listed", { skip }, async () => {
  endpoint.answer((_, response) => response.end('{"state":"shipped"}'));
  await withDashboard(async ({ page, go, look }) => {
    await go("/tools/new");
    await page.getByLabel("cURL command or OpenAPI document")
      .fill(`curl ${endpoint.url}/orders/state -H 'X-Key: ${SECRET}' -d '{"order_number":"4711"}'`);
    await page.getByRole("button", { name: "Fill in the form" }).click();
    await page.getByText("The form shows what was read.").waitFor();
    assert.equal(await page.getByLabel("Endpoint").inputValue(), `${endpoint.url}/orders/state`);
    await page.getByLabel("Description", { exact: true }).first().fill("Where an order is");
    await page.getByRole("textbox", { name: "order_number" }).fill("4711");
    await page.getByRole("button", { name: "Call the endpoint" }).click();
    await page.getByText("Status 200").waitFor();
    assert.equal(endpoint.requests.at(-1)?.headers["x-key"], SECRET);
    await look();
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "state", level: 1 }).waitFor();
    await page.getByText("No assistant has called it yet").waitFor();
    const id = Number(new URL(page.url()).hash.split("/").at(-1));
    const { tools, invokeTool } = server.app.features;
    const tool = await tools.find(server.accountId, id);
    assert.ok(tool);
    await invokeTool(tool, { order_number: "4711" }, { scope: "test:1", variables: {} });
    await page.reload();
    await page.getByRole("cell", { name: '{"state":"shipped"}' }).waitFor();
  });
});

test("[DB375] a tool of an MCP server is imported from its list, tried, and its description refreshed", { skip }, async () => {
  const weather = await startMcpServer();
  await withDashboard(async ({ page, go, look }) => {
    await go("/tools/new");
    await page.getByLabel("MCP server address").fill(weather.url);
    await page.getByLabel("Authorization").fill(SECRET);
    await page.getByRole("button", { name: "Read its list" }).click();
    await page.getByLabel("Tool, of 2").waitFor();
    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "get_weather");
    await page.getByRole("textbox", { name: "city" }).fill("Oslo");
    await page.getByRole("button", { name: "Call the endpoint" }).click();
    await page.getByText("Status 200").waitFor();
    assert.deepEqual(weather.cities, ["Oslo"]);
    await look();
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "get_weather", level: 1 }).waitFor();
    weather.describe("Now with tomorrow.");
    await page.getByRole("button", { name: "Read its description again" }).click();
    await page.getByText("Read again").waitFor();
    const description = page.getByLabel("Description", { exact: true }).first();
    await askUntil(() => description.inputValue(), (text) => text === "Now with tomorrow.");
    await look();
  });
  await weather.close();
});

test("[DB33] a stored header value is kept or replaced, never shown", { skip }, async () => {
  const id = await newTool({ headers: [{ name: "X-One", value: SECRET }, { name: "X-Two", value: SECRET }] });
  await withDashboard(async ({ page, go }) => {
    await go(`/tools/${id}`);
    const second = page.getByRole("group", { name: "Header 2" });
    await second.waitFor();
    const drawn = `document.documentElement.outerHTML
      + [...document.querySelectorAll("input, textarea")].map(({ value }) => value).join()`;
    assert.equal(String(await page.evaluate(drawn)).includes(SECRET), false);
    await second.getByLabel("Value").fill("other");
    await page.getByLabel("Timeout").fill("5");
    const sent = page.waitForRequest((request) => request.method() === "PATCH");
    await page.getByRole("button", { name: "Save" }).click();
    assert.deepEqual(Object.keys((await sent).postDataJSON() as object).sort(), ["headers", "timeout"]);
    await page.getByText("Saved", { exact: true }).waitFor();
    const { headers, timeout } = await read(id);
    assert.deepEqual(headers, [{ name: "X-One", value: SECRET }, { name: "X-Two", value: "other" }]);
    assert.equal(timeout, 5);
    assert.equal(await second.getByLabel("Value").inputValue(), "");
    await page.getByLabel("Endpoint").fill("nowhere");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The endpoint must be a valid URL.").waitFor();
    await page.getByRole("link", { name: "Calls" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Leave" }).click();
    await page.getByRole("heading", { name: "Calls", level: 1 }).waitFor();
  });
});

test("[DB34] trying a tool shows the request, the response and what the model gets", { skip }, async () => {
  const id = await newTool();
  endpoint.answer((_, response) => {
    response.setHeader("content-type", "application/json").end(JSON.stringify({ state: LONG }));
  });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/tools/${id}`);
    const call = page.getByRole("button", { name: "Call the endpoint" });
    await call.click();
    const refused = page.getByRole("alert");
    await refused.waitFor();
    const before = endpoint.requests.length;
    await page.getByRole("textbox", { name: "order_number" }).fill("A 77");
    await page.getByRole("spinbutton", { name: "count" }).fill("2");
    await page.getByRole("combobox", { name: "is_express" }).selectOption("false");
    await call.click();
    const outcome = page.getByRole("region", { name: "Result" });
    await outcome.getByText("Status 200", { exact: true }).waitFor();
    await refused.waitFor({ state: "detached" });
    assert.equal(endpoint.requests.length, before + 1);
    const { url, body, headers } = endpoint.requests.at(-1)!;
    assert.equal(url, "/orders/A%2077");
    assert.deepEqual(JSON.parse(body), { count: 2, is_express: false });
    assert.equal(headers.authorization, SECRET);
    assert.match(await outcome.getByText(/^[\d,]+ ms$/).textContent() ?? "", /\d/);
    await outcome.getByText(`POST ${endpoint.url}/orders/A%2077`).waitFor();
    await outcome.getByLabel("Request body").getByText('"is_express": false').waitFor();
    await outcome.getByLabel("Response body").getByText(LONG).waitFor();
    await outcome.getByLabel("What the model receives").getByText(LONG).waitFor();
    await outcome.locator("summary").first().click();
    assert.equal((await page.content()).includes(SECRET), false);
    await look();
    endpoint.answer((_, response) => response.writeHead(503).end("down"));
    await call.click();
    await outcome.getByText("Status 503", { exact: true }).waitFor();
    await outcome.getByLabel("Response body").getByText("down").waitFor();
    await outcome.getByLabel("What the model receives").getByText("error").waitFor();
  });
});

test("[DB115] optional parameters, choices, lists, forms and fixed fields can be set and tried", { skip }, async () => {
  const id = await newTool({ endpoint: `${endpoint.url}/orders`, schema: [] });
  endpoint.answer((_, response) => response.end("{}"));
  await withDashboard(async ({ page, go, look }) => {
    await go(`/tools/${id}`);
    const parameter = async (at: number, name: string, type: string): Promise<void> => {
      await page.getByRole("button", { name: "Add parameter" }).click();
      const row = page.getByRole("group", { name: `Parameter ${at}` });
      await row.getByLabel("Name", { exact: true }).fill(name);
      await row.getByLabel("Type").selectOption(type);
      await row.getByLabel("Description").fill("What it is");
    };
    await parameter(1, "size", "number");
    await page.getByLabel("Choices").fill("26, 28");
    await parameter(2, "notes", "list of strings");
    await page.getByRole("group", { name: "Parameter 2" }).getByLabel("Required").uncheck();
    await page.getByLabel("Body", { exact: true }).selectOption("form");
    await page.getByRole("button", { name: "Add fixed field" }).click();
    const fixed = page.getByRole("group", { name: "Fixed field 1" });
    await fixed.getByLabel("Field", { exact: true }).fill("size");
    await fixed.getByLabel("Value").fill("{{who}}");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The field size is a parameter").waitFor();
    await fixed.getByLabel("Field", { exact: true }).fill("by");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    await look();
    const { schema, body_format, static_fields } = await read(id);
    assert.deepEqual({ schema, body_format, static_fields }, {
      schema: [
        { name: "size", type: "number", description: "What it is", enum: [26, 28] },
        {
          name: "notes", type: "array", items: { type: "string" }, description: "What it is",
          required: false,
        },
      ],
      body_format: "form",
      static_fields: [{ key: "by", value: "{{who}}" }],
    });
    await page.getByRole("combobox", { name: "size" }).selectOption("28");
    await page.getByRole("textbox", { name: "notes" }).fill("soon\nplease");
    await page.getByLabel("Variable who").fill("Eva");
    await page.getByRole("button", { name: "Call the endpoint" }).click();
    await page.getByText("Status 200", { exact: true }).waitFor();
    assert.equal(endpoint.requests.at(-1)!.body, "size=28&notes=soon&notes=please&by=Eva");
  });
});

test("[DB35] tools are found, and deleted after a question", { skip }, async () => {
  const id = await newTool({ name: "free_table", endpoint: `https://example.com/${LONG}` });
  await withDashboard(async ({ page, go, look }) => {
    await go("/tools");
    const table = page.getByRole("table", { name: "Tools" });
    await table.waitFor();
    await look();
    await page.getByLabel("Search").fill("free_t");
    await table.and(page.locator("[aria-rowcount='2']")).waitFor();
    await table.getByRole("link", { name: "free_table" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.equal((await read(id)).name, "free_table");
    await page.getByRole("button", { name: "Delete" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Tools", level: 1 }).waitFor();
    assert.equal((await server.call("GET", `/user/tools/${id}`)).status, 404);
  });
});

test("[DB573] a concurrent change of a tool is not overwritten unseen", { skip }, async () => {
  const id = await newTool();
  const bySomebodyElse = (body: object) => server.call("PATCH", `/user/tools/${id}`, { body });
  await withDashboard(async ({ page, go }) => {
    const description = page.getByLabel("Description", { exact: true }).first();
    await go(`/tools/${id}`);
    await description.fill("Mine");
    await bySomebodyElse({ description: "Theirs", timeout: 25 });
    await page.keyboard.press("Control+s");
    await page.getByRole("alert").getByText("Somebody else has changed this in the meantime.").waitFor();
    assert.equal(await description.getAttribute("aria-invalid"), "true");
    assert.deepEqual(
      [await description.inputValue(), await page.getByLabel("Timeout (s)").inputValue()],
      ["Mine", "25"]);
    assert.equal((await read(id)).description, "Theirs");
    await page.keyboard.press("Control+s");
    await page.getByText("Saved", { exact: true }).waitFor();
    assert.deepEqual([(await read(id)).description, (await read(id)).timeout], ["Mine", 25]);
    // What only others have changed stays, and is shown.
    await bySomebodyElse({ method: "PUT" });
    await description.fill("Mine again");
    await page.keyboard.press("Control+s");
    await page.getByRole("region", { name: "Unsaved changes" }).waitFor({ state: "detached" });
    assert.equal(await page.getByLabel("Method").inputValue(), "PUT");
    assert.deepEqual([(await read(id)).description, (await read(id)).method], ["Mine again", "PUT"]);
  });
});

test("[DB584] assistants, tools and the ledger keep their filters when people come back", { skip }, async () => {
  for (const name of ["Reception", "Night desk"]) await newAssistant(server, { name });
  await newTool({ name: "free_table" });
  await newTool({ name: "parcel_state" });
  await withDashboard(async ({ page, go }) => {
    const narrow = async (path: string, field: string, text: string): Promise<void> => {
      await go(path);
      await page.getByLabel(field, { exact: true }).fill(text);
    };
    const rows = page.locator("main table.list tbody tr");
    for (const [path, text] of [["/assistants", "Reception"], ["/tools", "free_table"]] as const) {
      await narrow(path, "Search", text);
      await until(page, `document.querySelector("table.list").ariaRowCount === "2"`);
      await rows.getByRole("link", { name: text }).click();
      await rows.first().waitFor({ state: "detached" });
      await page.goBack();
      await rows.getByText(text).waitFor();
      assert.equal(await page.getByLabel("Search", { exact: true }).inputValue(), text);
    }
    await narrow("/ledger", "Reference", "credit:");
    await go("/money");
    await page.getByRole("heading", { name: "Costs", exact: true }).waitFor();
    await page.goBack();
    await until(page, `document.querySelector("h1").textContent === "Ledger"`);
    assert.equal(await page.getByLabel("Reference", { exact: true }).inputValue(), "credit:");
  });
});

test("[DB644] the test chat of an assistant whose model calls no tools says so; other test chats do not", { skip }, async () => {
  const tool = await newTool({ name: "opening_hours" });
  const pathOf = async (model: number): Promise<string> => {
    const { id } = await newAssistant(server, { llm_model_id: model, tool_ids: [tool] });
    return `/assistants/${id}/test`;
  };
  await withDashboard(async ({ page, go, look }) => {
    const warning = page.getByText("No tool is called, because the offline model answers and does not call tools.");
    await go(await pathOf(2));
    await warning.waitFor();
    await look();
    await go(await pathOf(1));
    await page.getByText("Nothing here is charged.").waitFor();
    await warning.waitFor({ state: "detached" });
  });
});

test("[DB665] no browser fills the saved dashboard password into other secret fields", () => {
  const folder = join(import.meta.dirname, "../../../src/ui/dashboard/pages");
  const fields = globSync("**/*.tsx", { cwd: folder }).flatMap((file) =>
    readFileSync(join(folder, file), "utf8").match(/<TextField\s[^<]*?type="password"[^<]*/g) ?? []);
  assert.ok(fields.length > 4);
  // Browsers pass over `off` where a password is asked for.
  const filled = fields.filter((field) => !/autoComplete="(new|current)-password"/.test(field));
  assert.deepEqual(filled, []);
});
