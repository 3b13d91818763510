// What a model thinks before it answers, where its server leaves that in the text, between tags
// (Ollama, vLLM and llama.cpp, unless told to part it). Used by openai-reply.ts only.

const OPENING = "<think>";
const CLOSING = "</think>";
/** More blanks than this are the answer. */
const HELD_CHARS_MAX = 1000;

/** Lets the answer through. Only what a reply begins with is thinking: later, tags are its text. */
export class AnswerFilter {
  #state: "before" | "thinking" | "answer" = "before";
  #held = "";
  #hasThought = false;

  /** What is certain of the answer by now. */
  take(text: string): string {
    this.#held += text;
    let isMoving = true;
    while (isMoving) isMoving = this.#state === "before" ? this.#open() : this.#close();
    return this.#state === "answer" ? this.rest() : "";
  }

  /** What was held back, as no more comes. */
  rest(): string {
    const held = this.#state === "thinking" ? "" : this.#held;
    this.#held = "";
    return held;
  }

  /** False while more is needed to know, and where the answer begins. */
  #open(): boolean {
    const start = this.#held.trimStart();
    const isThinking = start.startsWith(OPENING);
    if (this.#hasThought || isThinking) this.#held = start;
    if (isThinking) {
      this.#state = "thinking";
      this.#held = start.slice(OPENING.length);
      this.#hasThought = true;
    } else if (!OPENING.startsWith(start) || this.#held.length > HELD_CHARS_MAX) {
      this.#state = "answer";
    }
    return isThinking;
  }

  /** False while the end of the thinking is not there, and in the answer. */
  #close(): boolean {
    if (this.#state === "answer") return false;
    const at = this.#held.indexOf(CLOSING);
    if (at === -1) {
      this.#held = this.#held.slice(1 - CLOSING.length);
      return false;
    }
    this.#state = "before";
    this.#held = this.#held.slice(at + CLOSING.length);
    return true;
  }
}
