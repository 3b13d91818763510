// What call.js offers, for the chat widget, which is written in TypeScript.

/** The server's messages beside the audio, as docs/calls.md describes them. */
export interface CallMessage {
  type: string;
  state?: string;
  role?: "customer" | "assistant";
  text?: string;
  final?: boolean;
  reason?: string;
  error?: string;
  hearing?: string;
}

/** Who recognizes the caller's speech; `typed`: nobody, the caller types. */
export type Hearing = "server" | "browser" | "typed";

/** `microphone`, `forbidden`: another page may be allowed what this one is not. */
export type Cause = "" | "microphone" | "forbidden";

export interface CallHandlers {
  message(message: CallMessage): void;
  /** Empty when all is well again. */
  notice(text: string): void;
  /** Speech is not (or no longer) recognized: the caller's words come through `say`. */
  typed(): void;
  /** Comes once and last; the problem is empty when the call ended as it should. */
  closed(problem: string, cause: Cause): void;
}

export interface CallGiven {
  /** The server's origin; unless given, the page's own. */
  origin?: string;
  /** The conversation to talk in; unless given, a new one. */
  conversation?(): Promise<string>;
  /** Created in the click handler, where this module is loaded only after the click. */
  context?: AudioContext;
  /** As `hearingOf` says; unless given, the server. */
  hearing?: Hearing;
  /** ISO 639-1, for the browser's own recognition. */
  language?: string;
}

export interface Call {
  hangUp(): void;
  mute(on: boolean): void;
  press(digit: string): void;
  say(text: string): void;
}

export const STATES: Record<string, string>;
export const PROBLEMS: Record<string, string>;
export const REASONS: Record<string, string>;
export const HEARINGS: Record<Hearing, string>;
export function hearingOf(settings: { hears?: boolean }): Hearing;
export function startCall(assistant: string, handlers: CallHandlers, given?: CallGiven): Call;
