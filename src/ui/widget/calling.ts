// Web calls as far as the chat itself has to know of them: when one begins, its code is loaded
// (call.ts, a bundle of its own), what is said is put into the log, and afterwards the chat goes
// on. Where the page allows no call, one opens in a window of the server's own.
import type { openCall } from "./call.ts";
import type { Options } from "./options.ts";
import type { Session, State } from "./session.ts";
import { heard, hungUp, renewed } from "./store.ts";
import type { Say } from "./texts.ts";
import type { CallState } from "./view.ts";

/** Checks what the browser knows beforehand; other obstacles show when a call is tried. */
function canCallHere(): boolean {
  const { featurePolicy: policy } = document as {
    featurePolicy?: { allowsFeature(name: string): boolean };
  };
  return isSecureContext && "mediaDevices" in navigator && "AudioWorkletNode" in window
    && policy?.allowsFeature("microphone") !== false;
}

/** If the server recognises no speech, the browser's own recognition has to. */
export const canBeHeard = ({ hears }: { hears?: boolean }): boolean =>
  hears !== false || "SpeechRecognition" in window || "webkitSpeechRecognition" in window;

export const noCall = (): CallState =>
  ({ isLive: false, problem: "", offersWindow: false, isForbidden: !canCallHere() });

export const windowOf = ({ origin, assistant }: Options): string =>
  `${origin}/talk/${encodeURIComponent(assistant)}`;

interface Parts {
  state: State;
  session: Session;
  options: Options;
  say: Say;
  shadow: ShadowRoot;
  /** Shows the call's own controls, and takes them away again. */
  place(bar: HTMLElement | null): void;
}

export function createCalling({ state, session, options, say, shadow, place }: Parts): () => void {
  const publish = (call: Partial<CallState>): void => {
    state.call = { ...state.call, ...call };
    state.set(state.talk);
  };
  const forbidden = (): void => {
    // If the browser blocks the window, the notice has a link to it.
    if (!state.isOffline) window.open(windowOf(options), "_blank", "noopener");
    publish(state.isOffline
      ? { isLive: false, problem: say("call_unreached") }
      : { isLive: false, problem: say("call_forbidden_here"), offersWindow: true, isForbidden: true });
  };
  const conversation = async (): Promise<string> => {
    if (state.talk.hasEnded) {
      session.unwatch();
      state.set(renewed(state.talk));
    }
    await session.begin();
    if (state.talk.conversation === null) throw new Error("there is no conversation");
    return state.talk.conversation;
  };
  const open = (call: typeof openCall, context: AudioContext): HTMLElement => call({
    shadow, say, context, conversation, origin: options.origin, assistant: options.assistant,
    settings: state.talk.settings,
    heard: (by, text, isFinal) => state.set(heard(state.talk, by, text, isFinal)),
    over: (problem, cause) => {
      place(null);
      state.talk = hungUp(state.talk);
      if (cause === "forbidden") return forbidden();
      publish({ isLive: false, problem, offersWindow: cause === "microphone" });
    },
  });
  return () => {
    if (state.call.isLive) return;
    publish({ isLive: true, problem: "", offersWindow: false });
    // Made in the click itself: browsers play only audio that a click has started.
    const context = new AudioContext();
    void context.resume().catch(() => undefined);
    import(`${options.origin}/widget-call.js`).then(
      ({ openCall: call }: { openCall: typeof openCall }) => {
        if (state.signal.aborted) return void context.close();
        const bar = open(call, context);
        state.signal.addEventListener("abort", () =>
          bar.querySelector<HTMLElement>(".end")?.click());
        place(bar);
      },
      () => {
        void context.close();
        forbidden();
      });
  };
}
