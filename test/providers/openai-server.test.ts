// How servers that speak OpenAI's dialect are addressed. No test can reach Azure itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointOf } from "#core/values.ts";
import { keyHeaders } from "#providers/openai-server.ts";

test("[MO62] Azure OpenAI is sent the key as it wants it, every other server as a bearer token", () => {
  const azure = { "api-key": "k" };
  const others = { authorization: "Bearer k" };
  assert.deepEqual(keyHeaders("https://a.openai.azure.com/openai/v1", "k"), azure);
  assert.deepEqual(keyHeaders("https://a.services.ai.azure.com/models?api-version=1", "k"), azure);
  assert.deepEqual(keyHeaders("https://a.openai.azure.us/openai/v1", "k"), azure);
  assert.deepEqual(keyHeaders("https://api.openai.com/v1", "k"), others);
  assert.deepEqual(keyHeaders("http://127.0.0.1:11434", "k"), others);
  assert.deepEqual(keyHeaders("https://azure.com.example.org/v1?x=.azure.com", "k"), others);
  assert.deepEqual(keyHeaders("https://a.openai.azure.com/openai/v1", null), {});
});

test("[MO63] an address with a query keeps it behind the path of the request", () => {
  const azure = "https://a.openai.azure.com/openai/deployments/e";
  assert.equal(endpointOf(`${azure}?api-version=1`, "/embeddings"), `${azure}/embeddings?api-version=1`);
  assert.equal(endpointOf("http://127.0.0.1:80/v1/", "/embeddings"), "http://127.0.0.1/v1/embeddings");
});
