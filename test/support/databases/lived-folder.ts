// A data folder that has held a conversation, a tool, documents and webhooks, for tests of what
// moves it elsewhere.
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import Database from "better-sqlite3";
import { databasePath } from "#storage/engines/sqlite/database.ts";
import { accountEvent } from "#support/account-events.ts";
import { newAssistant, newConversation, startTestServer, type TestServer } from "#support/server.ts";
import type { ScriptedModel } from "#support/vendors/scripted-model.ts";

/** Every server that runs on the folder has this secret. */
export const SECRET = "the same before and after the move";

async function upload(server: TestServer, knowledgebaseId: number): Promise<void> {
  const form = new FormData();
  form.set("name", "Notes");
  form.set("type", "txt");
  form.set("file", new Blob(["# Opening\n\nThe harbour office opens at nine.\n\n# Fees\n\nA day costs ten."]), "notes.txt");
  const response = await fetch(`${server.url}/api/user/knowledgebases/${knowledgebaseId}/documents`, {
    method: "POST", headers: { Authorization: `Bearer ${server.key}` }, body: form,
  });
  assert.equal(response.status, 201);
  await accountEvent({ url: server.url, key: server.key }, ({ type, status }) =>
    type === "document_status_changed" && status === "active");
}

export interface LivedFolder {
  dataDir: string;
  key: string;
  accountId: number;
  uuid: string;
  knowledgebaseId: number;
}

/** A folder that a server has used and left as if it had died; `endpoint`: for webhooks. */
export async function liveIn(
  dataDir: string, model: ScriptedModel, endpoint: string,
): Promise<LivedFolder> {
  const server = await startTestServer({
    dataDir,
    env: {
      PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
      PARLEY_SECRET: SECRET,
    },
  });
  const { key, accountId, call } = server;
  model.script(() => ({ tokens: ["At ", "nine."] }));
  const tool = await call("POST", "/user/tools", {
    body: {
      name: "look", description: "Looks", endpoint: "https://example.com", method: "GET",
      headers: [{ name: "Authorization", value: "Bearer canary" }],
    },
  });
  assert.equal(tool.status, 201);
  await call("POST", "/user/webhook-endpoints", {
    body: { url: endpoint, events: ["balance_changed"] },
  });
  const { uuid: assistantUuid } = await newAssistant(server);
  const uuid = await newConversation(server, assistantUuid);
  const made = await call("POST", "/user/knowledgebases", { body: { name: "Manual" } });
  const knowledgebaseId = made.body.data.id as number;
  await upload(server, knowledgebaseId);
  for (const message of ["When do you open?", "A null \0 and 😀 \\x41"]) {
    const { status, body } = await call("POST", `/conversations/${uuid}/messages`, {
      body: { message }, headers: { "Idempotency-Key": message.slice(0, 6) },
    });
    assert.equal(status, 200, JSON.stringify(body));
  }
  await server.close();
  strangeRows(dataDir);
  return { dataDir, key, accountId, uuid, knowledgebaseId };
}

/** Adds what so short a use does not leave: bytes, ids that are gone, a node that died. */
function strangeRows(dataDir: string): void {
  const db = new Database(databasePath(dataDir));
  const { id } = db.prepare("SELECT id FROM chunks LIMIT 1").get() as { id: number };
  db.prepare(`INSERT INTO chunk_vectors (chunk_id, knowledgebase_id, model, vector)
    SELECT id, knowledgebase_id, 'm', ? FROM chunks WHERE id = ?`)
    .run(Buffer.from(new Float32Array([0.5, -1, 3]).buffer), id);
  db.exec("UPDATE sqlite_sequence SET seq = 5000 WHERE name IN ('nodes', 'tools')");
  db.exec("UPDATE nodes SET state = 'live', gone_at = NULL, recovered_at = NULL");
  db.close();
}

/** A copy of it, in a folder of its own. */
export function copied(folder: LivedFolder, dataDir: string): LivedFolder {
  cpSync(folder.dataDir, dataDir, { recursive: true });
  return { ...folder, dataDir };
}
