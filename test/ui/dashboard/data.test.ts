// What the dashboard holds of the server, as far as it needs no browser: answers that overtake each
// other, requests that fail, and a conversation that goes on after its end.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { NumberedPages } from "#ui/dashboard/data/pages.ts";
import { entryOf } from "#ui/dashboard/data/seen.ts";
import { keepUnsent, unsentOf, type UnsentTexts } from "#ui/dashboard/pages/inbox/unsent.ts";
import { applyFrames, EMPTY } from "#ui/dashboard/pages/conversations/talk.ts";

/** Requests under way, to be answered in any order. */
function questions<T>() {
  const asked: PromiseWithResolvers<T>[] = [];
  const ask = (): Promise<T> => {
    const question = Promise.withResolvers<T>();
    asked.push(question);
    return question.promise;
  };
  const answer = async (at: number, value: T): Promise<void> => {
    asked[at]?.resolve(value);
    await turn();
  };
  const fail = async (at: number): Promise<void> => {
    asked[at]?.reject(new Error("no answer"));
    await turn();
  };
  return { asked, ask, answer, fail };
}

test("[DB530] reloading faster than the responses arrive still shows data, and an older response never replaces a newer one", async () => {
  const { asked, ask, answer, fail } = questions<string>();
  const entry = entryOf("one");
  entry.show(ask, 0);
  void entry.reload();
  void entry.reload();
  await answer(0, "first");
  assert.deepEqual([entry.value, entry.isLoading], ["first", true]);
  await answer(2, "third");
  await answer(1, "second");
  assert.deepEqual([entry.value, entry.isLoading], ["third", false]);
  // What changes while it is asked for is asked for once more by whoever shows it next.
  void entry.reload();
  entry.spoil();
  entry.show(ask, 60_000);
  assert.equal(asked.length, 5);
  await fail(4);
  await answer(3, "fourth");
  assert.deepEqual([entry.value, entry.isLoading], ["third", false]);
  entry.show(ask, 60_000);
  await answer(5, "sixth");
  entry.show(ask, 60_000);
  assert.deepEqual([entry.value, asked.length], ["sixth", 6]);
});

test("[DB531] a paged list shows the newest response, and retries a failed page once, only on demand or on scrolling", async () => {
  const { asked, ask, answer, fail } = questions<{ rows: string[]; total: number }>();
  let drawn = 0;
  const pages = new NumberedPages<string>({ current: ask }, () => (drawn += 1));
  void pages.reload();
  void pages.reload();
  await answer(1, { rows: ["new"], total: 1 });
  await answer(0, { rows: ["old"], total: 1 });
  assert.deepEqual([pages.at(0), pages.total, drawn], ["new", 1, 1]);
  void pages.reload();
  await fail(2);
  assert.ok(pages.error instanceof Error);
  mock.timers.enable({ apis: ["setTimeout"] });
  const show = (first: number, last: number): number => {
    pages.show(first, last);
    mock.timers.tick(1000);
    return asked.length;
  };
  // As a table does that is drawn again with the failure.
  assert.equal(show(0, 1), 3);
  assert.equal(show(0, 2), 4);
  mock.timers.reset();
  await answer(3, { rows: ["newest"], total: 1 });
  assert.deepEqual([pages.at(0), pages.error], ["newest", null]);
});

test("[DB790] pages of a list that grows while they are loaded are shown once they are of one time", async () => {
  const { asked, ask, answer } = questions<{ rows: string[]; total: number }>();
  let drawn = 0;
  const pages = new NumberedPages<string>({ current: ask }, () => (drawn += 1));
  void pages.reload();
  await answer(0, { rows: ["a"], total: 60 });
  pages.show(45, 55);
  void pages.reload();
  await answer(1, { rows: ["old"], total: 60 });
  await answer(2, { rows: ["new"], total: 61 });
  assert.deepEqual([drawn, pages.at(0), pages.at(50), asked.length], [1, "a", undefined, 5]);
  await answer(3, { rows: ["new"], total: 61 });
  await answer(4, { rows: ["new too"], total: 61 });
  assert.deepEqual([drawn, pages.at(0), pages.at(50), pages.total], [2, "new", "new too", 61]);
  pages.close();
});

test("[DB532] a conversation that continues after its end is open again", () => {
  const ended = { type: "conversation_ended", reason: "operator" };
  const desk = (state: string) => ({ type: "desk_changed", desk: state });
  const message = { type: "message_added", message: { role: "user", content: "One more thing" } };
  const hasEnded = (...frames: { type: string }[]): boolean => applyFrames(EMPTY, frames).hasEnded;
  assert.equal(hasEnded(message, ended, desk("assistant")), true);
  assert.equal(hasEnded(ended, message), false);
  assert.equal(hasEnded(ended, desk("person")), false);
  assert.equal(hasEnded(ended, message, ended), true);
});

test("[DB543] the inbox keeps nothing for conversations that were only viewed", () => {
  const unsent: UnsentTexts = new Map();
  const pending = { key: "k", message: "Hello" };
  for (let opened = 0; opened < 100; opened += 1) {
    assert.deepEqual(unsentOf(unsent, `c${opened}`), { text: "", files: [], pending: null });
  }
  assert.equal(unsent.size, 0);
  keepUnsent(unsent, "c1", { text: "Hello", files: [], pending: null });
  keepUnsent(unsent, "c2", { text: "", files: [], pending });
  assert.deepEqual([unsentOf(unsent, "c1").text, unsentOf(unsent, "c2").pending], ["Hello", pending]);
  // Sent, and taken back.
  for (const uuid of ["c1", "c2"]) keepUnsent(unsent, uuid, { text: "", files: [], pending: null });
  assert.equal(unsent.size, 0);
});
