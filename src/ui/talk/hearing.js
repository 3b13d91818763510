// What the browser itself understands of whoever speaks, for calls where the server understands
// nothing: its speech recognition (Web Speech API), as pieces of text. Used by call.js.

const recognition = () => window.SpeechRecognition ?? window.webkitSpeechRecognition;

/** Whether this browser has any; whether it works shows in the call. */
export const canHear = () => recognition() !== undefined;

/** It ends by itself after a silence; so often in a row without a word means that it does not work. */
const IDLE_ENDS_MAX = 30;
/** Ended as soon as it was started: it is not asked again at once. */
const RESTART_MS = 300;
/** Said about a silence, or about our own hanging up. */
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
