// The Idempotency-Key of all that the dashboard asks for with a POST. Browsers repeat a POST by
// themselves where a kept connection was closed in place of an answer, and people press the button
// again: by the key the server knows that it is the same, and creates nothing twice.
import { newKey } from "./new-key.ts";

/** The keys of what was asked for and is not answered yet, by what it says. */
const unanswered = new Map<string, string>();

export function keyOf(asked: string): string {
  const key = unanswered.get(asked) ?? newKey();
  unanswered.set(asked, key);
  return key;
}

/** A failure, or an answer that says to wait, leaves open what became of the request. */
export function noteAnswer(asked: string, status: number, retryAfter: string | null): void {
  if (status < 500 && retryAfter === null) unanswered.delete(asked);
}

export const keyed = (fetchOf: typeof fetch): typeof fetch => async (input, init) => {
  const method = init?.method ?? (input instanceof Request ? input.method : "GET");
  if (method !== "POST") return fetchOf(input, init);
  const given = new Request(input, init);
  if (given.headers.has("idempotency-key")) return fetchOf(given);
  const body = await given.clone().text();
  const asked = `${given.url} ${body}`;
  // A body that was read is a stream from then on, which browsers send otherwise.
  const request = new Request(given, body === "" ? {} : { body });
  request.headers.set("idempotency-key", keyOf(asked));
  const response = await fetchOf(request);
  noteAnswer(asked, response.status, response.headers.get("retry-after"));
  return response;
};
