// Bodies that are not what JSON routes take.
import assert from "node:assert/strict";
import { on, once } from "node:events";
import { after, test } from "node:test";
import { WebSocket } from "ws";
import { newAssistant, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
after(async () => {
  await server.close();
  await model.close();
});

test("[ER319] a body that is a form, or another type than JSON, is refused as what it was sent as", async () => {
  const send = async (body: BodyInit, headers: Record<string, string> = {}) => {
    const sent = await fetch(`${server.url}/api/conversations`, { method: "POST", body, headers });
    return [sent.status, (await sent.json() as { error: string }).error];
  };
  const refused = (type: string) => [400,
    `The request body is not valid JSON: it was sent as ${type}. `
      + "Send a JSON object, with Content-Type: application/json."];
  assert.deepEqual(await send(new URLSearchParams({ assistant_id: "none" })),
    refused("application/x-www-form-urlencoded"));
  assert.deepEqual(await send("<a/>", { "content-type": "Text/XML; charset=utf-8" }),
    refused("text/xml"));
  const form = new FormData();
  form.append("assistant_id", new Blob([new Uint8Array([255, 0])]));
  assert.deepEqual(await send(form), refused("multipart/form-data"));
  for (const type of ["application/json", "application/vnd.api+json", "no type"]) {
    assert.deepEqual(await send("{", { "content-type": type }),
      [400, "The request body is not valid JSON."]);
  }
  assert.deepEqual(await send('{"assistant_id":"none"}'), [404, "Assistant not found"]);
});

test("[ER755] half an emoji in a JSON body or frame is replaced before the model gets it", async () => {
  await server.app.features.accounts.credit(server.accountId, 1_000_000);
  const { uuid } = await newAssistant(server, { system_prompt: "You talk with {{who}}." });
  const created = await server.call("POST", "/conversations", {
    body: { assistant_id: uuid, variables: { who: "Eva\udc00", "x\ud83d": "1" } },
  });
  const talk = created.body.conversation_id as string;
  await server.call("POST", `/conversations/${talk}/messages`, { body: { message: "Hi \ud83d" } });
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/conversations/${talk}/socket`);
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "send", message: "\ude00 and 😀 \u005f" }));
  for await (const [data] of on(socket, "message")) {
    const frame = String(data);
    assert.doesNotMatch(frame, /\\ud[89a-f]/);
    if (frame.includes('"send_result"')) break;
  }
  socket.close();
  const [first, second] = model.requests.map(({ messages }) => JSON.stringify(messages));
  assert.match(first ?? "", /You talk with Eva\ufffd\..*"Hi \ufffd"/);
  assert.match(second ?? "", /"Hi \ufffd".*"\ufffd and 😀 _"/);
  const { variables } = (await server.call("GET", `/conversations/${talk}`)).body;
  assert.deepEqual(Object.keys(variables as object).filter((name) => !name.isWellFormed()), []);
});
