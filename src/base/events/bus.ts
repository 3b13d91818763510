// The event bus notifies watchers that a topic moved. It carries no promise of delivery: a watcher
// that misses a notice finds what it missed in the log, by sequence number.
import { accountTopic, callTopic, conversationTopic, type CommittedEvent, type Topic } from "./events.ts";

export const PASSING_TYPES = [
  "transcript_delta", "typing_started", "typing_ended", "lead_import_progress",
] as const;
type PassingType = (typeof PASSING_TYPES)[number];

/**
 * `committed`: a row was committed. `live`: the reply in flight grew or changed state. `passing`:
 * something that is in no log and may be missed, of a call, a conversation or an import of the
 * account.
 */
export type Notice =
  | { kind: "committed"; event: CommittedEvent }
  | { kind: "live" }
  | { kind: "passing"; accountId: number; type: PassingType; members: object }
  /** Another node may have committed something that this one was not notified of: read the log. */
  | { kind: "missed" };

export interface EventBus {
  /** Calls every listener of the topic before it returns; a listener must not throw. */
  publish(topic: Topic, notice: Notice): void;
  /**
   * Publishes each event to its topics; called once per commit, after it is durable. One group
   * commit answers many commands, whose callers come here in any order. What they bring within one
   * turn of the event loop is therefore published together, after the last of them, in the order of
   * the log.
   */
  publishCommitted(events: CommittedEvent[]): void;
  /** The same for what another process has committed. */
  publishHeard(events: CommittedEvent[]): void;
  /**
   * Returns an idempotent function that ends the subscription. Commits of other nodes arrive only
   * where the account is known: `accountId`, or else that of an account's topic.
   */
  subscribe(topic: Topic, listener: (notice: Notice) => void, accountId?: number): () => void;
  /** The listener is notified after events were published, whatever their topics. */
  watch(listener: Watcher): () => void;
  /** The listener receives every notice but commits, of any topic, before the topic's listeners. */
  tap(listener: (topic: Topic, notice: Notice) => void): () => void;
  /** The listener is notified when a topic gets its first listener, and when it loses its last. */
  onInterest(listener: (interest: Interest) => void): () => void;
  /** How many listen; bounds the watchers of a topic. */
  listeners(topic: Topic): number;
}

/** `own`: those of the events that this process has committed. */
type Watcher = (events: readonly CommittedEvent[], own: readonly CommittedEvent[]) => void;

interface Interest {
  topic: Topic;
  /** Null: no commits of other nodes are needed. */
  accountId: number | null;
  isWatched: boolean;
}

const accountOf = (topic: Topic): number | null =>
  topic.startsWith("account:") ? Number(topic.slice("account:".length)) : null;

interface Listened {
  accountId: number | null;
  listeners: Set<(notice: Notice) => void>;
}

export function createMemoryBus(): EventBus {
  const topics = new Map<Topic, Listened>();
  const watchers = new Set<Watcher>();
  const taps = new Set<(topic: Topic, notice: Notice) => void>();
  const curious = new Set<(interest: Interest) => void>();
  let waiting: CommittedEvent[] = [];
  const heard = new Set<CommittedEvent>();
  const publish: EventBus["publish"] = (topic, notice) => {
    if (notice.kind !== "committed") for (const tap of taps) tap(topic, notice);
    const listened = topics.get(topic);
    if (listened) for (const listener of [...listened.listeners]) listener(notice);
  };
  const tellInterest = (topic: Topic, accountId: number | null, isWatched: boolean): void => {
    for (const one of [...curious]) one({ topic, accountId, isWatched });
  };
  const publishWaiting = (): void => {
    const events = waiting.sort((a, b) => a.id - b.id || a.accountSequence - b.accountSequence);
    waiting = [];
    const own = heard.size === 0 ? events : events.filter((event) => !heard.has(event));
    heard.clear();
    for (const event of events) {
      const notice: Notice = { kind: "committed", event };
      if (event.conversationId !== null) publish(conversationTopic(event.conversationId), notice);
      if (event.callId !== null) publish(callTopic(event.callId), notice);
      publish(accountTopic(event.accountId), notice);
    }
    for (const watcher of [...watchers]) watcher(events, own);
  };
  const publishCommitted: EventBus["publishCommitted"] = (events) => {
    if (events.length === 0) return;
    // The next tick comes after the continuations of all promises that the commit has settled.
    if (waiting.length === 0) process.nextTick(publishWaiting);
    waiting.push(...events);
  };
  return {
    publish, publishCommitted,
    publishHeard: (events) => {
      for (const event of events) heard.add(event);
      publishCommitted(events);
    },
    watch: (listener) => {
      watchers.add(listener);
      return () => void watchers.delete(listener);
    },
    tap: (listener) => {
      taps.add(listener);
      return () => void taps.delete(listener);
    },
    onInterest: (listener) => {
      curious.add(listener);
      return () => void curious.delete(listener);
    },
    subscribe(topic, listener, accountId) {
      const known = topics.get(topic);
      const listened = known
        ?? { accountId: accountId ?? accountOf(topic), listeners: new Set() };
      listened.listeners.add(listener);
      if (!known) {
        topics.set(topic, listened);
        tellInterest(topic, listened.accountId, true);
      }
      return () => {
        listened.listeners.delete(listener);
        if (listened.listeners.size > 0 || topics.get(topic) !== listened) return;
        topics.delete(topic);
        tellInterest(topic, listened.accountId, false);
      };
    },
    listeners: (topic) => topics.get(topic)?.listeners.size ?? 0,
  };
}
