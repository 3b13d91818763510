// Accounts in which there is much: what is far down in lists that grow and in what can be chosen,
// and what lists show of long texts.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { outreachOf } from "#support/calls/outreach.ts";
import { placedCalls } from "#support/carriers/placed-calls.ts";
import { noBrowser, until } from "#support/pages/browser.ts";
import { cutHeadings, drawn, startDashboard } from "#support/pages/dashboard-page.ts";
import { onlyProof } from "#support/proof.ts";
import { newAssistant, newConversation } from "#support/server.ts";

const skip = noBrowser();
const { server, withDashboard, close } = await startDashboard({ PARLEY_CALL_PRICE: "0.001" });
after(close);
const outbound = await newAssistant(server, {
  status: "active", type: "outbound", name: "Sales desk", post_call_evaluation: false,
});
const { answered, end } = placedCalls(() => server, outbound.id);

async function called(first: number, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    await end(await answered({ phone: `+1415555${first + at}` }));
  }
}

test("[DB671] reading far down in a growing list keeps the row and its focus", { skip }, async () => {
  await called(1000, 120);
  await withDashboard(async ({ page, go }) => {
    await go("/calls");
    const table = page.getByRole("table", { name: "Calls" });
    await table.getByRole("link").first().waitFor();
    // Where one page that was loaded ends and the next begins.
    await page.evaluate("scrollTo(0, 52 * 46)");
    const read = table.getByRole("link", { name: "+1 415 555 1070" });
    await read.focus();
    await drawn(page);
    const top = await read.evaluate((link) => Math.round(link.getBoundingClientRect().top));
    for (let more = 1; more <= 3; more += 1) {
      await called(2000 + 10 * more, 5);
      await page.locator(`table[aria-label=Calls][aria-rowcount="${121 + 5 * more}"]`).waitFor();
      await until(page, `Math.round(document.activeElement.getBoundingClientRect().top) === ${top}`);
    }
    assert.ok(await read.evaluate((link) => link === document.activeElement));
  });
});

test("[DB672] all folders and labels are offered, however many there are", { skip }, async () => {
  for (let at = 0; at < 120; at += 1) {
    for (const kind of ["folder", "label"]) {
      await server.call("POST", `/user/${kind}`, { body: { name: `The ${kind} ${at}` } });
    }
  }
  const conversation = await newConversation(server, outbound.uuid);
  await withDashboard(async ({ page, go }) => {
    await go("/assistants");
    for (const kind of ["Folder", "Label"]) {
      await page.getByLabel(kind, { exact: true })
        .selectOption({ label: `The ${kind.toLowerCase()} 119` });
    }
    await page.getByText("No matching assistants").waitFor();
    await go(`/inbox/${conversation}`);
    await page.getByLabel("The label 119").click();
    await page.getByText("It has the label “The label 119”.").waitFor();
  });
});

const NAMES = ["Spa 10", "Spa 9", "bar", "Árbol"];
const BY_NAME = ["Árbol", "bar", "Spa 9", "Spa 10"];

/** What can be chosen there beside the first, which is any or none. */
async function offered(page: Page, label: string): Promise<string[]> {
  const choice = page.getByRole("main").getByLabel(label, { exact: true });
  await choice.locator("option", { hasText: "Spa 9" }).waitFor({ state: "attached" });
  return (await choice.locator("option").allTextContents()).slice(1);
}

test("[DB674] assistants to choose from are sorted by name", { skip }, async () => {
  const { key } = await server.newAccount();
  for (const name of NAMES) await newAssistant(server, { name }, key);
  await withDashboard(async ({ page, go }) => {
    for (const path of ["/calls", "/conversations", "/inbox", "/"]) {
      await go(path);
      assert.deepEqual(await offered(page, "Assistant"), BY_NAME, path);
    }
  }, { key });
});

