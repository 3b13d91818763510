// Connects the parts: what visitors do becomes state and requests; state is drawn and stored.
import { faultOf, FILE_MB_MAX, FILES_MAX } from "#ui/attachments.ts";
import { Refusal, type Api, type Settings } from "./api.ts";
import { createCalling, noCall } from "./calling.ts";
import type { Options } from "./options.ts";
import { createSession, type Session, type State } from "./session.ts";
import { createMemory } from "./memory.ts";
import { chime } from "./sound.ts";
import { abandoned, asksOpinion, isAnswering, openTurn, rated, renewed, type Talk } from "./store.ts";
import { createShell } from "./shell.ts";
import { pauseAfter } from "./stream.ts";
import type { Actions, View } from "./view.ts";
import { createSay, type Say } from "./texts.ts";

/** `crypto.randomUUID` exists on pages served over https only. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** How often, at most, a person at the desk is notified that the visitor types. */
const TYPING_PAUSE_MS = 4000;

interface Kept extends State {
  keep(): void;
}

/** `joined`: another tab has begun a conversation anew, and this one shows it now. */
function createState(
  options: Options, signal: AbortSignal, draw: () => void, joined: () => void,
): Kept {
  const memory = createMemory(
    `assistant-chat ${options.origin} ${options.assistant}`, options.visitor?.id ?? null, signal);
  let willDraw = false;
  let isBehind = false;
  /** Adopts what another tab has begun, once a reply or a call here has ended. */
  const join = (): void => {
    if (!isBehind || isAnswering(state.talk) || state.call.isLive) return;
    isBehind = false;
    const talk = memory.adopted(state.talk);
    if (!talk) return;
    state.set(talk);
    joined();
  };
  memory.onWritten(() => {
    isBehind = true;
    join();
  });
  const drawOnce = (): void => {
    willDraw = false;
    draw();
  };
  const state: Kept = {
    talk: memory.load(),
    signal,
    isOffline: false,
    uploads: 0,
    fileProblem: "",
    typingUntil: 0,
    call: noCall(),
    keep: () => memory.save(state.talk, !isBehind),
    set: (next: Talk) => {
      // The widget is gone: what comes late is dropped, and the next one gets it from the server.
      if (signal.aborted) return;
      state.talk = next;
      state.keep();
      join();
      if (willDraw) return;
      willDraw = true;
      // Pages in the background get no animation frames, but what they announce is heard.
      if (document.hidden) queueMicrotask(drawOnce);
      else requestAnimationFrame(drawOnce);
    },
  };
  return state;
}

/** Ratings and scores of visitors, and the new conversation that may follow a score. */
function createOpinions(
  state: Kept, session: Session, api: Api, showNow: () => void,
): Pick<Actions, "rate" | "score" | "skip" | "restart" | "renew" | "sound"> {
  const renew = (): void => {
    session.unwatch();
    state.set(renewed(state.talk));
    showNow();
    void session.begin();
  };
  /** Begins the new conversation if one was asked for, else takes the question away. */
  const asked = (isThanked: boolean): void => {
    if (state.talk.isClosing) return renew();
    state.set({ ...state.talk, isScored: true, isThanked });
    showNow();
  };
  return {
    renew,
    rate: (turn, rating) => {
      const { conversation, items } = state.talk;
      const item = items.find((one) => one.role === "assistant" && one.reply === turn);
      if (conversation === null || item?.role !== "assistant") return;
      const before = item.rating ?? null;
      const next = before === rating ? null : rating;
      state.set(rated(state.talk, turn, next));
      api.rate(conversation, turn, next).catch(() => state.set(rated(state.talk, turn, before)));
    },
    score: (score, comment) => {
      const { conversation } = state.talk;
      // A score that did not arrive is not asked for again.
      if (conversation !== null) api.score(conversation, score, comment).catch(() => undefined);
      asked(true);
    },
    skip: () => asked(false),
    restart: () => {
      const closing = { ...state.talk, isClosing: true };
      if (!asksOpinion(closing)) return renew();
      state.set(closing);
      showNow();
    },
    sound: () => {
      state.set({ ...state.talk, hasSound: !state.talk.hasSound });
      if (state.talk.hasSound) chime();
    },
  };
}

/** Files are uploaded when they are chosen; the next message refers to them. */
function createFiles(
  state: Kept, session: Session, api: Api, say: Say,
): Pick<Actions, "attach" | "detach" | "fileOf"> {
  const refusalOf = (file: File): string => {
    const fault = faultOf(file);
    if (fault === null) return "";
    return fault === "kind" ? say("attach_kind") : say("attach_large", { size: FILE_MB_MAX });
  };
  const upload = async (file: File): Promise<void> => {
    await session.begin();
    const { conversation } = state.talk;
    if (conversation === null) throw new Error("there is no conversation");
    const attachment = await api.attach(conversation, file);
    if (state.talk.conversation !== conversation) return;
    state.set({ ...state.talk, attached: [...state.talk.attached, attachment] });
  };
  return {
    fileOf: (id) => api.fileOf(state.talk.conversation ?? "", id),
    detach: (id) =>
      state.set({ ...state.talk, attached: state.talk.attached.filter((one) => one.id !== id) }),
    attach: (files) => {
      const room = FILES_MAX - state.talk.attached.length - state.uploads;
      state.fileProblem = files.length > room ? say("attach_many", { max: FILES_MAX }) : "";
      for (const file of files.slice(0, Math.max(0, room))) {
        state.fileProblem = refusalOf(file) || state.fileProblem;
        if (refusalOf(file) !== "") continue;
        state.uploads += 1;
        upload(file).catch(() => {
          state.fileProblem = say("attach_failed");
        }).finally(() => {
          state.uploads -= 1;
          state.set(state.talk);
        });
      }
      state.set(state.talk);
    },
  };
}

