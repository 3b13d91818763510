// Deeds that are asked for over the API are noted in the audit log once they are done, by whatever
// door they came: REST or MCP. Called by mount.ts.
import type { Logger } from "#core/logger.ts";
import type { Reply } from "#http/exchange.ts";
import type { Caller, KeyRoute, Route, RouteRequest } from "#http/route.ts";
import type { People } from "./people.ts";
import { actionOf } from "./rights.ts";

/** Field names kept of a request. */
const FIELDS_MAX = 50;

type Asked = RouteRequest<unknown, unknown> & { caller: Caller };

/** The route, with what it does on record; a route without an action as it is. */
export function noted(
  route: Route, { people, log }: { people: Pick<People, "audit" | "byOf">; log: Logger },
): Route {
  const action = actionOf(route);
  if (action === null || route.auth !== "key") return route;
  const handle: KeyRoute["handle"] = async (request) => {
    const reply = await route.handle(request);
    if (reply.status >= 400) return reply;
    const { caller, http } = request as unknown as Asked;
    try {
      await people.audit.add(caller.accountId, {
        ...await people.byOf(caller, http), action,
        ...factsOf(action, request as unknown as Asked, reply),
      });
    } catch (error) {
      // It is done: an answer that says otherwise would have it done twice.
      log.error({ err: error, action, req_id: http.id }, "a deed could not be noted");
    }
    return reply;
  };
  return { ...route, handle };
}

/** Names of fields, never what is in them: keys and passwords of other systems are among it. */
function factsOf(action: string, { id, uuid, body }: Asked, reply: Reply) {
  const type = action.split(".")[0] ?? action;
  const given = Object.keys((body ?? {}) as object).slice(0, FIELDS_MAX);
  const named = uuid || (id > 0 ? String(id) : null);
  return {
    object: { type, id: named ?? idIn("json" in reply ? reply.json : null) },
    details: given.length > 0 ? { fields: given } : {},
  };
}

/** The number of what was made, wherever the contract has it. */
function idIn(json: unknown): string | null {
  const whole = (json ?? {}) as Record<string, unknown>;
  for (const place of [whole, whole.data, whole.tool, whole.lead, whole.campaign]) {
    const { id, call_id: callId } = (place ?? {}) as Record<string, unknown>;
    const found = id ?? callId;
    if (typeof found === "number" || typeof found === "string") return String(found);
  }
  return null;
}
