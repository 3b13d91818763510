// The wire of deleting conversations, and of operations on many of them at once.
import { Type } from "@sinclair/typebox";
import type { By } from "#features/accounts/audit.ts";
import { about } from "#core/schema.ts";
import { MessageSchema } from "#http/answers.ts";
import { json, type HttpRequest } from "#http/exchange.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import type { Bulk } from "./bulk.ts";

interface BulkRouteOptions {
  bulk: Bulk;
  byOf(caller: Caller, http: HttpRequest): Promise<By>;
}

const MANY_MAX = 100;

const UUID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
const Ids = (what: string) => Type.Array(
  Type.String({ pattern: `^${UUID}$` }),
  about(what, ["9b2f6c1e-5d0a-4c1b-8f0e-2a7d3c4b5e6f"]));
const many = {
  conversation_ids: {
    ...Ids("The conversations, by `id`. Ids that are not in the account are ignored."),
    minItems: 1, maxItems: MANY_MAX,
  },
};
const common = { tag: "Conversations", errorShape: "message" } as const;
const plain = (ids: string[]): string[] => [...new Set(ids.map((id) => id.toLowerCase()))];

export function bulkRoutes(options: BulkRouteOptions): Route[] {
  return [deleteRoute(options), bulkDeleteRoute(options), bulkLabelRoute(options)];
}

function deleteRoute({ bulk, byOf }: BulkRouteOptions): Route {
  return keyRoute({
    ...common,
    method: "DELETE",
    path: "/user/conversations/{uuid}",
    summary: "Delete a conversation",
    description: "Also deletes its messages, files, notes and labels. Its cost stays in the "
      + "ledger, and the audit log records who deleted it.",
    notFound: "Conversation not found",
    params: {
      uuid: Type.String(about("The conversation's id.", "9b2f6c1e-5d0a-4c1b-8f0e-2a7d3c4b5e6f")),
    },
    responses: {
      200: { description: "Deleted", schema: MessageSchema },
      409: { description: "A reply is being written or a call is in progress" },
    },
    handle: async ({ caller, uuid, http }) => {
      await bulk.remove(caller.accountId, uuid, await byOf(caller, http));
      return json(200, { message: "Conversation deleted successfully" });
    },
  });
}

function bulkDeleteRoute({ bulk, byOf }: BulkRouteOptions): Route {
  return keyRoute({
    ...common,
    method: "POST",
    path: "/user/conversations/bulk-delete",
    summary: `Delete up to ${MANY_MAX} conversations`,
    description: "Deletes each conversation as `DELETE /user/conversations/{uuid}` does. "
      + "Conversations that are busy are kept and listed in the response.",
    body: Type.Object(many),
    responses: {
      200: {
        description: "The outcome",
        schema: Type.Object({
          deleted: Ids("The ids that were deleted."),
          busy: Ids("Conversations kept because a reply is being written or a call is in "
            + "progress."),
        }),
      },
    },
    handle: async ({ caller, body, http }) => {
      const { deleted, busy } = await bulk.removeMany(
        caller.accountId, plain(body.conversation_ids), await byOf(caller, http));
      return json(200, { deleted, busy });
    },
  });
}

function bulkLabelRoute({ bulk, byOf }: BulkRouteOptions): Route {
  return keyRoute({
    ...common,
    method: "POST",
    path: "/user/conversations/bulk-label",
    summary: `Give up to ${MANY_MAX} conversations a label, or remove it`,
    body: Type.Object({
      ...many,
      label_id: Type.Integer(about("The label, from `GET /user/labels`.", 3)),
      remove: Type.Optional(Type.Boolean(about("True removes the label.", false))),
    }),
    responses: {
      200: {
        description: "What changed",
        schema: Type.Object({
          changed: Ids("Conversations whose labels changed."),
        }),
      },
    },
    handle: async ({ caller, body, http }) => {
      const changed = await bulk.label(
        caller.accountId, plain(body.conversation_ids),
        { labelId: body.label_id, isTaken: body.remove ?? false }, await byOf(caller, http));
      return json(200, { changed });
    },
  });
}
