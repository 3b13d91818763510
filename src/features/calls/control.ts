// What an operator can do to a live call: say, mute, end, listen in. persons.ts has what people do
// who take part themselves. Part of calling.ts.
import type { Calling } from "./calling.ts";
import type { CallingOptions, LiveCall } from "./live-call.ts";
import { createPersons } from "./persons.ts";
import type { EndReason } from "./records/records.ts";

export function createControl(
  options: CallingOptions,
  { live, opening }: {
    live: ReadonlyMap<number, LiveCall>;
    /** Each resolves once the call is live, or is known never to be. */
    opening: ReadonlyMap<number, Promise<void>>;
  },
  end: (call: LiveCall, reason: EndReason) => Promise<void>,
): Pick<Calling, "control" | "listen" | "persons"> {
  const { media } = options;
  const answered = (callId: number): LiveCall | null => {
    const call = live.get(callId);
    return call?.answered && !call.isOver ? call : null;
  };
  return {
    control: {
      say: (callId, text) => {
        const call = answered(callId);
        if (!call || call.person?.isAlone) return false;
        media.send({ kind: "say", callId, text });
        return true;
      },
      mute: (callId, on) => {
        if (!answered(callId)) return false;
        media.send({ kind: "mute", callId, on });
        return true;
      },
      end: async (callId) => {
        await opening.get(callId);
        const call = live.get(callId);
        if (!call || call.isOver) return false;
        await end(call, "operator");
        return true;
      },
    },
    persons: createPersons(options, answered),
    listen: (callId, onAudio, over) => {
      const call = answered(callId);
      if (!call) return null;
      const listener = { onAudio, over };
      call.listeners.add(listener);
      media.send({ kind: "listen", callId, on: true });
      return () => {
        call.listeners.delete(listener);
        if (call.listeners.size === 0) media.send({ kind: "listen", callId, on: false });
      };
    },
  };
}
