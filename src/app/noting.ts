// Records deeds asked for over the API in the audit log, whether they come by REST or by MCP. The
// command that carries one out writes the entry in its own transaction (storage/deeds.ts); a deed
// that no command carries out is recorded here once it is done. Called by mount.ts.
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

/** The most field names recorded for a request. */
const FIELDS_MAX = 50;

/** Wraps the route so that its deeds are recorded; a route without an action stays as it is. */
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
        // What is being created has no id yet; the path's id is that of its parent.
        objectId: action.endsWith(".create") ? null : placed,
        // Never the values: they include keys and passwords of other systems.
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

/** For deeds that change nothing in the database: no change there is without its entry. */
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
    // The deed is done: answering with an error would make the client repeat it.
    log.error({ err: error, action, req_id: requestId }, "could not write to the audit log");
  }
}

/** The id of what was created, wherever the contract puts it. */
function idIn(json: unknown): string | null {
  const whole = (json ?? {}) as Record<string, unknown>;
  for (const place of [whole, whole.data]) {
    const { id, call_id: callId } = (place ?? {}) as Record<string, unknown>;
    const found = id ?? callId;
    if (typeof found === "number" || typeof found === "string") return String(found);
  }
  return null;
}
