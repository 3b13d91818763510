// Separates a model's thinking from its answer where the server leaves it in the text, in tags
// (Ollama, vLLM and llama.cpp, unless told to separate it). Used by openai-reply.ts only.

const OPENING = "<think>";
const CLOSING = "</think>";
/** With more leading white space than this, the answer has begun. */
const HELD_CHARS_MAX = 1000;

/** Passes the answer on. Only a reply's beginning can be thinking: later tags are its text. */
export class AnswerFilter {
  #state: "before" | "thinking" | "answer" = "before";
  #held = "";
  #hasThought = false;

  /** The text that is certainly part of the answer. */
  take(text: string): string {
    this.#held += text;
    let isMoving = true;
    while (isMoving) isMoving = this.#state === "before" ? this.#open() : this.#close();
    return this.#state === "answer" ? this.rest() : "";
  }

  /** The text that was held back, for when no more comes. */
  rest(): string {
    const held = this.#state === "thinking" ? "" : this.#held;
    this.#held = "";
    return held;
  }

  /** Returns false when more text is needed to decide, and when the answer begins. */
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

  /** Returns false while the thinking has not ended, and within the answer. */
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
