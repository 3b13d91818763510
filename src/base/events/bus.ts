// The event bus notifies watchers that a topic moved. It carries no promise of delivery: a watcher
// that misses a notice finds what it missed in the log, by sequence number.
import { accountTopic, callTopic, conversationTopic, type CommittedEvent, type Topic } from "./events.ts";

/**
 * `committed`: a row was committed. `live`: the reply in flight grew or changed state. `passing`:
 * something that is in no log and may be missed.
 */
export type Notice =
  | { kind: "committed"; event: CommittedEvent }
  | { kind: "live" }
  | { kind: "passing"; type: "transcript_delta"; members: object };

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
  /** Returns an idempotent function that ends the subscription. */
  subscribe(topic: Topic, listener: (notice: Notice) => void): () => void;
  /** The listener is notified after events were published, whatever their topics. */
  watch(listener: () => void): () => void;
  /** How many listen; bounds the watchers of a topic. */
  listeners(topic: Topic): number;
  /** Rows of the log published so far; distinguishes this process's commits from another's. */
  committed(): number;
}

export function createMemoryBus(): EventBus {
  const topics = new Map<Topic, Set<(notice: Notice) => void>>();
  const watchers = new Set<() => void>();
  let committed = 0;
  let waiting: CommittedEvent[] = [];
  const publish: EventBus["publish"] = (topic, notice) => {
    const listeners = topics.get(topic);
    if (listeners) for (const listener of [...listeners]) listener(notice);
  };
  const publishWaiting = (): void => {
    const events = waiting.sort((a, b) => a.id - b.id || a.accountSequence - b.accountSequence);
    waiting = [];
    for (const event of events) {
      const notice: Notice = { kind: "committed", event };
      if (event.conversationId !== null) publish(conversationTopic(event.conversationId), notice);
      if (event.callId !== null) publish(callTopic(event.callId), notice);
      publish(accountTopic(event.accountId), notice);
    }
    for (const watcher of [...watchers]) watcher();
  };
  return {
    publish,
    publishCommitted: (events) => {
      if (events.length === 0) return;
      committed += new Set(events.map(({ id }) => id)).size;
      // A next tick runs after every promise the commit has settled was followed up.
      if (waiting.length === 0) process.nextTick(publishWaiting);
      waiting.push(...events);
    },
    watch: (listener) => {
      watchers.add(listener);
      return () => void watchers.delete(listener);
    },
    subscribe(topic, listener) {
      const listeners = topics.get(topic) ?? new Set();
      listeners.add(listener);
      topics.set(topic, listeners);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && topics.get(topic) === listeners) topics.delete(topic);
      };
    },
    listeners: (topic) => topics.get(topic)?.size ?? 0,
    committed: () => committed,
  };
}
