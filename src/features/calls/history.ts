// The history of a call as its model reads it. Consecutive words of one speaker are joined as they
// come.
import { LIMITS } from "#core/limits.ts";
import type { HistoryMessage } from "#engine/history.ts";
import type { FunctionCall } from "#events/events.ts";

/** Consecutive words of one speaker become one message, with the results of its functions. */
export function remember(
  history: HistoryMessage[], role: "user" | "assistant", text: string,
  functionCalls: FunctionCall[] = [],
): void {
  const last = history.at(-1);
  if (last?.role === role) {
    last.content = `${last.content} ${text}`.trim();
    last.functionCalls.push(...functionCalls);
  } else history.push({ role, content: text, functionCalls: [...functionCalls] });
  if (history.length > LIMITS.historyMessagesMax) history.shift();
}

/** Adds a colleague's words as a line of their own on the assistant's side. */
export function rememberColleague(history: HistoryMessage[], line: string): void {
  const last = history.at(-1);
  if (last?.role === "assistant") last.content = `${last.content}\n${line}`.trim();
  else history.push({ role: "assistant", content: line, functionCalls: [] });
}
