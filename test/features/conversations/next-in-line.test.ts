// A message behind one that leads to no reply, such as a send that is repeated.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#core/logger.ts";
import { nextTurn } from "#core/system.ts";
import { createMemoryBus } from "#events/bus.ts";
import {
  createConversations, type ConversationOptions,
} from "#features/conversations/conversations.ts";
import type { BeginOutcome, Conversation, Message } from "#features/conversations/records.ts";
import { createManualSystem } from "#support/manual-clock.ts";

test("[SO64] a reply can be stopped while its message is stored behind a repeated one", async () => {
  const uuid = "c";
  const conversation = {
    id: 1, uuid, accountId: 1, assistantId: 1, type: "widget", variables: {},
    desk: { state: "assistant", holder: null, reason: null, at: null },
  } as unknown as Conversation;
  const stored = [1, 2].map(() => Promise.withResolvers<BeginOutcome>());
  const answering = Promise.withResolvers<never>();
  const ends: string[] = [];
  let begun = 0;
  const conversations = createConversations({
    store: {
      find: async () => conversation,
      outlook: async () => ({ conversation, messageCount: 2, isRepeat: true, freeMicros: 0 }),
      beginTurn: () => stored[(begun += 1) - 1]?.promise,
      recent: async () => [],
      failTurn: async ({ reason }: { reason: string }) => {
        ends.push(reason);
        return [];
      },
    },
    findAssistant: async () => ({ settings: { desk: {}, tools: [] } }),
    resolveTurn: () => answering.promise,
    attachments: { asModelSees: async () => [] },
    bus: createMemoryBus(), system: createManualSystem(), log: createLogger("silent"),
    limits: { messagePriceMicros: 0, dailyCapMicros: null, turnsMax: 9, messagesMax: 9 },
    others: null, observe: () => undefined, nodeId: 1,
  } as unknown as ConversationOptions);
  const send = (text: string) => conversations.send({ uuid, text, idempotencyKey: null });
  const [first, second] = [send("one"), send("two")];
  await nextTurn();
  stored[0]?.resolve({
    kind: "repeated", turnId: 1, userSequence: 1, stored: false,
    reply: { role: "assistant", content: "One." } as Message,
  });
  await first;
  await nextTurn();
  assert.equal(begun, 2);
  const stopped = conversations.stop(uuid);
  await nextTurn();
  stored[1]?.resolve({
    kind: "started", turnId: 2, priceMicros: 0, baseSequence: 3, events: [],
  });
  await second;
  await nextTurn();
  answering.reject(new Error("nobody waits for it"));
  assert.equal(await stopped, true);
  assert.deepEqual(ends, ["stopped"]);
});
