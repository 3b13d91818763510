// Files of messages: visitors attach them where the assistant's owner allows it, people at the desk
// always. Images and PDF, recognised by their first bytes and not by their names. They are in the
// file store under a uuid. Called by attachment-routes.ts, routes.ts and desk/routes.ts (send) and
// answering.ts (what a model may see).
import { open } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Instant, System } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import type { AttachmentBody } from "#events/events.ts";
import type { FileContent, Files } from "#files/files.ts";
import type { Removals } from "#files/removals.ts";
import type { ModelFile, Sight } from "#providers/models/port.ts";
import type { Conversation, Message } from "./records.ts";

export interface AttachmentStore {
  /** Records the file. False: the conversation has as many attachments as it may. */
  add(args: {
    accountId: number; conversationId: number; attachment: AttachmentBody; max: number;
    now: Instant;
  }): Promise<boolean>;
  /** The conversation's attachments among the ids, in the order of the ids. */
  find(conversationId: number, ids: string[]): Promise<AttachmentBody[]>;
  /** Attachments never sent and older than `before`, or whose conversation was deleted. */
  left(before: Instant, rows: number): Promise<{ accountId: number; id: string }[]>;
  /** Deletes the record, so that the file can be removed. False: it is no longer one of `left`. */
  forget(
    args: { accountId: number; id: string; before: Instant; now: Instant },
  ): Promise<boolean>;
}

interface AttachmentOptions {
  store: AttachmentStore;
  files: Files;
  removals: Pick<Removals, "expect" | "remove">;
  system: System;
}

const NAME_CHARS_MAX = 120;
const HEAD_BYTES = 16;

type Kind = readonly [type: string, sight: Sight, isOne: (head: Buffer) => boolean];
const beginsWith = (...bytes: number[]) => (head: Buffer): boolean =>
  bytes.every((byte, at) => head[at] === byte);
const KINDS: readonly Kind[] = [
  ["image/png", "image", beginsWith(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)],
  ["image/jpeg", "image", beginsWith(0xff, 0xd8, 0xff)],
  ["image/gif", "image", beginsWith(0x47, 0x49, 0x46, 0x38)],
  ["image/webp", "image", (head) =>
    head.toString("latin1", 0, 4) === "RIFF" && head.toString("latin1", 8, 12) === "WEBP"],
  ["application/pdf", "pdf", beginsWith(0x25, 0x50, 0x44, 0x46, 0x2d)],
];

export const fileNameOf = (id: string): string => `attachments/${id}`;

async function headOf(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer: head, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return head.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** A recognisable file name, without folders and control characters. */
const plainName = (name: string): string => {
  const last = name.replaceAll(/[\p{C}"<>|]/gu, "").split(/[/\\]/).at(-1)?.trim() ?? "";
  return [...last].slice(-NAME_CHARS_MAX).join("") || "file";
};

const note = ({ name, type }: AttachmentBody, role: Message["role"]): string => role === "operator"
  ? `[The colleague attached "${name}" (${type}), which you cannot see.]`
  : `[The visitor attached "${name}" (${type}), which you cannot see. People of the team can.]`;

/** What a model reads of one message's files. */
interface Seen {
  files: ModelFile[];
  /** A note on each file that it cannot see. */
  notes: string[];
}

/** Selects the newest files that a model can see; `messages` are newest first. */
const createSight = (files: Pick<Files, "read">) => async (
  messages: readonly Pick<Message, "role" | "attachments">[], sees: readonly Sight[],
): Promise<Seen[]> => {
  let left: number = LIMITS.attachmentsSeenMax;
  let bytes: number = LIMITS.attachmentsSeenBytesMax;
  const seen: Seen[] = [];
  for (const { role, attachments } of messages) {
    const one: Seen = { files: [], notes: [] };
    for (const attachment of attachments) {
      const [, sight] = KINDS.find(([type]) => type === attachment.type) ?? [];
      // Models accept files only from users, and a colleague's messages are on the assistant's
      // side.
      const isSeen = role === "user" && sight !== undefined && sees.includes(sight) && left > 0
        && attachment.bytes <= bytes;
      const content = isSeen ? await files.read(fileNameOf(attachment.id)) : null;
      if (sight === undefined || !content) {
        one.notes.push(note(attachment, role));
        continue;
      }
      left -= 1;
      bytes -= attachment.bytes;
      const data = (await buffer(content.body)).toString("base64");
      one.files.push({ sight, name: attachment.name, type: attachment.type, data });
    }
    seen.push(one);
  }
  return seen;
};

export function createAttachments({ store, files, removals, system }: AttachmentOptions) {
  return {
    /** Throws Fault 403 where the owner does not allow it. */
    assertAllowed: (assistant: Pick<Assistant, "settings">): void => {
      if (assistant.settings.widget_settings.attachments !== true) {
        throw new Fault(403, "This assistant does not accept attachments.");
      }
    },
    /** Throws Fault 422 for a file of another kind. The local file stays the caller's to remove. */
    keep: async (
      { id: conversationId, accountId }: Pick<Conversation, "id" | "accountId">,
      file: { path: string; name: string; bytes: number },
    ): Promise<AttachmentBody> => {
      const head = await headOf(file.path);
      const [type] = KINDS.find(([, , isOne]) => isOne(head)) ?? [];
      if (type === undefined) {
        throw fieldFault("file", "Only images (PNG, JPEG, GIF, WebP) and PDF can be attached.");
      }
      const attachment = { id: system.uuid(), name: plainName(file.name), type, bytes: file.bytes };
      const name = fileNameOf(attachment.id);
      await removals.expect(name);
      await files.put(name, file.path);
      const isKept = await store.add({
        accountId, conversationId, attachment, max: LIMITS.attachmentsOfConversationMax,
        now: system.now(),
      });
      if (!isKept) {
        await removals.remove(name);
        throw new Fault(400, "The conversation has reached its limit of attachments.");
      }
      return attachment;
    },
    /** Throws Fault 422 where the conversation lacks any of them. */
    named: async (
      { id }: Pick<Conversation, "id">, ids: readonly string[],
    ): Promise<AttachmentBody[]> => {
      const wanted = [...new Set(ids.map((one) => one.toLowerCase()))];
      const found = wanted.length === 0 ? [] : await store.find(id, wanted);
      if (found.length === wanted.length) return found;
      throw fieldFault("attachments", "The conversation has no such attachment.");
    },
    /** Null: the conversation has no such attachment. */
    read: async (
      { id: conversationId }: Pick<Conversation, "id">, id: string,
    ): Promise<(FileContent & AttachmentBody) | null> => {
      const [found] = await store.find(conversationId, [id.toLowerCase()]);
      const content = found && await files.read(fileNameOf(found.id));
      return found && content ? { ...found, ...content } : null;
    },
    asModelSees: createSight(files),
    /** Removes files that were not sent within a day, and those of deleted conversations. */
    sweep: async (rows: number = LIMITS.retentionRowsMax): Promise<number> => {
      const now = system.now();
      const before = now - DAY_MICROS;
      const found = await store.left(before, rows);
      for (const one of found) {
        const isGone = await store.forget({ ...one, before, now });
        if (isGone) await removals.remove(fileNameOf(one.id));
      }
      return found.length;
    },
  };
}

export type Attachments = ReturnType<typeof createAttachments>;
