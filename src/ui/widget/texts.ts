// The words of the widget. The server sends those of the visitor's language with the settings
// (data/widget-texts), the assistant's own in place of the shipped ones; nothing is built in.
import { amongOurs } from "#ui/characters.ts";

/** A test checks that every language has each of them. */
export type TextKey =
  /** `ltr` or `rtl`. */
  | "direction"
  | "chat_with" | "unread" | "back_to_call" | "close" | "box" | "box_placeholder" | "send" | "stop"
  | "person" | "retry" | "renew" | "ended" | "too_long" | "offline" | "waiting" | "typing"
  | "answering"
  | "away" | "away_until" | "callback" | "callback_name" | "callback_phone" | "callback_wish"
  | "callback_either" | "callback_thanks" | "callback_failed"
  | "queue" | "cancel" | "transcript" | "email" | "transcript_sent" | "transcript_failed"
  | "attach" | "attach_large" | "attach_kind" | "attach_many" | "attach_failed" | "attach_remove"
  | "joined" | "left" | "you" | "assistant" | "colleague" | "not_sent" | "using" | "writing"
  | "stopped" | "log" | "dismiss" | "more" | "rate_up" | "rate_down" | "csat_title" | "csat_score" | "csat_comment"
  | "csat_thanks" | "skip"
  | "sound_on" | "sound_off"
  | "code" | "table" | "form_title" | "optional" | "start" | "unreached" | "not_started" | "busy"
  | "failed"
  | "call" | "call_window" | "open_window" | "call_ended" | "call_forbidden_here" | "call_unreached"
  | "call_bar" | "call_muted" | "call_write" | "call_browser_hears"
  /** What a call is doing and what is wrong with it, by the names of talk/call.js. */
  | `call_${string}`
  | "mute" | "hang_up";

/** `{name}` in a text is filled with the value of that name. */
export type Say = (key: TextKey, values?: Record<string, string | number>) => string;

export function createSay(texts: () => Record<string, string> | undefined): Say {
  return (key, values = {}) => (texts()?.[key] ?? key)
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => amongOurs(String(values[name] ?? "")));
}
