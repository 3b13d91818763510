// A message for a conversation in which another node answers: what it is asked with once it waited.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { BeginOutcome, Conversation } from "#features/conversations/records.ts";
import type { createAsk } from "#features/conversations/turns/asking.ts";
import { askWhenFree } from "#features/conversations/turns/begin.ts";

const CONVERSATION = {
  id: 1, uuid: "c", accountId: 1, assistantId: 1, type: "widget", variables: {},
  desk: { state: "assistant", holder: null, reason: null, at: null },
} as unknown as Conversation;
test("[ND55] a message that waited for another node's reply is answered with everything said there", async () => {
  const questions: Parameters<ReturnType<typeof createAsk>>[0][] = [];
  const outcomes: BeginOutcome[] = [
    { kind: "busy", nodeId: 2 },
    { kind: "started", turnId: 2, priceMicros: 0, baseSequence: 5, events: [] },
  ];
  const outlookAt = (messageCount: number) =>
    ({ conversation: CONVERSATION, messageCount, isRepeat: false, freeMicros: 0 });
  let count = 2;
  await askWhenFree({
    store: {
      beginTurn: async () => outcomes.shift() as BeginOutcome,
      outlook: async () => outlookAt(count),
    },
    limits: { messagePriceMicros: 0, dailyCapMicros: null, messagesMax: 100 },
  }, {
    ask: (question) => {
      questions.push(question);
      return {
        abort: new AbortController(), begin: () => Promise.reject(new Error()),
        drop: () => undefined,
      };
    },
    elsewhere: {
      free: async () => {
        count = 4;
        return true;
      },
      resultOf: () => Promise.reject(new Error()),
    },
  }, {
    outlook: outlookAt(2), isCovered: true,
    assistant: { settings: { desk: {} } } as unknown as Assistant,
    turn: {
      text: "third", attachments: [], idempotencyKey: null, requestHash: "h", given: null,
      draft: null,
    },
    now: 5,
  });
  assert.deepEqual(questions.map(({ isCovered, outlook }) => [isCovered, outlook.messageCount]),
    [[true, 2], [false, 4]]);
});
