// What an operator can do to calls that are live: say, mute, end, listen in. Part of calling.ts.
import type { Calling } from "./calling.ts";
import type { CallingOptions, LiveCall } from "./live-call.ts";
import type { EndReason } from "./records.ts";

export function createControl(
  media: CallingOptions["media"],
  live: Map<number, LiveCall>,
  end: (call: LiveCall, reason: EndReason) => Promise<void>,
): Pick<Calling, "control" | "listen"> {
  const answered = (callId: number): LiveCall | null => {
    const call = live.get(callId);
    return call?.isAnswered && !call.isOver ? call : null;
  };
  return {
    control: {
      say: (callId, text) => {
        if (!answered(callId)) return false;
        media.send({ kind: "say", callId, text });
        return true;
      },
      mute: (callId, on) => {
        if (!answered(callId)) return false;
        media.send({ kind: "mute", callId, on });
        return true;
      },
      end: async (callId) => {
        const call = live.get(callId);
        if (!call || call.isOver) return false;
        await end(call, "operator");
        return true;
      },
    },
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
