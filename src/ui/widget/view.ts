// The types between controller.ts, shell.ts and the panel: what there is to draw of the chat, what
// its visitor can do, and what draws it.
import type { Rating, Wish } from "./api.ts";
import type { Options } from "./options.ts";
import type { Talk } from "./store.ts";
import type { Say } from "./texts.ts";

export interface Actions {
  open(): void;
  close(): void;
  send(text: string): void;
  stop(): void;
  /** Uploads them at once, for the next message. */
  attach(files: File[]): void;
  detach(id: string): void;
  /** The address of a file of the conversation. */
  fileOf(id: string): string;
  /** Rejects if it could not be sent. */
  transcript(email: string): Promise<void>;
  /** Rejects if the server did not take the wish. */
  callback(wish: Wish): Promise<void>;
  retry(): void;
  askForPerson(): void;
  renew(): void;
  draft(text: string): void;
  /** The same rating again takes it back. */
  rate(turn: number, rating: Rating): void;
  score(score: number, comment: string): void;
  /** The visitor gives no score. */
  skip(): void;
  /** Begins a new conversation, after asking how this one was. */
  restart(): void;
  /** Turns it on or off. */
  sound(): void;
  answerForm(variables: Record<string, string>): void;
  call(): void;
}

export interface CallState {
  isLive: boolean;
  /** Why there is no call (any more), in words. */
  problem: string;
  /** A window of the server's own may be allowed the call that this page is not. */
  offersWindow: boolean;
  /** Calls are known not to work in this page: the next opens in a window at once. */
  isForbidden: boolean;
}

/** What there is to draw. */
export interface Shown {
  talk: Talk;
  isOffline: boolean;
  /** How many uploads are in flight. */
  uploads: number;
  /** Why the last file was not attached; empty: it was. */
  fileProblem: string;
  /** Until when the person was last known to type, by the page's clock. */
  typingUntil: number;
  call: CallState;
}

export interface View {
  draw(shown: Shown): void;
  /** Puts a call's controls in place of the message box; null: takes them away. */
  placeCall(bar: HTMLElement | null): void;
  /** Puts the focus where the visitor types, or back on the launcher. */
  focus(): void;
}

export interface ShellParts {
  shadow: ShadowRoot;
  options: Options;
  actions: Actions;
  say: Say;
  /** Aborts when the widget is taken out of the page. */
  signal: AbortSignal;
}
