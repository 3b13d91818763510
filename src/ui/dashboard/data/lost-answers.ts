// What this page asked the server to create and got no answer to: it may exist. When the person
// tries again, the same request has the same Idempotency-Key, and nothing is created twice.
import { newKey } from "./new-key.ts";

/** The keys of such requests, by what was asked. */
const lost = new Map<string, string>();

export const keyOf = (asked: string): string => lost.get(asked) ?? newKey();

/** 0: no answer. 409: the first request may not have ended. The others are a proxy's. */
const LEAVE_OPEN = new Set([0, 409, 502, 503, 504]);

export function noteAnswer(asked: string, key: string, status: number): void {
  if (LEAVE_OPEN.has(status)) lost.set(asked, key);
  else lost.delete(asked);
}

export const keyed = (fetchOf: typeof fetch): typeof fetch => async (input, init) => {
  const request = input instanceof Request ? new Request(input, init) : null;
  if (request?.method !== "POST" || request.headers.has("Idempotency-Key")) {
    return fetchOf(input, init);
  }
  const asked = `${request.url} ${await request.clone().text()}`;
  const key = keyOf(asked);
  request.headers.set("Idempotency-Key", key);
  let status = 0;
  try {
    const response = await fetchOf(request);
    ({ status } = response);
    return response;
  } finally {
    noteAnswer(asked, key, status);
  }
};
