// Deeds that are asked for over the API are on record in the audit log, whichever door they came
// by: REST or MCP. The command that does one notes it in its own transaction (storage/deeds.ts);
// what no command does is noted here once it is done. Called by mount.ts.
import { during, type Deed } from "#core/deed.ts";
import type { Logger } from "#core/logger.ts";
import type { Reply } from "#http/exchange.ts";
import type { KeyRoute, Route } from "#http/route.ts";
import type { System } from "#core/system.ts";
import type { People } from "./people.ts";
import { actionOf } from "./rights.ts";

interface Options {
  people: Pick<People, "audit" | "byOf">;
  system: System;
  log: Logger;
}

/** Field names kept of a request. */
const FIELDS_MAX = 50;

/** The route, with what it does on record; a route without an action as it is. */
export function noted(route: Route, options: Options): Route {
  const action = actionOf(route);
  if (action === null || route.auth !== "key") return route;
  const { people: { audit, byOf }, system } = options;
  const handle: KeyRoute["handle"] = async (request) => {
    const { caller, http, id, uuid, body } = request;
    const placed = uuid || (http.params.at(-1) ?? (id > 0 ? String(id) : null));
    const deed: Deed = {
      state: "open",
      note: {
        accountId: caller.accountId, action, now: system.now(), ...await byOf(caller, http),
        // What is made has no number yet; the path then names what it is made in.
        objectId: action.endsWith(".create") ? null : placed,
        // Never what is in them: keys and passwords of other systems are among it.
        fields: Object.keys(body).slice(0, FIELDS_MAX),
      },
    };
    try {
      const reply = await during(deed, () => route.handle(request));
      if (deed.state !== "noted" && reply.status < 400) await add(options, deed, reply, http.id);
      return reply;
    } finally {
      if (deed.state === "noted") audit.publish(caller.accountId);
    }
  };
  return { ...route, handle };
}

/** Nothing of it is in the database, so that nothing is there without its entry. */
async function add(
  { people: { audit }, log }: Options, { note }: Deed, reply: Reply, requestId: string,
): Promise<void> {
  const { accountId, actor, action, address, objectId, fields } = note;
  try {
    await audit.add(accountId, {
      actor, action, address,
      object: {
        type: action.split(".")[0] ?? action,
        id: objectId ?? idIn("json" in reply ? reply.json : null),
      },
      details: fields.length > 0 ? { fields } : {},
    });
  } catch (error) {
    // It is done: an answer that says otherwise would have it done twice.
    log.error({ err: error, action, req_id: requestId }, "a deed could not be noted");
  }
}

/** The number of what was made, wherever the contract has it. */
function idIn(json: unknown): string | null {
  const whole = (json ?? {}) as Record<string, unknown>;
  for (const place of [whole, whole.data]) {
    const { id, call_id: callId } = (place ?? {}) as Record<string, unknown>;
    const found = id ?? callId;
    if (typeof found === "number" || typeof found === "string") return String(found);
  }
  return null;
}
