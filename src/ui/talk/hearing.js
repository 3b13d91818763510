// The browser's own speech recognition (Web Speech API), as pieces of text, for calls whose speech
// the server does not recognize. Used by call.js.

const recognition = () => window.SpeechRecognition ?? window.webkitSpeechRecognition;

/** Whether this browser has speech recognition; only the call shows whether it works. */
export const canHear = () => recognition() !== undefined;

/**
 * It ends by itself after a silence; so many ends in a row without a word mean it does not work.
 */
const IDLE_ENDS_MAX = 30;
/** The pause before each restart, since recognition may end as soon as it has started. */
const RESTART_MS = 300;
/** Errors that report a silence, or our own hanging up. */
const HARMLESS = ["no-speech", "aborted"];

/** `words(text, isFinal)`; `failed()` at most once, and nothing after it. */
export function startHearing({ language, track, signal, words, failed }) {
  const heard = new (recognition())();
  let idleEnds = 0;
  let isOver = false;
  const giveUp = () => {
    if (isOver || signal.aborted) return;
    isOver = true;
    failed();
  };
  // Browsers that can take the track hear it without the echo of the loudspeaker.
  const start = () => {
    try {
      heard.start(track);
    } catch {
      giveUp();
    }
  };
  heard.lang = language;
  heard.continuous = true;
  heard.interimResults = true;
  heard.onresult = ({ results, resultIndex }) => {
    if (isOver || signal.aborted) return;
    idleEnds = 0;
    let partial = "";
    for (let at = resultIndex; at < results.length; at += 1) {
      const { isFinal, 0: { transcript } } = results[at];
      if (isFinal) words(transcript, true);
      else partial += transcript;
    }
    if (partial !== "") words(partial, false);
  };
  heard.onerror = ({ error }) => {
    if (!HARMLESS.includes(error)) giveUp();
  };
  heard.onend = () => {
    if (isOver || signal.aborted) return;
    idleEnds += 1;
    if (idleEnds > IDLE_ENDS_MAX) return giveUp();
    setTimeout(() => {
      if (!isOver && !signal.aborted) start();
    }, RESTART_MS);
  };
  signal.addEventListener("abort", () => heard.abort());
  start();
}
