// Calls from an extension's number over two nodes that are joined by NATS: its telephone system
// takes them from the node that is registered there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { askUntil } from "#support/asking.ts";
import { withoutPostgres } from "#support/engines.ts";
import { withoutNats } from "#support/nodes/nats.ts";
import { startNodes } from "#support/nodes/nodes.ts";
import { newAssistant } from "#support/server.ts";
import { createWire, responseText, type Wire } from "#support/sip/sip-phones.ts";
import { newTrunk } from "#support/sip/sip-trunks.ts";

/** A telephone system that takes every registration, and whose telephones are busy. */
async function beBusy({ heard, say }: Wire, kind: "REGISTER" | "INVITE"): Promise<void> {
  for (let number = 0; ; number += 1) {
    const { message, port } = await heard.event(kind, number);
    const { headers } = message;
    say(port, kind === "INVITE"
      ? responseText(message, 486)
      : responseText(message, 200, [
          `Contact: ${headers.get("Contact")};expires=${headers.get("Expires")}`,
        ]));
  }
}

test("[SC212] over NATS either of two nodes accepts a call from an extension's number, and the registered one dials", {
  skip: withoutPostgres || withoutNats,
}, async (t) => {
  const system = await createWire();
  t.after(() => system.close());
  for (const kind of ["REGISTER", "INVITE"] as const) void beBusy(system, kind);
  const nodes = await startNodes(2, {
    PARLEY_SIP_PORT: "0", PARLEY_SIP_HOST: "127.0.0.1", PARLEY_SPEECH: "loopback",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  });
  t.after(() => nodes.close());
  const { id } = await newTrunk(nodes.all[0]!, {
    sip_trunk_type: "extension", phone_number: "201", sip_address: "127.0.0.1",
    sip_port: system.peer.port,
  });
  const { port: owner } = await system.heard.event("REGISTER", 0);
  assert.ok(nodes.all.some(({ sipPort }) => sipPort === owner));
  await askUntil(() => Promise.all(nodes.all.map(({ app }) =>
    app.features.phoneNumbers.sipTrunks.placedBy(nodes.all[0]!.accountId, "201"))),
  (others) => others.filter((other) => other !== null).length === 1);
  const assistant = await newAssistant(nodes.door, {
    type: "outbound", status: "active", phone_number_id: id,
  });
  for (const [number, node] of nodes.all.entries()) {
    const made = await node.call("POST", "/user/make_call", {
      key: nodes.door.key,
      body: { assistant_id: assistant.id, phone_number: `+49301234000${number}` },
    });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const { port } = await system.heard.event("INVITE", number);
    assert.equal(port, owner, `asked of node ${number}`);
    const callId = made.body.call_id as number;
    await askUntil(
      () => node.call("GET", `/user/calls/${callId}`, { key: nodes.door.key }),
      ({ body: call }) => call.status === "busy");
  }
});
