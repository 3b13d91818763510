// What the model of a call reads of what was said in it so far. Each speaker's words are joined as
// they come.
import { LIMITS } from "#core/limits.ts";
import type { HistoryMessage } from "#engine/history.ts";
import type { FunctionCall } from "#events/events.ts";

/** Words of one speaker in a row are one message to the model, with what functions said before. */
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

/** A line of its own beside what the assistant said. */
export function rememberColleague(history: HistoryMessage[], line: string): void {
  const last = history.at(-1);
  if (last?.role === "assistant") last.content = `${last.content}\n${line}`.trim();
  else history.push({ role: "assistant", content: line, functionCalls: [] });
}
