// The check that every answer of every test goes through: that it can fail, and what it says.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { checkAnswers, createAnswerCheck, type Answered } from "#support/answers.ts";
import { documentOf } from "#support/document.ts";

const check = createAnswerCheck(await documentOf());
const UUID = "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11";

const told = (changes: Partial<Answered>, body: unknown = {}): string | null => check({
  method: "GET", path: "/api/user/tools", status: 200, contentType: "application/json",
  text: JSON.stringify(body), ...changes,
});

const refusal = { status: 404, path: "/api/user/tools/7" };

test("[OA86] an answer missing from the document is refused by operation, status and place", () => {
  assert.match(told({}) ?? "", /^GET \/user\/tools answered 200, but \/ must be array/);
  assert.match(told({}, [{ id: "7" }]) ?? "", /but \/0.* must/);
  assert.match(told({ status: 418 }) ?? "", /^GET \/user\/tools answered 418, which/);
  assert.match(told({ contentType: "text/html" }) ?? "", /with text\/html, .* application\/json/);
  assert.match(told({ method: "PUT" }, []) ?? "", /^PUT \/user\/tools answered 200/);
  assert.match(told({ path: "/api/user/nowhere" }) ?? "", /^GET \/api\/user\/nowhere answered 200/);
  assert.match(told(refusal, { text: "no" }) ?? "", /^GET \/user\/tools\/\{id\} answered 404, but/);
  const more = { message: "Tool not found", secret: "x" };
  assert.match(told(refusal, more) ?? "", /additional properties .*secret/);
  assert.match(
    told({ path: `/api/conversations/${UUID}/messages`, method: "POST", contentType: "" }) ?? "",
    /with nothing, and the document has application\/json,text\/event-stream/);
});

test("[OA86] documented answers pass, and routes that do not exist may be refused in their words", () => {
  assert.equal(told(refusal, { message: "Tool not found" }), null);
  assert.equal(told({ path: "/api/user/nowhere", status: 404 }, { message: "Not found." }), null);
  assert.match(told({ path: "/api/user/nowhere", status: 404 }, { text: "no" }) ?? "", /but/);
  assert.equal(told({ path: "/widget.js", contentType: "text/javascript", text: "" }), null);
});

async function answering(t: TestContext, body: unknown) {
  const server = createServer((_, answer) => {
    answer.writeHead(200, { "Content-Type": "application/json; charset=utf-8" });
    answer.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const problems: string[] = [];
  const stop = checkAnswers(url, check, (problem) => problems.push(problem));
  t.after(() => {
    stop();
    server.close();
    server.closeAllConnections();
  });
  return { url, problems, stop };
}

test("[OA86] a test whose server gives an undocumented answer fails at that request", async (t) => {
  const { url, problems, stop } = await answering(t, { status: "ok", since: 1 });
  await assert.rejects(fetch(`${url}/livez?full=1`), /GET \/livez answered 200, but .*since/);
  await assert.rejects(fetch(new Request(`${url}/api/user/tools`, { method: "DELETE" })), /DELETE/);
  assert.equal(problems.length, 2);
  stop();
  assert.equal((await fetch(`${url}/livez`)).status, 200);
});