test("[DB684] folders, labels and campaigns to choose from are sorted by name", { skip }, async () => {
  const { newCaller, newCampaign } = outreachOf(server);
  const caller = await newCaller();
  const { key } = caller;
  for (const name of NAMES) {
    for (const kind of ["folder", "label"]) {
      await server.call("POST", `/user/${kind}`, { key, body: { name } });
    }
    await newCampaign(caller, { name });
  }
  await withDashboard(async ({ page, go }) => {
    await go("/assistants");
    for (const kind of ["Folder", "Label"]) {
      assert.deepEqual((await offered(page, kind)).slice(-4), BY_NAME, kind);
    }
    await go("/leads");
    assert.deepEqual(await offered(page, "Campaign"), BY_NAME);
  }, { key });
});

test("[DB770] an inbox queue can be read to its end, and does not shrink when it updates", { skip }, async () => {
  const caller = await server.newAccount();
  const { uuid } = await newAssistant(server, { status: "active" }, caller.key);
  const begin = async (name: string): Promise<void> => {
    await server.call("POST", "/conversations", {
      ...caller, body: { assistant_id: uuid, variables: { customer_name: name } },
    });
  };
  for (let at = 1; at <= 103; at += 1) await begin(`Visitor ${at}`);
  await withDashboard(async ({ page, go }) => {
    await go("/inbox");
    await page.getByRole("button", { name: "All 103" }).click();
    const rows = page.getByRole("list", { name: "Conversations" }).getByRole("link");
    await rows.nth(99).waitFor();
    assert.equal(await rows.count(), 100);
    await page.getByRole("button", { name: "Show more" }).click();
    await rows.nth(102).waitFor();
    assert.match(await rows.nth(102).innerText(), /Visitor 103/);
    await page.getByRole("button", { name: "Show more" }).waitFor({ state: "detached" });
    // Who comes now stands behind them.
    await begin("Visitor 104");
    await rows.nth(103).waitFor();
    assert.match(await rows.nth(103).innerText(), /Visitor 104/);
    assert.equal(await rows.count(), 104);
  }, caller);
});

test("[DB769] the ledger's page requests the balance, not a larger report that contains it", { skip }, async () => {
  await withDashboard(async ({ page, go }) => {
    await go("/keys");
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await go("/ledger");
    await page.getByText("of all entries").waitFor();
    assert.deepEqual(asked.filter((path) => /overview|balance/.test(path)), ["/api/user/balance"]);
  });
});

test("[DB768] a page that gets more events than a busy server can answer has one request of each kind open", { skip }, async () => {
  const caller = await server.newAccount();
  const call = (path: string, body: object) => server.call("POST", path, { ...caller, body });
  const { uuid } = await newAssistant(server, { status: "active" }, caller.key);
  const { body: talk } = await call("/conversations", { assistant_id: uuid });
  await withDashboard(async ({ page, go }) => {
    const asked = { me: 0, ledger: 0, balance: 0 };
    const late = Promise.withResolvers<void>();
    await go("/ledger");
    await page.getByRole("table").waitFor();
    await page.route(/user\/(me|ledger|balance)\b/, async (route) => {
      const { pathname } = new URL(route.request().url());
      const name = pathname.split("/").at(-1) as keyof typeof asked;
      asked[name] += 1;
      if (name !== "balance") await late.promise;
      await route.continue();
    });
    // All three change with the same events; one of them is answered.
    let entries = 1;
    for (; asked.balance < 4; entries += 1) {
      await call(`/conversations/${talk.conversation_id}/messages`, { message: "Are you open?" });
    }
    assert.deepEqual([asked.me, asked.ledger], [1, 1]);
    late.resolve();
    await page.locator(`table[aria-rowcount="${entries + 1}"]`).waitFor();
  }, caller);
});

