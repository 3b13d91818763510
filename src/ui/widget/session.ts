// The conversation at the server: creates it, watches it, and sends the pending message under one
// idempotency key until it is accepted. The stream alone says what was said. Used by controller.ts.
import { Refusal, type Api } from "./api.ts";
import { fieldsOf, type Options } from "./options.ts";
import type { Shown } from "./view.ts";
import { chime } from "./sound.ts";
import { apply, fromHistory, isAnswering, isStored, renewed, replaced, type Talk } from "./store.ts";
import { pauseAfter, watch, type Frame } from "./stream.ts";

/** How long `typing_started` counts; it is repeated while the person goes on typing. */
const TYPING_MS = 6000;
/** How often the place in line is polled. */
const PLACE_MS = 15_000;

/** The one place where the talk is kept; `set` stores and draws it. */
export interface State extends Shown {
  /** The widget was taken out of the page. */
  signal: AbortSignal;
  set(next: Talk): void;
}

export interface Session {
  /** Makes the conversation, or goes on with the one there is. */
  begin(): Promise<void>;
  /** Sends the pending message; harmless when it was taken already. */
  deliver(): Promise<void>;
  /** Makes the conversation first if there is none yet. */
  askForPerson(): Promise<void>;
  unwatch(): void;
  /** Goes on after the page was loaded or shown again. */
  resume(): void;
}

function refuse(state: State, error: unknown): void {
  const isUnreached = !(error instanceof Refusal);
  const problem = isUnreached ? "unreached" : [409, 429].includes(error.status) ? "busy" : "failed";
  state.set({ ...state.talk, problem, isUnreached });
}

/** The reply is being written already, whatever became of the request. */
const isRunning = ({ talk }: State): boolean =>
  isStored(talk) && talk.items.at(-1)?.role === "assistant";

/** Watches the conversation while it is wanted. */
function createFollower(
  state: State, api: Api, lost: () => void, reached: () => void, reset: () => void,
) {
  let watching: AbortController | null = null;
  let again: ReturnType<typeof setTimeout> | undefined;
  const look = async (conversation: string): Promise<void> => {
    clearTimeout(again);
    const seen = await api.deskOf(conversation).catch(() => null);
    if (state.talk.conversation !== conversation || !watching) return;
    if (seen) state.set({ ...state.talk, ...seen });
    if (state.talk.desk !== "waiting") return;
    clearTimeout(again);
    again = setTimeout(() => void look(conversation), PLACE_MS);
  };
  const unwatch = (): void => {
    clearTimeout(again);
    watching?.abort();
    watching = null;
  };
  const reload = async (conversation: string, signal: AbortSignal): Promise<void> => {
    for (let failures = 0; ; failures += 1) {
      const read = await api.history(conversation).catch(() => null);
      if (signal.aborted) return;
      if (read) {
        state.set(fromHistory(state.talk, read));
        return reset();
      }
      await pauseAfter(failures, signal);
    }
  };
  const take = (frames: Frame[], conversation: string): void => {
    let next = state.talk;
    for (const frame of frames) next = apply(next, frame);
    const came = frames.filter(({ message }) => message && message.role !== "user").length;
    if (!next.isOpen) next = { ...next, unread: next.unread + came };
    if (came > 0 && next.hasSound && (!next.isOpen || document.hidden)) chime();
    for (const { type, by, message } of frames) {
      if (type === "typing_started" && by?.role === "operator") {
        state.typingUntil = Date.now() + TYPING_MS;
        setTimeout(() => state.set(state.talk), TYPING_MS);
      } else if (type === "typing_ended" || message) state.typingUntil = 0;
    }
    state.set(next);
    if (frames.some(({ type }) => type === "desk_changed")) void look(conversation);
  };
  const follow = (conversation: string): void => {
    if (watching || state.signal.aborted) return;
    watching = new AbortController();
    const { signal } = watching;
    void watch({
      url: api.streamOf(conversation),
      position: () => state.talk.after,
      frames: (frames) => take(frames, conversation),
      connected: (isConnected) => {
        state.isOffline = !isConnected;
        state.set(state.talk);
        if (isConnected) reached();
        if (isConnected && state.talk.desk !== "assistant") void look(conversation);
      },
      reset: () => reload(conversation, signal),
      gone: () => {
        unwatch();
        lost();
      },
    }, signal);
  };
  return { follow, unwatch };
}

