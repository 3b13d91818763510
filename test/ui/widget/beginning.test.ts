// How a chat begins: the questions before it, which the server minds, and the greeting that comes
// by itself.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, test } from "node:test";
import { isOn } from "#ui/widget/greeting.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { assertAccessible, startWorld } from "#support/pages/widget-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const { server, host, withWidget, close } = await startWorld();
after(close);

const form = {
  title: "Who is it?",
  fields: [
    { name: "email", label: "Your e-mail", type: "email", required: true },
    { name: "phone", label: "Telephone", type: "tel" },
  ],
};

test("[WG221] no chat starts without the answers the assistant requires, even over the API", async () => {
  const { uuid } = await newAssistant(server, { widget_settings: { form } });
  const create = (variables: object, type = "widget") =>
    server.call("POST", "/conversations", { body: { assistant_id: uuid, variables, type } });
  for (const variables of [{}, { email: " " }, { email: "ada" }, { email: "a@b.example", phone: "no" }]) {
    const { status } = await create(variables);
    assert.equal(status, 422, JSON.stringify(variables));
  }
  assert.equal((await create({ email: "a@b.example", phone: "+49 30 1234567" })).status, 200);
  assert.equal((await create({ email: "a@b.example" })).status, 200);
  // The owner's own test is no visitor.
  assert.equal((await create({}, "test")).status, 200);
  const wrong = await server.call("POST", "/user/assistant", {
    body: { name: "A", widget_settings: { form: { fields: [{ name: "a b", label: "x" }] } } },
  });
  assert.equal(wrong.status, 422);
});

test("[OA89] a form field may be named like an object's built-in property; an unanswerable name is refused", async () => {
  const of = (name: string) => ({ widget_settings: { form: {
    fields: [{ name, label: "x", required: true }],
  } } });
  const { uuid } = await newAssistant(server, of("toString"));
  const create = (variables: object) =>
    server.call("POST", "/conversations", { body: { assistant_id: uuid, variables } });
  assert.equal((await create({})).status, 422);
  assert.equal((await create({ toString: "Ada" })).status, 200);
  for (const name of ["__proto__", "constructor", "prototype"]) {
    const { status } = await server.call("POST", "/user/assistant", {
      body: { name: "A", system_prompt: "Help.", ...of(name) },
    });
    assert.equal(status, 422, name);
  }
});

test("[OA91] two form fields of one name are refused", async () => {
  const field = { name: "email", label: "x" };
  const { status, body } = await server.call("POST", "/user/assistant", { body: {
    name: "A", system_prompt: "Help.", widget_settings: { form: { fields: [field, field] } },
  } });
  assert.equal(status, 422);
  assert.deepEqual(body.errors, { "widget_settings.form.fields.1.name": [
    "The widget settings.form.fields.1.name has a duplicate value."] });
});

test("[WG222] the form's questions are asked, and their answers become the conversation's variables", { skip }, async () => {
  await withWidget({ settings: { widget_settings: { form } } }, async (seen) => {
    const { page } = seen;
    await seen.launcher.click();
    await page.getByText("Who is it?").waitFor();
    await page.getByLabel("Telephone (optional)").waitFor();
    await assertAccessible(seen);
    await page.getByLabel("Your e-mail").fill("ada@shop.example");
    const made = page.waitForResponse((response) =>
      response.url().endsWith("/api/conversations") && response.ok());
    await page.getByRole("button", { name: "Start the chat" }).click();
    const { conversation_id: uuid } = await (await made).json() as { conversation_id: string };
    await seen.box.waitFor();
    const { body } = await server.call("GET", `/conversations/${uuid}`);
    assert.deepEqual(body.variables, { email: "ada@shop.example" });
  });
});

