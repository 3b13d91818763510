// Push notifications to the browsers of an account's people, even while no page of the dashboard is
// open: a visitor waits, or asks to be called back. Store port → factory. Called by push-routes.ts
// and the composition root.
import type { Instant, Timer } from "#core/system.ts";
import { createPlaces } from "#core/turns.ts";
import { wholeStart } from "#core/values.ts";
import type { Author } from "#events/events.ts";
import { isUserAuthor } from "#features/accounts/people/users.ts";
import type { Pusher, PushOutcome, PushTarget } from "#providers/push/port.ts";
import { reportWaiting, visitorOf, type Report, type ReportOptions } from "./who-waits.ts";

export interface PushSubscription extends PushTarget {
  id: number;
  /** The author id of the person. */
  person: string;
}

export interface PushStore {
  list(accountId: number): Promise<PushSubscription[]>;
  /** Makes the browser this person's; beyond `max` per person, the oldest are removed. */
  add(args: PushTarget & {
    accountId: number; person: string; max: number; now: Instant;
  }): Promise<void>;
  /** Not bound to a person: anybody who knows the endpoint has the browser. */
  remove(args: { accountId: number; endpoint: string }): Promise<void>;
}

interface PushOptions extends ReportOptions {
  store: PushStore;
  pusher: Pusher;
  /** Null: the person is gone or may not answer any more. */
  findAuthor(accountId: number, id: string): Promise<Author | null>;
}

const NOTIFICATIONS_PER_HOUR = 60;
const BROWSERS_PER_PERSON_MAX = 10;
/** Notifications that are encrypted and sent at a time. */
const AT_ONCE_MAX = 32;
/** Seconds until the second, third … attempt; after that, the inbox still shows the visitor. */
const RETRY_SECONDS = [5, 30, 120];
const CHARS_MAX = 200;

/** The payload that the page's service worker shows. */
interface Shown {
  title: string;
  body: string;
  /** Which conversation a click opens. */
  conversation_id: string;
  /** Shown only if the browser's session is still valid: it may have been ended elsewhere. */
  for_session?: true;
}

function shownOf({ data, assistant: { name }, conversation }: Report): Shown {
  const title = data.type === "callback_requested"
    ? `${data.callback.name} wants to be reached`
    : `${visitorOf(conversation)} waits for a person`;
  return {
    title: wholeStart(title, CHARS_MAX), body: wholeStart(name, CHARS_MAX),
    conversation_id: data.conversation_id,
  };
}

export function createPush(options: PushOptions) {
  const { store, pusher, system } = options;
  const sending = createSending(options);
  const end = reportWaiting(options, {
    name: "notifications",
    perHour: NOTIFICATIONS_PER_HOUR,
    recipients: ({ accountId }) => store.list(accountId),
    send: async (report, subscriptions) => {
      const shown = shownOf(report);
      const topic = report.conversation.uuid.replaceAll("-", "");
      await Promise.all(subscriptions.map((one) => {
        const text = JSON.stringify(
          isUserAuthor(one.person) ? { ...shown, for_session: true } : shown);
        return sending.send(report.accountId, one, { text, topic });
      }));
    },
  });
  return {
    publicKey: pusher.publicKey,
    subscribe: (args: PushTarget & { accountId: number; person: string }): Promise<void> =>
      store.add({ ...args, max: BROWSERS_PER_PERSON_MAX, now: system.now() }),
    unsubscribe: store.remove,
    close: async (): Promise<void> => {
      end();
      sending.close();
      await pusher.close();
    },
  };
}

export type Push = ReturnType<typeof createPush>;

function createSending({ store, pusher, findAuthor, system, log }: PushOptions) {
  const timers = new Set<Timer>();
  const places = createPlaces(AT_ONCE_MAX);
  let isClosed = false;
  /** Null: it came to its turn after the end. */
  const attempt = async (
    accountId: number, one: PushSubscription, message: { text: string; topic: string },
  ): Promise<PushOutcome | null> => {
    if (isClosed) return null;
    // People who left, or may not answer any more, are not shown who writes.
    return await findAuthor(accountId, one.person) ? pusher.send(one, message) : { kind: "gone" };
  };
  const send = async (
    accountId: number, one: PushSubscription, message: { text: string; topic: string },
    attempts = 0,
  ): Promise<void> => {
    const outcome = await places.take(accountId, () => attempt(accountId, one, message));
    if (!outcome || outcome.kind === "taken" || isClosed) return;
    if (outcome.kind === "gone") return store.remove({ accountId, endpoint: one.endpoint });
    const seconds = RETRY_SECONDS[attempts];
    if (!outcome.retryable || seconds === undefined) {
      log.warn({ error: outcome.error, subscription_id: one.id }, "could not notify a browser");
      return;
    }
    const timer = system.after(Math.max(seconds, outcome.retryAfterS) * 1000, () => {
      timers.delete(timer);
      send(accountId, one, message, attempts + 1).catch((error: unknown) =>
        log.error({ err: error }, "could not notify a browser again"));
    });
    timers.add(timer);
  };
  return {
    send,
    close: (): void => {
      isClosed = true;
      for (const timer of timers) timer.cancel();
    },
  };
}
