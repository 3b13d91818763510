// The newest messages of conversations, as their models read them. Those of one that was just
// answered in are kept for its next turn: reading them is what costs most before a model is asked.
// Whether anybody has written meanwhile, at whichever node, the number of messages tells, which
// only grows.
import { LIMITS } from "#core/limits.ts";
import type { Instant } from "#core/system.ts";
import type { ConversationStore, Message, TurnResult } from "./records.ts";

export interface Said {
  newestFirst: Message[];
  /** How many messages the conversation has had by then. */
  messageCount: number;
}

export interface Recent {
  /**
   * Newest first, as many as a model may read. `messageCount`: how many the conversation was just
   * seen to have; null: they are read, whatever is known of them.
   */
  read(conversationId: number, messageCount: number | null): Promise<Message[]>;
  /** To be told once the reply to what was said is stored. */
  keep(
    conversationId: number, said: Said, reply: TurnResult & { kind: "completed" }, at: Instant,
  ): void;
}

const charsOf = ({ content, functionCalls }: Message): number =>
  content.length + JSON.stringify(functionCalls).length;

export const isKeepable = (messages: Message[]): boolean =>
  messages.reduce((sum, one) => sum + charsOf(one), 0) <= LIMITS.historyKeptCharsMax;

export function createRecent(store: Pick<ConversationStore, "recent">): Recent {
  // Those answered in last are at the end.
  const kept = new Map<number, Said>();
  return {
    read: async (conversationId, messageCount) => {
      const known = kept.get(conversationId);
      return known && known.messageCount === messageCount
        ? known.newestFirst
        : store.recent(conversationId, LIMITS.historyMessagesMax);
    },
    keep: (conversationId, { newestFirst, messageCount }, reply, at) => {
      kept.delete(conversationId);
      const { text, functionCalls, stopped, truncated, usage } = reply;
      const message: Message = {
        role: "assistant", content: text, author: null, functionCalls, stopped, truncated, usage,
        attachments: [], rating: null, createdAt: at,
      };
      const messages = [message, ...newestFirst].slice(0, LIMITS.historyMessagesMax);
      if (!isKeepable(messages)) return;
      kept.set(conversationId, { newestFirst: messages, messageCount: messageCount + 1 });
      const [oldest] = kept.keys();
      if (oldest !== undefined && kept.size > LIMITS.historiesKeptMax) kept.delete(oldest);
    },
  };
}