test("[DB754] an assistant's options are sorted by name: knowledgebases, tools, transfer targets, and assistants for knowledge", { skip }, async () => {
  const { key } = await server.newAccount();
  const create = async (path: string, body: object): Promise<number> => {
    const made = await server.call("POST", `/user/${path}`, { key, body });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    return made.body.data.id;
  };
  for (const name of NAMES) {
    await newAssistant(server, { name }, key);
    await create("knowledgebases", { name, description: "" });
  }
  for (const name of ["b_tool", "a_tool"]) {
    await create("tools", {
      name, description: "Looks it up", endpoint: "http://127.0.0.1:1/", method: "POST",
    });
  }
  const base = await create("knowledgebases", { name: "Zoo", description: "" });
  const { id } = await newAssistant(server, { name: "Zoo" }, key);
  await withDashboard(async ({ page, go }) => {
    await go(`/knowledgebases/${base}`);
    assert.deepEqual(
      await offered(page, "Add it to an assistant"), [...BY_NAME, "Zoo"]);
    await go(`/assistants/${id}`);
    await page.getByRole("button", { name: "Open all sections" }).click();
    assert.deepEqual(await offered(page, "Knowledgebase"), [...BY_NAME, "Zoo"]);
    await page.getByLabel("Add a function").selectOption({ label: "Hand over to an assistant" });
    await page.getByRole("button", { name: "Add", exact: true }).first().click();
    assert.deepEqual(await offered(page, "Assistant"), BY_NAME);
    assert.deepEqual(await page.getByRole("switch", { name: /_tool$/ })
      .evaluateAll((all) => all.map((one) => (one as HTMLInputElement).labels?.[0]?.textContent)),
    ["a_tool", "b_tool"]);
  }, { key });
});

test("[DB774] at 1360 px calls and conversations show an assistant's name whole and sentences of last words", { skip: skip || onlyProof }, async () => {
  const name = "Harbour help desk";
  const words = "We open at nine; park behind us";
  const { uuid } = await newAssistant(server, { name, status: "active", initial_message: words });
  await newConversation(server, uuid);
  await server.call("POST", "/user/try_call", { body: { assistant_id: uuid, lines: ["When?"] } });
  for (const locale of ["de-DE", "en-US"]) {
    await withDashboard(async ({ page, go }) => {
      await page.setViewportSize({ width: 1360, height: 800 });
      for (const path of ["/conversations", "/calls"]) {
        await go(path);
        for (const text of path === "/calls" ? [name] : [name, words]) {
          const shown = page.locator("main td span", { hasText: text }).last();
          await shown.waitFor();
          assert.deepEqual(await shown.evaluate((one) => [
            one.scrollWidth <= one.clientWidth, one.scrollHeight <= one.clientHeight,
          ]), [true, true], `${text} in ${path}`);
        }
      }
    }, { context: { locale } });
  }
});

test("[DB775] at 1280 px lists show names, addresses and built-in words of two lines whole", { skip: skip || onlyProof }, async () => {
  const { key } = await server.newAccount();
  const made = async (path: string, body: object): Promise<number> => {
    const answer = await server.call("POST", `/user/${path}`, { body, key });
    assert.ok(answer.status < 300, JSON.stringify(answer.body));
    return ((answer.body as { data?: { id: number } }).data ?? answer.body as { id: number }).id;
  };
  const name = "Front desk of the bicycle workshop";
  const { id } = await newAssistant(server, { name, type: "outbound" }, key);
  const campaign = await made("campaigns", { name: "Spring check-up of bikes", assistant_id: id });
  await made("lead", { campaign_id: campaign, phone_number: "+4930123456781" });
  const description = "Says where an order is, and when it arrives";
  await made("tools", { name: "order", method: "GET", endpoint: "https://example.com", description });
  await made("api-keys", { name });
  const email = "annemarie.schmidt-rottluff@bicycles.example.com";
  await made("invitations", { email, role: "viewer" });
  const url = "example.com/hooks/production/events?tenant=bicycles";
  await made("webhook-endpoints", { url: `https://${url}` });
  await made("phone-numbers/sip-trunks", {
    sip_trunk_type: "number", phone_number: "+4930123456782", sip_username: "parley",
    sip_password: "correct horse", sip_address: "sip.example.com", sip_calling_format: "+e164",
    inbound_authorization_type: "auth", country_code: "DE",
  });
  for (const locale of ["de-DE", "en-US"]) {
    await withDashboard(async ({ page, go }) => {
      await page.setViewportSize({ width: 1280, height: 800 });
      for (const [path, text] of [
        ["/assistants", name], ["/campaigns", name], ["/leads", "Spring check-up of bikes"],
        ["/tools", description], ["/keys", name], ["/team", email], ["/webhooks", url],
        ["/numbers/sip-trunks", /^(Benutzername und Passwort|User name and password)$/],
      ] as const) {
        await go(path);
        const cell = page.locator("main td").filter({ hasText: text });
        await cell.waitFor();
        assert.deepEqual(await cell.evaluate((one) => [one, ...one.querySelectorAll("*")]
          .filter((part) => part.scrollHeight > part.clientHeight + 1 && part.clientHeight > 0
            || part.scrollWidth > part.clientWidth && part.clientWidth > 0)
          .map((part) => part.outerHTML)), [], path);
      }
    }, { key, context: { locale } });
  }
});

