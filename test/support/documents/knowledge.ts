// A knowledgebase over the wire, as tests make and fill one.
import { accountEvent, type AccountEvent } from "#support/account-events.ts";
import type { TestServer } from "#support/server.ts";

type Server = { url: string; key?: TestServer["key"] };

export async function newKnowledgebase(on: TestServer, key = on.key): Promise<number> {
  const { body } = await on.call("POST", "/user/knowledgebases", { key, body: { name: "Manual" } });
  return body.data.id as number;
}

/** Uploads a file and returns the document's id. */
export async function uploadFile(
  on: Server, knowledgebaseId: number, content: string | Buffer,
  { name = "Notes", type = "txt", key = on.key }: { name?: string; type?: string; key?: string | null } = {},
): Promise<number> {
  const form = new FormData();
  form.set("name", name);
  form.set("type", type);
  form.set("file", new Blob([new Uint8Array(Buffer.from(content))]), `file.${type}`);
  const response = await fetch(`${on.url}/api/user/knowledgebases/${knowledgebaseId}/documents`, {
    method: "POST", headers: { Authorization: `Bearer ${key}` }, body: form,
  });
  const { data } = await response.json() as { data: { id: number } };
  return data.id;
}

/** The event of the account's stream after the document was read for the `times`-th time. */
export function whenRead(
  on: Server, documentId: number, { key = on.key ?? "", times = 1 } = {},
): Promise<AccountEvent> {
  let left = times;
  return accountEvent({ url: on.url, key }, ({ type, document_id: id, status }) => {
    const isOver = type === "document_status_changed" && id === documentId
      && status !== "processing";
    if (isOver) left -= 1;
    return isOver && left === 0;
  });
}
