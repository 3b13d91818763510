// Requests to the API of a server under test, in this process or in one of its own.
import assert from "node:assert/strict";

export interface CallOptions {
  key?: string | null;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface CallResult {
  status: number;
  // Tests read bodies untyped; each asserts what it relies on.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
  headers: Headers;
}

/** `path` is below /api. Texts and forms are sent as they are, other bodies as JSON. */
export async function callApi(
  url: string, method: string, path: string, { key, body, headers }: CallOptions = {},
): Promise<CallResult> {
  const isForm = body instanceof FormData;
  const response = await fetch(`${url}/api${path}`, {
    method,
    headers: {
      ...(key ? { Authorization: `Bearer ${key}` } : {}),
      ...(body === undefined || isForm ? {} : { "Content-Type": "application/json" }),
      ...headers,
    },
    ...(body === undefined
      ? {}
      : { body: isForm || typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = (response.headers.get("content-type") ?? "").startsWith("application/json");
  const { status, headers: received } = response;
  return { status, body: isJson ? JSON.parse(text) : text, headers: received };
}

/** The answer to a GET, or to a POST if there is a body; it has to succeed. */
export async function ask(
  { url, key }: { url: string; key: string | null }, path: string, body?: object,
): Promise<CallResult["body"]> {
  const answer = await callApi(url, body ? "POST" : "GET", path, { key, body });
  assert.ok(answer.status < 300, `${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}
