// When an assistant's settings request a person by themselves: for words of the visitor, functions
// that fail in a row, or replies that do. conversations.ts stores the request with its cause.
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Instant } from "#core/system.ts";
import type { FunctionCall } from "#events/events.ts";
import { awayOf } from "./office-hours.ts";
import type { AsksForPerson, Conversation, ConversationStore, TurnResult } from "#features/conversations/records.ts";

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** The text's words, each surrounded by spaces. */
const spaced = (text: string): string =>
  ` ${[...text.toLowerCase().matchAll(WORD)].map(([word]) => word).join(" ")} `;

const byRule = (assistant: Assistant, reason: AsksForPerson["reason"], now: Instant): AsksForPerson =>
  ({ by: "rule", reason, note: null, away: awayOf(assistant, now) });

/** Null: nothing in the text requests a person. */
export function askedByWords(
  assistant: Assistant, text: string, now: Instant,
): AsksForPerson | null {
  const words = (assistant.settings.desk.words ?? []).map(spaced).filter((word) => word.trim() !== "");
  if (words.length === 0) return null;
  const said = spaced(text);
  return words.some((word) => said.includes(word)) ? byRule(assistant, "words", now) : null;
}

const hasFailed = ({ result }: FunctionCall): boolean => result.error !== undefined;

/** Whether the end of a turn, with the turns before it, requests a person. Null: no. */
export async function askedByEnd(
  store: Pick<ConversationStore, "recent" | "failedInARow">,
  assistant: Assistant,
  { id }: Pick<Conversation, "id">,
  result: TurnResult,
  now: Instant,
): Promise<AsksForPerson | null> {
  const { desk } = assistant.settings;
  const unanswered = desk.after_unanswered ?? null;
  if (result.kind === "failed") {
    if (result.reason !== "failed" || unanswered === null) return null;
    return await store.failedInARow(id, unanswered) + 1 >= unanswered
      ? byRule(assistant, "unanswered", now) : null;
  }
  const failures = desk.after_tool_failures ?? null;
  if (failures === null || !result.functionCalls.some(hasFailed)) return null;
  const earlier = await store.recent(id, 2 * failures);
  const newestFirst = [
    result.functionCalls, ...earlier.map(({ functionCalls }) => functionCalls),
  ].flatMap((calls) => calls.toReversed()).slice(0, failures);
  return newestFirst.length === failures && newestFirst.every(hasFailed)
    ? byRule(assistant, "tool_failures", now) : null;
}