test("[DB776] at 1280 px labels and directions of calls break no word in German", { skip: skip || onlyProof }, async () => {
  const { uuid } = await newAssistant(server, { status: "active" });
  await server.call("POST", "/user/try_call", { body: { assistant_id: uuid, lines: ["When?"] } });
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await go("/calls");
    const direction = page.locator("main td.words").getByText("Eingehend").first();
    for (const word of [direction, page.locator("label", { hasText: /^Telefonnummer$/ })]) {
      await word.waitFor();
      const lines = await word.evaluate((element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        return range.getClientRects().length;
      });
      assert.equal(lines, 1, String(await word.textContent()));
    }
  }, { context: { locale: "de-DE" } });
});

test("[DB778] at 1200 px the headings of calls and conversations are whole, and an assistant's name", { skip: skip || onlyProof }, async () => {
  const name = "Harbour help desk";
  const { uuid } = await newAssistant(server, { name, status: "active" });
  await newConversation(server, uuid);
  await server.call("POST", "/user/try_call", { body: { assistant_id: uuid, lines: ["When?"] } });
  for (const locale of ["de-DE", "en-US"]) {
    await withDashboard(async ({ page, go }) => {
      await page.setViewportSize({ width: 1200, height: 800 });
      for (const path of ["/conversations", "/calls"]) {
        await go(path);
        const shown = page.locator("main td span", { hasText: name }).last();
        await shown.waitFor();
        assert.deepEqual(await cutHeadings(page), [], path);
        assert.ok(await shown.evaluate((one) => one.scrollWidth <= one.clientWidth
          && one.scrollHeight <= one.clientHeight), path);
      }
    }, { context: { locale } });
  }
});

test("[DB976] a list higher than browsers draw says at its end how many rows it leaves out", { skip }, async () => {
  const total = 2_000_000;
  await withDashboard(async ({ page, go }) => {
    await page.route("**/api/user/ledger?*", (route) => {
      const query = new URL(route.request().url()).searchParams;
      const first = total - (Number(query.get("page")) - 1) * 50;
      return route.fulfill({
        json: {
          total, data: Array.from({ length: 50 }, (_, at) => ({
            number: first - at, kind: "message", reference: `turn:1.${first - at}`, hash: "",
            amount: -0.01, balance_after: 1, created_at: "2026-01-01T00:00:00Z",
          })),
        },
      });
    });
    await go("/ledger");
    const list = page.getByRole("table", { name: "Entries, newest first" });
    await list.getByText("message 2000000").waitFor();
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
    const more = page.getByText(/^And [\d,]+ more: filter the list\.$/);
    await more.waitFor();
    const left = Number((await more.textContent() ?? "").replaceAll(/\D/g, ""));
    await list.getByText(`message ${left + 1}`, { exact: false }).waitFor();
    // Firefox draws up to here.
    assert.ok(await page.evaluate("document.documentElement.scrollHeight") as number < 17_895_697);
  });
});

test("[DB977] the overview's amounts are each on one line", { skip }, async () => {
  const { key, accountId } = await server.newAccount();
  assert.ok(accountId);
  await server.app.features.accounts.credit(accountId, 123_456_000_000);
  await withDashboard(async ({ page, go }) => {
    await go("/");
    const amount = page.locator(".overview-figures strong", { hasText: "$123,4" });
    await amount.waitFor();
    for (const width of [360, 1024, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      assert.ok(await amount.evaluate((one) =>
        one.scrollHeight < 2 * parseFloat(getComputedStyle(one).fontSize)
        && one.scrollWidth <= one.clientWidth), `${width} px`);
    }
  }, { key });
});
