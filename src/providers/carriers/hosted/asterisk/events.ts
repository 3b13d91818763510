// Reads the few events of ARI that matter here. Pure. Causes of an end are Asterisk's hangup causes
// (Q.850) and not the status of Dial events, because that calls a declined call, and one to nobody,
// a call without answer.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { jsonOf } from "#core/values.ts";
import type { LegEndCause } from "#providers/carriers/port.ts";
import { entryOf } from "#providers/carriers/hosted/status.ts";
import { Channel, type AriChannel } from "./ari.ts";

type AriEvent =
  /** The channel has entered our application. */
  | { kind: "entered"; channel: AriChannel }
  | { kind: "left"; channelId: string }
  | { kind: "ringing"; channelId: string }
  | { kind: "up"; channelId: string }
  | { kind: "destroyed"; channelId: string; cause: number }
  /** Another connection has the application now. */
  | { kind: "replaced" };

const Named = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 512 }), state: Type.String(),
});
const Entered = TypeCompiler.Compile(Type.Object({ channel: Channel }));
const Changed = TypeCompiler.Compile(Type.Object({ channel: Named }));
const Dialled = TypeCompiler.Compile(Type.Object({ peer: Named, dialstatus: Type.String() }));
const Destroyed = TypeCompiler.Compile(Type.Object({ channel: Named, cause: Type.Integer() }));

const STATES: Record<string, "ringing" | "up"> = { Ringing: "ringing", Up: "up" };
const DIAL_STATES: Record<string, "ringing" | "up"> = { RINGING: "ringing", ANSWER: "up" };

/** Null when the event does not matter. Never throws. */
export function readAriEvent(text: string): AriEvent | null {
  const event = jsonOf(text);
  if (typeof event !== "object" || event === null) return null;
  switch ((event as { type?: unknown }).type) {
    case "StasisStart":
      return Entered.Check(event) ? { kind: "entered", channel: event.channel } : null;
    case "StasisEnd":
      return Changed.Check(event) ? { kind: "left", channelId: event.channel.id } : null;
    case "ChannelStateChange": {
      if (!Changed.Check(event)) return null;
      const kind = entryOf(STATES, event.channel.state);
      return kind && { kind, channelId: event.channel.id };
    }
    case "Dial": {
      if (!Dialled.Check(event)) return null;
      const kind = entryOf(DIAL_STATES, event.dialstatus);
      return kind && { kind, channelId: event.peer.id };
    }
    case "ChannelDestroyed":
      return Destroyed.Check(event)
        ? { kind: "destroyed", channelId: event.channel.id, cause: event.cause }
        : null;
    case "ApplicationReplaced":
      return { kind: "replaced" };
    default:
      return null;
  }
}

/** Keyed by Q.850 cause, for calls that were never answered. */
const CAUSES: Record<number, LegEndCause> = {
  // Normal clearing: the ringing was ended.
  16: "no_answer",
  17: "busy",
  // No user responding, no answer, subscriber absent.
  18: "no_answer", 19: "no_answer", 20: "no_answer",
  21: "rejected",
};

export const causeOf = (cause: number, isAnswered: boolean): LegEndCause =>
  (isAnswered ? "far_hung_up" : entryOf(CAUSES, String(cause)) ?? "failed");
