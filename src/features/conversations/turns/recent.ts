// The newest messages of conversations, as their models read them. They are cached after each reply
// for the next turn, because reading them is the largest cost before a model is asked. The number
// of messages, which only grows, shows whether anybody has written meanwhile at any node.
import { LIMITS } from "#core/limits.ts";
import type { Instant } from "#core/system.ts";
import type { ConversationStore, Message, TurnResult } from "#features/conversations/records.ts";

export interface Said {
  newestFirst: Message[];
  /** How many messages the conversation had at that point. */
  messageCount: number;
  /** Their total length in characters. */
  chars: number;
}

export interface Recent {
  /**
   * Newest first, as many as a model may read. `messageCount`: the conversation's current number of
   * messages, which validates the cache; null: the cache is not used.
   */
  read(conversationId: number, messageCount: number | null): Promise<Message[]>;
  /** Called once the reply is stored; `said` null: removes the conversation from the cache. */
  keep(
    conversationId: number, said: Said | null, reply: TurnResult & { kind: "completed" },
    at: Instant,
  ): void;
  /** Drops messages of conversations that have gone quiet; called by a timer. */
  forgetQuiet(now: Instant): void;
}

const charsOf = ({ content, functionCalls }: Message): number =>
  content.length + (functionCalls.length > 0 ? JSON.stringify(functionCalls).length : 0);

/** Null: they are too long to be held until the reply is there. */
export function saidOf(newestFirst: Message[], messageCount: number): Said | null {
  const chars = newestFirst.reduce((sum, one) => sum + charsOf(one), 0);
  return chars > LIMITS.historyKeptCharsMax ? null : { newestFirst, messageCount, chars };
}

export function createRecent(store: Pick<ConversationStore, "recent">): Recent {
  // Least recently answered first.
  const kept = new Map<number, Said>();
  return {
    read: async (conversationId, messageCount) => {
      const known = kept.get(conversationId);
      return known && known.messageCount === messageCount
        ? known.newestFirst
        : store.recent(conversationId, LIMITS.historyMessagesMax);
    },
    keep: (conversationId, said, reply, at) => {
      kept.delete(conversationId);
      if (!said) return;
      const { text, functionCalls, stopped, truncated, usage } = reply;
      const message: Message = {
        role: "assistant", content: text, author: null, functionCalls, stopped, truncated, usage,
        attachments: [], rating: null, createdAt: at,
      };
      const newestFirst = [message, ...said.newestFirst];
      if (newestFirst.length > LIMITS.historyMessagesMax) newestFirst.pop();
      const chars = said.chars + charsOf(message);
      if (chars > LIMITS.historyKeptCharsMax) return;
      kept.set(conversationId, { newestFirst, messageCount: said.messageCount + 1, chars });
      const [oldest] = kept.keys();
      if (oldest !== undefined && kept.size > LIMITS.historiesKeptMax) kept.delete(oldest);
    },
    forgetQuiet: (now) => {
      const since = now - LIMITS.historyKeptMs * 1000;
      for (const [id, { newestFirst: [newest] }] of kept) {
        if (newest && newest.createdAt > since) return;
        kept.delete(id);
      }
    },
  };
}
