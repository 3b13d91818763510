// What there is to draw of the chat, what its visitor can do, and what draws it: the words in which
// controller.ts, shell.ts and the panel talk with each other.
import type { Rating, Wish } from "./api.ts";
import type { Options } from "./options.ts";
import type { Talk } from "./store.ts";
import type { Say } from "./texts.ts";

export interface Actions {
  open(): void;
  close(): void;
  send(text: string): void;
  stop(): void;
  /** Sends them at once, for the message that comes next. */
  attach(files: File[]): void;
  detach(id: string): void;
  /** The address of a file of the conversation. */
  fileOf(id: string): string;
  /** Rejects where it could not be sent. */
  transcript(email: string): Promise<void>;
  /** Rejects where it could not be left. */
  callback(wish: Wish): Promise<void>;
  retry(): void;
  askForPerson(): void;
  renew(): void;
  draft(text: string): void;
  /** The same again takes it back. */
  rate(turn: number, rating: Rating): void;
  score(score: number, comment: string): void;
  /** It is not said how the chat was. */
  skip(): void;
  /** A new conversation, after the question how this one was. */
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
  /** Another window may be allowed what this page is not. */
  offersWindow: boolean;
  /** Known not to work in this page: the next goes to the window at once. */
  isForbidden: boolean;
}

/** What there is to draw. */
export interface Shown {
  talk: Talk;
  isOffline: boolean;
  /** Files on their way. */
  uploads: number;
  /** Why the last file is not there; empty: it is. */
  fileProblem: string;
  /** Until when the person was last known to type, by the page's clock. */
  typingUntil: number;
  call: CallState;
}

export interface View {
  draw(shown: Shown): void;
  /** Puts a call's controls in place of the message box; null: takes them away. */
  placeCall(bar: HTMLElement | null): void;
  /** Puts the focus where one types, or back to where one came from. */
  focus(): void;
}

export interface ShellParts {
  shadow: ShadowRoot;
  options: Options;
  actions: Actions;
  say: Say;
  /** It was taken out of the page. */
  signal: AbortSignal;
}