function createActions(
  state: ReturnType<typeof createState>, session: Session, api: Api, say: Say,
  showNow: () => void,
): Omit<Actions, "call"> {
  let nextTyping = 0;
  return {
    ...createOpinions(state, session, api, showNow),
    open: () => {
      state.set({ ...state.talk, isOpen: true, unread: 0 });
      showNow();
      void session.begin();
    },
    close: () => {
      state.set({ ...state.talk, isOpen: false });
      showNow();
      // An idle stream is not held open; a reply, a call and a person are waited for.
      const { pending, desk } = state.talk;
      if (pending === null && desk === "assistant" && !state.call.isLive) session.unwatch();
    },
    ...createFiles(state, session, api, say),
    transcript: (email) => api.transcript(state.talk.conversation ?? "", email),
    callback: async (wish) => {
      await api.callback(state.talk.conversation ?? "", wish);
      state.set({ ...state.talk, hasCallback: true });
    },
    send: (text) => {
      const { talk } = state;
      const { attached: files } = talk;
      const ids = files.length > 0 ? { files: files.map(({ id }) => id) } : {};
      state.fileProblem = "";
      state.call = { ...state.call, problem: "", offersWindow: false };
      state.set({
        ...talk,
        items: [...abandoned(talk), {
          role: "user", text, isStored: false, ...(files.length > 0 ? { files } : {}),
        }],
        attached: [],
        pending: { key: newKey(), text, ...ids },
        problem: "",
        isUnreached: false,
        draft: "",
      });
      void session.deliver();
    },
    stop: () => {
      const { conversation } = state.talk;
      if (conversation === null || !isAnswering(state.talk)) return;
      // If the server is not reached, the reply goes on and the button stays; a late stop hits no
      // other turn.
      api.stop(conversation, openTurn(state.talk)).catch(() => undefined);
    },
    retry: () => void session.deliver(),
    askForPerson: () => void session.askForPerson(),
    draft: (text) => {
      const { conversation, desk } = state.talk;
      if (desk === "person" && conversation !== null && Date.now() > nextTyping) {
        nextTyping = Date.now() + TYPING_PAUSE_MS;
        api.typing(conversation);
      }
      state.talk = { ...state.talk, draft: text };
      state.keep();
    },
    answerForm: (variables) => {
      state.set({ ...state.talk, variables });
      showNow();
      void session.begin();
    },
  };
}

/** `signal` aborts when the widget is taken out of the page, and releases all that it holds. */
export function startWidget(
  shadow: ShadowRoot, options: Options, api: Api, signal: AbortSignal,
): void {
  // Nothing is shown before it is known that the assistant exists and may be used here.
  const draw = (): void => {
    if (state.talk.settings) view.draw(state);
  };
  const state = createState(options, signal, draw, () => {
    session.unwatch();
    if (state.talk.isOpen) void session.begin();
  });
  const session = createSession(state, options, api);
  const say = createSay(() => state.talk.settings?.texts);
  const actions = createActions(state, session, api, say, () => {
    draw();
    view.focus();
  });
  const call = createCalling({
    state, session, options, say, shadow, place: (bar) => view.placeCall(bar),
  });
  const view: View = createShell({
    shadow, options, say, signal, actions: { ...actions, call },
  });

  addEventListener("online", () => {
    if (state.talk.isUnreached) void session.deliver();
  }, { signal });
  // An open stream would keep a page that is left out of the back/forward cache.
  addEventListener("pagehide", session.unwatch, { signal });
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) session.resume();
  }, { signal });
  signal.addEventListener("abort", session.unwatch);
  const wasKept = state.talk.settings !== null;
  if (wasKept) {
    draw();
    session.resume();
  }
  /** Forgets how it looked, so that the next page does not show it for a moment. */
  const leave = (): void => {
    state.set({ ...state.talk, settings: null });
    shadow.host.remove();
  };
  const taken = (settings: Settings): void => {
    if (signal.aborted) return;
    if (settings.widget_settings.enabled === false) return leave();
    const opens = !wasKept && options.opensItself;
    state.set({ ...state.talk, settings, isOpen: state.talk.isOpen || opens });
    if (!wasKept) session.resume();
  };
  const learn = async (): Promise<void> => {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        return taken(await api.settings(options));
      } catch (error) {
        // Refused: this page may not show it. Not reached or too busy: kept settings are used.
        const isRefused = error instanceof Refusal && [403, 404].includes(error.status);
        if (isRefused) return leave();
        if (wasKept) return;
      }
      await pauseAfter(failures, signal);
    }
  };
  void learn();
}
