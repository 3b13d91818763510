// The part of a conversation a model sees: the newest messages that fit the token budget and, as
// far as room is left, the results of their functions, the newest first.
import { LIMITS } from "#core/limits.ts";
import { wholeStart } from "#core/values.ts";
import type { FunctionCall } from "#events/events.ts";
import type { ModelFile, ModelMessage } from "#providers/models/port.ts";

/** One stored message; the results of its functions came before its content. */
export interface HistoryMessage {
  role: "user" | "assistant";
  content: string;
  functionCalls: FunctionCall[];
  files?: ModelFile[];
}

/** Rough on purpose: four characters of English are a token; other scripts cost more. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4) + 4;
}

/**
 * `newestFirst`: messages of the conversation. Keeps whole messages from the newest back while they
 * fit; the newest is always kept. The oldest message kept is a user's where there is one, because
 * many models refuse a history that begins with their own words. The rest of the room is for
 * functions' results.
 */
export function trimHistory(newestFirst: HistoryMessage[], tokensMax: number): ModelMessage[] {
  const kept: HistoryMessage[] = [];
  let tokens = 0;
  for (const message of newestFirst) {
    const cost = estimateTokens(message.content);
    if (kept.length > 0 && tokens + cost > tokensMax) {
      while (kept.length > 1 && kept.at(-1)?.role === "assistant") kept.pop();
      break;
    }
    tokens += cost;
    kept.push(message);
  }
  return withCalls(kept, tokensMax - tokens).reverse().flat();
}

/** Each message with its functions' messages before it, while those fit. */
function withCalls(newestFirst: HistoryMessage[], tokensMax: number): ModelMessage[][] {
  let tokens = tokensMax;
  let calls: number = LIMITS.historyCallsMax;
  let number = 0;
  return newestFirst.map(({ role, content, functionCalls, files = [] }, at) => {
    const message = files.length > 0 ? { role, content, files } : { role, content };
    const said: ModelMessage[] = content === "" && files.length === 0 ? [] : [message];
    // The newest message is the question.
    if (at === 0) return [message];
    if (functionCalls.length === 0) return said;
    const messages = callMessages(functionCalls, () => {
      number += 1;
      return number;
    });
    const cost = messages.reduce((sum, { content: text, functionCalls = [] }) =>
      sum + estimateTokens(text + functionCalls.map((call) => call.argumentsJson).join("")), 0);
    if (cost > tokens || functionCalls.length > calls) {
      // Older results are left out as well: a model would take them for newer than they are.
      tokens = 0;
      return said;
    }
    tokens -= cost;
    calls -= functionCalls.length;
    return [...messages, ...said];
  });
}

function callMessages(functionCalls: FunctionCall[], next: () => number): ModelMessage[] {
  // Nine letters and digits: the one form of an id that every vendor takes.
  const named = functionCalls.map((call) =>
    ({ ...call, id: `h${String(next()).padStart(8, "0")}` }));
  return [
    {
      role: "assistant",
      content: "",
      functionCalls: named.map(({ id, name, arguments: args }) => {
        const json = JSON.stringify(args);
        return { id, name, argumentsJson: json.length > LIMITS.historyCallCharsMax ? "{}" : json };
      }),
    },
    ...named.map(({ id, result }): ModelMessage => ({
      role: "function",
      functionCallId: id,
      content: wholeStart(JSON.stringify(result), LIMITS.historyCallCharsMax),
    })),
  ];
}
