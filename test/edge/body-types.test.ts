// Bodies that are not what JSON routes take.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTestServer } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

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
