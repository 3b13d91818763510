// What of a conversation a model gets to see: the newest messages that fit the token budget.
import type { ModelMessage } from "../providers/models/port.ts";

/** Rough on purpose: four characters of English are a token; other scripts cost more. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4) + 4;
}

/**
 * `newestFirst`: messages of the conversation. Keeps whole messages from the newest back while they
 * fit; the newest is always kept. The oldest message kept is a user's where there is one, because
 * many models refuse a history that begins with their own words.
 */
export function trimHistory(newestFirst: ModelMessage[], tokensMax: number): ModelMessage[] {
  const kept: ModelMessage[] = [];
  let tokens = 0;
  for (const message of newestFirst) {
    tokens += estimateTokens(message.content);
    if (kept.length > 0 && tokens > tokensMax) {
      while (kept.length > 1 && kept.at(-1)?.role === "assistant") kept.pop();
      break;
    }
    kept.push(message);
  }
  return kept.reverse();
}