/** Makes conversations, or finds the existing one of a visitor who has signed in at the page. */
function createMaker(
  state: State, options: Options, api: Api,
  { follow, unwatch }: ReturnType<typeof createFollower>,
) {
  const { assistant, visitor } = options;
  let creating: Promise<void> | null = null;
  /** The server has said which conversation the visitor has. */
  let isKnown = visitor === undefined;
  const take = (made: string): void => {
    const { talk } = state;
    const isOther = talk.conversation !== null && talk.conversation !== made;
    // A message that is being sent stays in its conversation.
    if (isOther && talk.pending) return;
    isKnown = true;
    if (isOther) unwatch();
    state.set({
      ...isOther ? renewed(talk) : talk, conversation: made, problem: "", isUnreached: false,
      // The visitor's existing conversation has the answers to the form.
      ...visitor && talk.variables === null ? { variables: {} } : {},
    });
    follow(made);
  };
  const give = (error: unknown): void => {
    const status = error instanceof Refusal ? error.status : 0;
    // If the server rejects the form's answers, the form is shown again.
    const isFirst = status === 422 && Object.keys(state.talk.variables ?? {}).length === 0;
    if (status === 422) state.set({ ...state.talk, variables: null });
    if (visitor && (status === 403 || (status === 422 && !visitor.hash))) {
      // oxlint-disable-next-line no-console -- for whoever made the page
      console.error("assistant-chat: data-user-id was refused, see data-user-hash");
    } else if (isFirst) {
      isKnown = true;
      return;
    }
    refuse(state, error);
  };
  return {
    isKnown: (): boolean => isKnown,
    make: (variables: Record<string, string>): Promise<void> => {
      // Concurrent calls wait for the same conversation.
      creating ??= api.create({ assistant, variables, visitor, anew: isKnown })
        .then(take, give).finally(() => {
          creating = null;
        });
      return creating;
    },
  };
}

export function createSession(state: State, options: Options, api: Api): Session {
  /** Keys in flight: the stream may bring a reply, and the next be sent, before a POST ends. */
  const sending = new Set<string>();
  const follower = createFollower(state, api, () => {
    state.set(replaced(state.talk));
    if (state.talk.isOpen) void begin();
  }, () => {
    if (state.talk.isUnreached) void deliver();
  }, () => {
    // What became of the message may have been lost with the frames.
    if (isAnswering(state.talk)) void deliver();
  });
  const { follow, unwatch } = follower;
  const maker = createMaker(state, options, api, follower);

  const begin = async (): Promise<void> => {
    const { conversation, variables } = state.talk;
    const isAsked = fieldsOf(options, state.talk.settings).length > 0 && variables === null;
    // The server is asked first: a visitor who has talked before, even elsewhere, skips the form.
    if (isAsked && maker.isKnown()) return;
    // A message that is being sent stays in its conversation.
    if (conversation !== null && (maker.isKnown() || state.talk.pending)) {
      return follow(conversation);
    }
    return maker.make({ ...options.variables, ...variables });
  };
  const deliver = async (): Promise<void> => {
    const key = state.talk.pending?.key ?? "";
    if (sending.has(key)) return;
    sending.add(key);
    if (state.talk.problem !== "") state.set({ ...state.talk, problem: "", isUnreached: false });
    await begin();
    const { conversation, pending, after } = state.talk;
    try {
      if (conversation === null || pending?.key !== key) return;
      const outcome = await api.send(conversation, pending);
      if (outcome === "over" && state.talk.pending?.key === key) {
        state.set({ ...state.talk, pending: null });
      }
    } catch (error) {
      // Frames that the stream has brought since are newer than the failure of this request.
      const isTold = isRunning(state)
        || (!(error instanceof Refusal) && state.talk.after !== after);
      if (state.talk.pending?.key === key && !isTold) refuse(state, error);
    } finally {
      sending.delete(key);
    }
  };
  return {
    begin, deliver, unwatch,
    askForPerson: async () => {
      await begin();
      const { conversation } = state.talk;
      // The outcome comes as an event on the stream.
      if (conversation === null) return;
      await api.askForPerson(conversation).catch((error: unknown) => refuse(state, error));
    },
    resume: () => {
      const { desk, isOpen, pending, problem, isUnreached } = state.talk;
      if (isOpen || pending || desk !== "assistant") void begin();
      if (pending && (problem === "" || isUnreached) && !isRunning(state)) void deliver();
    },
  };
}
