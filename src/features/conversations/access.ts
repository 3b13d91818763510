// Access control of public conversations: allowed origins, rate limits, and the source of a stream.
// Shared by the HTTP routes and the socket, so that neither can be laxer than the other.
import type { Assistant, OriginLists } from "#features/assistants/assistants.ts";
import { Fault, StorageFailure } from "#core/faults.ts";
import { conversationTopic } from "#events/events.ts";
import type { EventLog } from "#events/log.ts";
import { addressKey } from "#core/networks.ts";
import { rateLimitFault } from "#http/errors.ts";
import type { HttpRequest } from "#http/exchange.ts";
import type { RateLimiter, SharedRateLimiter } from "#core/rate-limit.ts";
import type { StreamRequest } from "#realtime/streams.ts";
import type { Conversations } from "./conversations.ts";
import type { Conversation } from "./records.ts";

interface PublicLimiters {
  /** Conversations created, per address. */
  create: SharedRateLimiter;
  /** Messages sent, per conversation. */
  send: SharedRateLimiter;
  /** Typing notifications, per conversation. */
  typing: RateLimiter;
}

interface AccessOptions {
  conversations: Conversations;
  findAssistant(assistantId: number): Promise<Assistant | null>;
  findAssistantByUuid(uuid: string): Promise<Assistant | null>;
  /** The origins that this server's assistants allow, over all accounts. */
  ownOriginLists(): Promise<OriginLists>;
  events: EventLog;
  /** Null: no rate limits. */
  limiters: PublicLimiters | null;
  /** For assistants without `allowed_origins` of their own. */
  defaultOrigins: readonly string[];
  /** The server's own origin as this request's client sees it. */
  ownOrigin(http: HttpRequest): string;
  /** Most streams that may be open on one conversation at a time. */
  streamsMax: number;
}

export interface Access {
  originAllowed(assistant: Assistant, http: HttpRequest): boolean;
  /** False for a conversation that does not exist. */
  originAllowedFor(conversationUuid: string, http: HttpRequest): Promise<boolean>;
  /**
   * Whether a preflight may allow the page's origin. A new conversation names its assistant in the
   * body, which a preflight lacks, so the origins of any assistant pass there: the POST itself is
   * checked against its own assistant's.
   */
  preflightAllowed(path: string, uuid: string, http: HttpRequest): Promise<boolean>;
  assertMayCreate(http: HttpRequest): Promise<void>;
  assertMaySend(conversationUuid: string): Promise<void>;
  /** What the server had no room for, or could not store, does not count as a message. */
  uncountedIf503<T>(conversationUuid: string, sending: Promise<T>): Promise<T>;
  assertMayType(conversationUuid: string): void;
  streamOf(conversation: Pick<Conversation, "uuid" | "accountId">): Pick<StreamRequest, "source" | "sessionsMax">;
}

export function createAccess(options: AccessOptions): Access {
  const { conversations, events, limiters } = options;
  const originAllowed: Access["originAllowed"] = (assistant, http) => {
    const { origin } = http.headers;
    if (origin === undefined || origin === options.ownOrigin(http)) return true;
    const allowed = assistant.settings.allowed_origins ?? options.defaultOrigins;
    return allowed.includes("*") || allowed.includes(origin);
  };
  const anyAllows = async (http: HttpRequest): Promise<boolean> => {
    const { origin = "" } = http.headers;
    const { origins, someUseDefault } = await options.ownOriginLists();
    const names = (list: readonly string[]) => list.includes("*") || list.includes(origin);
    return origin === options.ownOrigin(http) || origins.has("*") || origins.has(origin)
      || (someUseDefault && names(options.defaultOrigins));
  };
  const assistantOf = async (uuid: string): Promise<Assistant | null> => {
    try {
      return await options.findAssistant((await conversations.get(uuid)).assistantId);
    } catch (error) {
      if (error instanceof Fault) return null;
      throw error;
    }
  };
  return {
    originAllowed,
    originAllowedFor: async (uuid, http) => {
      const assistant = await assistantOf(uuid);
      // A missing conversation is answered 404 whatever the origin.
      return assistant === null || originAllowed(assistant, http);
    },
    preflightAllowed: async (path, uuid, http) => {
      if (path === "/conversations") return anyAllows(http);
      const isWidget = path.startsWith("/widget/");
      if (!isWidget && !path.startsWith("/conversations/")) return true;
      const assistant = await (isWidget ? options.findAssistantByUuid(uuid) : assistantOf(uuid));
      if (assistant) return originAllowed(assistant, http);
      // Without a preflight a page would take the 404 of a deleted conversation for a lost network.
      return !isWidget && anyAllows(http);
    },
    assertMayCreate: async (http) => {
      const decision = await limiters?.create.take(addressKey(http.address));
      if (decision && !decision.allowed) throw rateLimitFault(decision.retryAfterMs, "conversation");
    },
    assertMaySend: async (uuid) => {
      const decision = await limiters?.send.take(uuid);
      if (decision && !decision.allowed) throw rateLimitFault(decision.retryAfterMs, "conversation");
    },
    uncountedIf503: (uuid, sending) => sending.catch(async (error: unknown) => {
      const is503 = error instanceof StorageFailure
        || (error instanceof Fault && error.status === 503);
      if (is503) await limiters?.send.giveBack(uuid);
      throw error;
    }),
    assertMayType: (uuid) => {
      const decision = limiters?.typing.take(uuid);
      if (decision && !decision.allowed) throw rateLimitFault(decision.retryAfterMs, "conversation");
    },
    streamOf: ({ uuid, accountId }) => ({
      sessionsMax: options.streamsMax,
      source: {
        topic: conversationTopic(uuid),
        accountId,
        newest: () => events.newestOfConversation(uuid),
        after: (sequence, rows) => events.ofConversation(uuid, sequence, rows),
        sequenceOf: (event) => event.sequence,
        live: () => conversations.live(uuid),
      },
    }),
  };
}
