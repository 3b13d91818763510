// The main job of a program that a test has just installed, by its client.
import assert from "node:assert/strict";
import type { Parley } from "#client/client.ts";

/** The demo's assistant answers. */
export async function assertReplies(parley: Parley, assistant: string): Promise<void> {
  const { data } = await parley.POST("/conversations", {
    body: { assistant_id: assistant, type: "test" },
  });
  const { data: answer } = await parley.POST("/conversations/{uuid}/messages", {
    params: { path: { uuid: data?.conversation_id ?? "" } },
    body: { message: "When are you open?" },
  });
  assert.ok(typeof answer === "object", String(answer));
  assert.match(answer.message, /Opening hours/);
}
