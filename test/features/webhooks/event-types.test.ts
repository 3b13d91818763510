// What endpoints may ask for, and what the reference says of it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";

const server = await startTestServer({ env: { PARLEY_SPEECH: "loopback" } });
after(() => server.close());

test("[WH14] an endpoint can only ask for existing events, and the reference describes each", async () => {
  const ask = (events: string[]) => server.call("POST", "/user/webhook-endpoints", {
    body: { url: "https://hooks.example.com/parley", events },
  });
  const wrong = await ask(["call_ended", "calls_ended"]);
  const sentence = "There is no event calls_ended: GET /user/events has all of them.";
  assert.deepEqual([wrong.status, wrong.body.errors], [422, { events: [sentence] }]);
  const right = await ask(["call_ended"]);
  assert.equal(right.status, 201);
  const path = `/user/webhook-endpoints/${right.body.data.id}`;
  assert.equal((await server.call("PUT", path, { body: { events: ["nothing"] } })).status, 422);
  assert.deepEqual((await server.call("GET", path)).body.data.events, ["call_ended"]);
  const { id, uuid } = await newAssistant(server, { status: "active", type: "outbound" });
  const conversation = await newConversation(server, uuid);
  await server.call("POST", `/conversations/${conversation}/messages`, { body: { message: "Hi" } });
  const made = await server.call("POST", "/user/make_call", {
    body: { assistant_id: id, phone_number: "+15550100001" },
  });
  await server.call("POST", `/user/calls/${made.body.call_id}/end`);
  const { paths } = await (await fetch(`${server.url}/openapi.json`)).json() as {
    paths: Record<string, { get: { description: string } }>;
  };
  const told = paths["/user/events"]?.get.description ?? assert.fail();
  const { data } = (await server.call("GET", "/user/events?limit=100")).body as {
    data: Record<string, unknown>[];
  };
  assert.ok(data.length > 3, JSON.stringify(data));
  for (const { id: _id, created_at: _at, type, ...members } of data) {
    const row = told.split("\n").find((line) => line.startsWith(`| \`${String(type)}\` |`));
    for (const name of Object.keys(members)) {
      assert.ok(row?.includes(`\`${name}\``), `${String(type)} ${name}`);
    }
  }
});

test("[WH15] an event is published with whether webhooks wait for it; unwanted ones trigger no lookup", async () => {
  const { accountId, key } = await server.newAccount({ balance: "0" });
  const path = "/user/webhook-endpoints";
  const made = await server.call("POST", path, {
    key, body: { url: "https://hooks.example.com/parley", events: ["call_ended"] },
  });
  const change = (body: object) =>
    server.call("PUT", `${path}/${made.body.data.id}`, { key, body });
  /** What the event of a changed balance says. */
  const says = async (): Promise<boolean> => {
    const { bus, accounts } = server.app.features;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const end = bus.watch((events) => {
      const event = events.find((one) => one.accountId === accountId);
      if (event?.type === "balance_changed") resolve(event.hasWebhooks === true);
    });
    await accounts.credit(accountId, 1_000_000);
    return promise.finally(end);
  };
  assert.equal(await says(), false);
  await change({ events: ["balance_changed"] });
  assert.equal(await says(), true);
  // It is kept to be sent again by hand.
  await change({ status: "disabled" });
  assert.equal(await says(), false);
  const { data } = (await server.call("GET", "/user/webhook-deliveries", { key })).body as {
    data: { state: string }[];
  };
  assert.equal(data[0]?.state, "dead");
});
