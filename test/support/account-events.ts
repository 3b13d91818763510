// The events of an account's stream over HTTP: tests wait for them instead of polling.
import { createParser } from "eventsource-parser";

export interface AccountEvent {
  type: string;
  [member: string]: unknown;
}

/** The account's first event for which `holds` is true; it may be an old one. */
export async function accountEvent(
  { url, key }: { url: string; key: string | null }, holds: (event: AccountEvent) => boolean,
): Promise<AccountEvent> {
  const response = await fetch(`${url}/api/user/stream?after=0`, {
    headers: { Authorization: `Bearer ${key}`, "Last-Event-ID": "0" },
  });
  if (response.status !== 200 || !response.body) throw new Error(`stream: ${response.status}`);
  let found: AccountEvent | null = null;
  const parser = createParser({
    onEvent: ({ data }) => {
      const event = JSON.parse(data) as AccountEvent;
      if (holds(event)) found ??= event;
    },
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  while (!found) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the account's stream ended");
    parser.feed(value);
  }
  await reader.cancel();
  return found;
}