test("[WG452] a widget that is switched off is shown nowhere, not even for a moment, until it is on again", { skip }, async () => {
  await withWidget({}, async ({ page, launcher }, uuid) => {
    await launcher.waitFor();
    const switched = async (enabled: boolean): Promise<void> => {
      const { id } = await server.app.features.assistants.getByUuid(uuid);
      const { status, body } = await server.call("PATCH", `/user/assistant/${id}`, {
        body: { widget_settings: { enabled } },
      });
      assert.equal(status, 200, JSON.stringify(body));
    };
    await switched(false);
    await page.reload();
    await launcher.waitFor({ state: "detached" });
    const asked = page.waitForRequest(/\/api\/widget\//);
    await page.route(/\/api\/widget\//, () => undefined);
    await page.reload();
    await asked;
    assert.equal(await launcher.isVisible(), false);
    await page.unroute(/\/api\/widget\//);
    await switched(true);
    await page.reload();
    await launcher.waitFor();
  });
});

test("[WG223] the greeting appears by itself on its pages, once per visitor", { skip }, async () => {
  assert.equal(isOn(["/shop/*"], "/shop/bikes"), true);
  assert.equal(isOn(["/shop", "/cart"], "/shop/bikes"), false);
  assert.equal(isOn([], "/"), true);
  const greeting = { text: "May we help you?", after_seconds: 0 };
  await withWidget({ settings: { widget_settings: { greeting } } }, async (seen) => {
    const { page } = seen;
    const words = page.getByRole("button", { name: "May we help you?" });
    await words.waitFor();
    await assertAccessible(seen);
    await page.reload();
    await seen.launcher.waitFor();
    await page.waitForTimeout(300);
    assert.equal(await words.isVisible(), false);
    // As if it had been long ago.
    await page.evaluate(`for (const key of Object.keys(localStorage)) {
      if (key.includes("greeted")) localStorage.setItem(key, "1");
    }`);
    await page.reload();
    await words.click();
    await seen.box.waitFor();
    assert.equal(await words.isVisible(), false);
  });
  await withWidget({
    settings: { widget_settings: { greeting: { ...greeting, pages: ["/elsewhere"] } } },
  }, async (seen) => {
    await seen.launcher.waitFor();
    await seen.page.waitForTimeout(300);
    assert.equal(await seen.page.getByText("May we help you?").isVisible(), false);
  });
});

const signed = (secret: string, id: string) =>
  createHmac("sha256", secret).update(id).digest("hex");
const newSecret = async (assistant: number): Promise<string> => {
  const made = await server.call("POST", `/user/assistants/${assistant}/identity-secret`);
  assert.equal(made.status, 201);
  return made.body.secret as string;
};

test("[WG224] a signed visitor continues their conversation; an id without its signature is refused and shows nothing", async () => {
  const { id, uuid } = await newAssistant(server, { widget_settings: { form } });
  const state = () => server.call("GET", `/user/assistants/${id}/identity-secret`);
  const create = (visitor: object, more: object = {}) => server.call("POST", "/conversations", {
    body: { assistant_id: uuid, visitor, variables: { email: "ada@shop.example" }, ...more },
  });
  assert.deepEqual((await state()).body, { is_set: false, changed_at: null });
  assert.equal((await create({ id: "ada", hash: "00" })).status, 403, "nothing to sign with");
  const secret = await newSecret(id);
  assert.equal((await state()).body.is_set, true);
  assert.equal(JSON.stringify((await state()).body).includes(secret), false);
  const ada = { id: "ada", hash: signed(secret, "ada"), name: "Ada", email: "ada@shop.example" };
  const first = await create(ada);
  assert.equal(first.status, 200);
  const mine = first.body.conversation_id as string;
  const wrongs = [
    { id: "ada" }, { id: "ada", hash: "" }, { id: "ada", hash: signed(secret, "bo") },
    { id: "ada", hash: signed("guessed", "ada") }, { id: "ada", hash: ada.hash.slice(0, 62) },
    { id: "ada ", hash: ada.hash },
  ];
  for (const wrong of wrongs) {
    const { status, body } = await create(wrong);
    assert.ok(status === 403 || status === 422, JSON.stringify(wrong));
    assert.equal(JSON.stringify(body).includes(mine), false);
  }
  // Another device, without the answers, at the same moment as a third one.
  const elsewhere = await Promise.all([1, 2].map(() => create(ada, { variables: {} })));
  assert.deepEqual(elsewhere.map(({ body }) => body.conversation_id), [mine, mine]);
  const bo = await create({ id: "bo", hash: signed(secret, "bo") });
  assert.notEqual(bo.body.conversation_id, mine);
  const anew = await create(ada, { anew: true });
  assert.notEqual(anew.body.conversation_id, mine);
  assert.equal((await create(ada)).body.conversation_id, anew.body.conversation_id, "the newest");
  const { data } = (await server.call("GET", `/user/conversations/${mine}`)).body;
  assert.equal(data.visitor_id, "ada");
  assert.deepEqual(data.variables,
    { email: "ada@shop.example", customer_name: "Ada", customer_email: "ada@shop.example" });
  // Signed for another assistant of the account, it is nobody.
  const other = await newAssistant(server, {});
  await newSecret(other.id);
  const there = await server.call("POST", "/conversations", {
    body: { assistant_id: other.uuid, visitor: ada },
  });
  assert.equal(there.status, 403);
});

test("[WG225] the previous identity secret is valid until there are two newer ones; other accounts cannot make one", async () => {
  const { id, uuid } = await newAssistant(server, {});
  const secrets = [await newSecret(id), await newSecret(id)];
  const create = (secret: string) => server.call("POST", "/conversations", {
    body: { assistant_id: uuid, visitor: { id: "ada", hash: signed(secret, "ada") } },
  });
  const found = await Promise.all(secrets.map(create));
  assert.deepEqual(found.map(({ status }) => status), [200, 200]);
  const [first = ""] = secrets;
  await newSecret(id);
  assert.equal((await create(first)).status, 403, "two secrets ago");
  const stranger = await server.newAccount();
  const made = await server.call("POST", `/user/assistants/${id}/identity-secret`, { key: stranger.key });
  assert.equal(made.status, 404);
});

test("[WG226] a signed visitor's widget shows their chat on another device, and nothing of it after sign-out", { skip }, async () => {
  await withWidget({ settings: { widget_settings: { form } }, expects: /data-user-id was refused/ }, async (seen, uuid) => {
    const { data } = (await server.call("GET", "/user/assistants/get?per_page=50")).body as {
      data: { id: number; uuid: string }[];
    };
    const id = data.find((one) => one.uuid === uuid)?.id ?? 0;
    const secret = await newSecret(id);
    const { body } = await server.call("POST", "/conversations", {
      body: {
        assistant_id: uuid, visitor: { id: "ada", hash: signed(secret, "ada") },
        variables: { email: "ada@shop.example" },
      },
    });
    await server.call("POST", `/conversations/${body.conversation_id}/messages`, {
      body: { message: "From my telephone" },
    });
    const tag = (hash: string) => host.add({
      attributes: {
        "data-assistant": uuid, "data-open": "true", "data-user-id": "ada", "data-user-hash": hash,
      },
    });
    await seen.page.goto(tag(signed(secret, "ada")));
    await seen.log.getByText("From my telephone").waitFor();
    await seen.page.reload();
    await seen.log.getByText("From my telephone").waitFor();
    // A hash of somebody else's.
    const refused = seen.page.waitForResponse((response) =>
      response.url().endsWith("/api/conversations") && response.status() === 403);
    await seen.page.goto(tag(signed(secret, "bo")));
    await refused;
    await seen.page.goto(host.add({ attributes: { "data-assistant": uuid } }));
    await seen.launcher.click();
    await seen.page.getByText("Who is it?").waitFor();
    assert.equal(await seen.page.getByText("From my telephone").count(), 0);
    const kept = await seen.page.evaluate("JSON.stringify([localStorage, sessionStorage])") as string;
    assert.equal(kept.includes("From my telephone"), false);
  });
});

test("[WG562] a chat that could not start says so, and not that a message was not sent", { skip }, async () => {
  await withWidget({}, async ({ page, launcher, panel, log }) => {
    const retry = page.getByRole("button", { name: "Try again" });
    let status = 0;
    await page.route("**/api/conversations", (route) => status === 0 ? route.abort()
      : route.fulfill({ status, json: {}, headers: { "Access-Control-Allow-Origin": "*" } }));
    await launcher.click();
    for (status of [0, 500]) {
      if (status > 0) await retry.click();
      await panel.getByText("The chat could not be started.").waitFor();
    }
    status = 429;
    await retry.click();
    await panel.getByText("The chat is busy right now.").waitFor();
    await page.unroute("**/api/conversations");
    await retry.click();
    await log.getByText("Hi!").waitFor();
  });
});
