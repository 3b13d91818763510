// What becomes of the order of a call at a hosted carrier, whatever the carrier answers.
import assert from "node:assert/strict";
import type { Dialled } from "#providers/carriers/hosted/port.ts";
import { askUntil } from "#support/asking.ts";
import type { Endpoint } from "#support/endpoint.ts";

/**
 * The case's name, the status that the carrier answers (0: it drops the connection, null: nothing)
 * and the body, the expected kind of the order, its reason, and whether it may be placed again.
 */
export type OrderOutcome =
  [string, number | null, string, Dialled["kind"], RegExp | null, boolean?];

/** Each is sent once; `dial` receives what the carrier answers. */
export async function assertOrders(
  vendor: Endpoint, dial: (status: number | null) => Promise<Dialled>, outcomes: OrderOutcome[],
): Promise<void> {
  for (const [what, status, body, kind, message, retryable] of outcomes) {
    vendor.requests.length = 0;
    vendor.answer((_, response) => {
      if (status === 0) response.destroy();
      else if (status !== null) response.writeHead(status).end(body);
    });
    const dialled = await dial(status);
    assert.equal(dialled.kind, kind, what);
    // If nothing is answered, the order may still be in flight.
    await askUntil(() => vendor.requests.length, (count) => count > 0);
    assert.equal(vendor.requests.length, 1, what);
    if (dialled.kind === "placed") continue;
    assert.match(dialled.error.message, message!, what);
    assert.equal(dialled.error.retryable, retryable, what);
  }
}
