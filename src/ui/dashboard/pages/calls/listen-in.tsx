// The button to listen in on a call, with a meter that shows that there is something to hear.
import { useEffect, useRef, useState } from "preact/hooks";
import { messageOf, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { startListening, type Listening, type ListenState } from "./listening.ts";

const WORDS: Record<ListenState | "off", string> = {
  off: "Both sides, only for you: nobody on the call hears you.",
  connecting: "Connecting…",
  playing: "Listening in.",
  lost: "The audio was lost. Reconnecting…",
  over: "The audio has ended.",
};

export function ListenIn({ callId }: { callId: number }) {
  const api = useApi();
  const [state, setState] = useState<ListenState | "off">("off");
  const [problem, setProblem] = useState<unknown>(null);
  const listening = useRef<Listening | null>(null);
  const stop = (): void => {
    listening.current?.stop();
    listening.current = null;
  };
  useEffect(() => stop, [callId]);
  const isOn = state !== "off" && state !== "over";
  const start = (): void => {
    setProblem(null);
    listening.current = startListening({
      callId,
      askTicket: async () => (await unwrap(api.POST("/user/stream-tickets"))).ticket,
      onState: (next, why) => {
        setState(next);
        if (why !== undefined) setProblem(why);
      },
    });
  };
  const toggle = (): void => {
    if (!isOn) return start();
    stop();
    setState("off");
  };
  return (
    <div class="calls-listen">
      <Button icon={isOn ? "stop" : "listen"} onClick={toggle}>
        {isOn ? "Stop listening" : "Listen in"}
      </Button>
      <Meter listening={listening} isOn={state === "playing"} />
      <small role="status">{problem ? messageOf(problem) : WORDS[state]}</small>
    </div>
  );
}

function Meter({ listening, isOn }: { listening: { current: Listening | null }; isOn: boolean }) {
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!isOn) return;
    let frame = 0;
    let shown = 0;
    const draw = (): void => {
      // Rises at once and falls slowly: eyes would miss short peaks.
      shown = Math.max(listening.current?.level() ?? 0, shown * 0.9);
      if (bar.current) bar.current.style.scale = `${shown.toFixed(3)} 1`;
      frame = requestAnimationFrame(draw);
    };
    draw();
    return () => cancelAnimationFrame(frame);
  }, [isOn]);
  return <span class="calls-meter" aria-hidden="true">{isOn && <i ref={bar} />}</span>;
}
