// Where a visitor or a person at the desk uploads a file for the next message, and where both
// download it: the conversation's secret gives access, as to everything else in it.
import { Type } from "@sinclair/typebox";
import type { Assistants } from "#features/assistants/assistants.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about } from "#core/schema.ts";
import { isUuid } from "#core/values.ts";
import { Uuid } from "#http/answers.ts";
import { json, type HeaderMap, type HttpRequest, type Reply } from "#http/exchange.ts";
import { pouring } from "#http/pouring.ts";
import { keyRoute, publicRoute, type Route } from "#http/route.ts";
import { tooLargeFile } from "#http/server.ts";
import type { Access } from "./access.ts";
import type { Attachments } from "./attachments.ts";
import type { Conversations } from "./conversations.ts";
import { assertOwned } from "./outcomes.ts";
import type { Conversation } from "./records.ts";
import { AttachmentSchema, OF_VISITOR } from "./wire.ts";

interface AttachmentRouteOptions {
  attachments: Attachments;
  conversations: Pick<Conversations, "get">;
  getAssistant: Assistants["getById"];
  access: Access;
  /** The folder for uploads in progress. */
  uploadsDir: string;
}

/** A stranger's file may be shown or saved, but must never execute. */
function headersOf({ name, type }: { name: string; type: string }): HeaderMap {
  const kind = type.startsWith("image/") ? "inline" : "attachment";
  const plain = name.replaceAll(/[^\w. -]/g, "_");
  return {
    "Content-Disposition":
      `${kind}; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(name)}`,
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": "private, max-age=3600",
  };
}

export function attachmentRoutes(options: AttachmentRouteOptions): Route[] {
  return [keepRoute(options), deskKeepRoute(options), readRoute(options)];
}

const SUMMARY = "Upload a file for the next message";
const KINDS = "An image (PNG, JPEG, GIF, WebP) or PDF as the field `file` of multipart/form-data";
const GONE = "A file not attached to a message within a day is deleted.";
const KEPT = {
  201: {
    description: "Stored; pass its id in the `attachments` of a message",
    schema: Type.Object({
      status: Type.Literal(true, about("Always true.")),
      attachment: AttachmentSchema,
    }),
  },
  404: { description: "No such conversation" },
  422: { description: "The file is neither an image nor a PDF" },
  413: { description: "The file is too large" },
};

async function keep(
  attachments: Attachments, conversation: Conversation, { form }: HttpRequest,
): Promise<Reply> {
  if (!form?.file || form.file.bytes === 0) {
    throw fieldFault("file", "The file field is required.");
  }
  if (form.file.tooLarge) throw tooLargeFile(LIMITS.attachmentBytesMax);
  return json(201, { status: true, attachment: await attachments.keep(conversation, form.file) });
}

function keepRoute(options: AttachmentRouteOptions): Route {
  const { attachments, conversations, getAssistant, access, uploadsDir } = options;
  const admit = async ({ params: [given = ""] }: HttpRequest): Promise<void> => {
    const { assistantId, uuid } = await conversations.get(given.toLowerCase());
    attachments.assertAllowed(await getAssistant(assistantId));
    await access.assertMaySend(uuid);
  };
  return publicRoute({
    ...OF_VISITOR,
    method: "POST",
    path: "/conversations/{uuid}/attachments",
    summary: SUMMARY,
    description: `${KINDS}, if the assistant allows attachments. ${GONE}`,
    body: Type.Object({}),
    upload: { folder: uploadsDir, fileBytesMax: LIMITS.attachmentBytesMax, admit },
    responses: {
      ...KEPT,
      403: { description: "The assistant does not accept attachments" },
      429: { description: "Too many requests" },
    },
    handle: async ({ uuid, http }) => keep(attachments, await conversations.get(uuid), http),
  });
}

function deskKeepRoute({ attachments, conversations, uploadsDir }: AttachmentRouteOptions): Route {
  return keyRoute({
    ...OF_VISITOR,
    method: "POST",
    path: "/user/conversations/{uuid}/attachments",
    summary: `${SUMMARY}, as a person`,
    description: `${KINDS}, whether or not visitors may send files. ${GONE}`,
    body: Type.Object({}),
    upload: { folder: uploadsDir, fileBytesMax: LIMITS.attachmentBytesMax },
    responses: KEPT,
    handle: async ({ caller, uuid, http }) => {
      const found = await conversations.get(uuid);
      assertOwned(found, caller);
      return keep(attachments, found, http);
    },
  });
}

function readRoute({ attachments, conversations }: AttachmentRouteOptions): Route {
  return publicRoute({
    ...OF_VISITOR,
    method: "GET",
    path: "/conversations/{uuid}/attachments/{attachment_id}",
    params: { ...OF_VISITOR.params, attachment_id: Uuid("The attachment's `id`.") },
    summary: "Download a file of a conversation",
    notFound: "Attachment not found",
    responses: {
      200: {
        description: "The file as it was uploaded; browsers never render it as a page",
        schema: Type.String(about("The file's bytes.", "%PDF-1.7")), contentType: "application/pdf",
        otherContentType: ["image/png", "image/jpeg", "image/gif", "image/webp"],
      },
      404: { description: "No such conversation or attachment" },
    },
    handle: async ({ uuid, http: { params: [, id = ""] } }) => {
      const found = isUuid(id.toLowerCase())
        ? await attachments.read(await conversations.get(uuid), id) : null;
      if (!found) throw new Fault(404, "Attachment not found");
      return {
        status: 200, headers: headersOf(found), contentType: found.type,
        bytes: found.bytes, stream: pouring(found.body),
      };
    },
  });
}
