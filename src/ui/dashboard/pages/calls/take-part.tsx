// Taking part in a call: a line for the assistant to say, a whisper that only it hears, and the
// microphone, with which a person takes the call over until it is handed back.
import { useEffect, useRef, useState } from "preact/hooks";
import { fieldErrors, messageOf, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, sends, TextField, Toggle, useWork } from "#ui/dashboard/kit/controls.tsx";
import { useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { startSpeaking, type SpeakState } from "./speaking.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

export const NOT_LIVE = "Nobody is talking on this call any more.";

interface LineProps {
  label: string;
  action: string;
  /** Shown once it was sent. */
  done: string;
  send(text: string): Promise<{ ok: boolean }>;
}

/** A line of text for the call; text that was refused stays in the field. */
function Line({ label, action, done, send }: LineProps) {
  const toasts = useToasts();
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>(null);
  const { isBusy, run } = useWork(setError);
  const submit = (): void => {
    if (text.trim() === "") return;
    setError(null);
    run(async () => {
      const { ok } = await send(text.trim());
      if (!ok) throw new Error(NOT_LIVE);
      setText((now) => (now === text ? "" : now));
      toasts.notify(done);
    });
  };
  const complaint = error ? fieldErrors(error).text ?? messageOf(error) : undefined;
  return (
    <form class="calls-say" onSubmit={sends(submit)}>
      <TextField
        label={label} value={text} onInput={setText} maxLength={1000} error={complaint}
        autoComplete="off"
      />
      <Button type="submit" isBusy={isBusy} disabled={text.trim() === ""}>{action}</Button>
    </form>
  );
}

export function Say({ callId: id }: { callId: number }) {
  const api = useApi();
  return (
    <Line
      label="Have the assistant say" action="Say"
      done="The assistant says it as soon as nobody speaks."
      send={(text) =>
        unwrap(api.POST("/user/calls/{id}/say", { params: { path: { id } }, body: { text } }))}
    />
  );
}

export function Whisper({ callId: id }: { callId: number }) {
  const api = useApi();
  return (
    <Line
      label="Whisper to the assistant" action="Whisper"
      done="The assistant knows it. The customer does not hear it."
      send={(text) =>
        unwrap(api.POST("/user/calls/{id}/whisper", { params: { path: { id } }, body: { text } }))}
    />
  );
}

const WORDS: Record<SpeakState, string> = {
  connecting: "Opening the microphone…",
  speaking: "The customer hears you.",
  lost: "The connection was lost. Reconnecting…",
  over: "Your microphone is off.",
};

export function Microphone({ callId, holder }: {
  callId: number; holder: { name: string } | null;
}) {
  const api = useApi();
  const speaking = useRef<{ stop(): void } | null>(null);
  const [state, setState] = useState<SpeakState>("over");
  const [problem, setProblem] = useState<unknown>(null);
  const [isBeside, setBeside] = useState(false);
  const { isBusy, run } = useWork(setProblem);
  const isHere = useRef(true);
  const stop = (): void => {
    speaking.current?.stop();
    speaking.current = null;
    setState("over");
  };
  useEffect(() => () => {
    isHere.current = false;
    stop();
  }, []);
  const path = { params: { path: { id: callId } } };
  const take = (): void => {
    setProblem(null);
    run(async () => {
      await unwrap(api.POST("/user/calls/{id}/take-over", {
        ...path, body: { with_assistant: isBeside },
      }));
      // After the page was left, nobody could close the microphone.
      if (!isHere.current) return;
      speaking.current = startSpeaking({
        callId,
        askTicket: async () => (await unwrap(api.POST("/user/stream-tickets"))).ticket,
        onState: (next, why) => {
          setState(next);
          if (why !== undefined) setProblem(why);
        },
      });
    });
  };
  const handBack = (): void => {
    setProblem(null);
    stop();
    run(async () => void await unwrap(api.POST("/user/calls/{id}/hand-back", path)));
  };
  const isOn = state !== "over";
  const who = holder ? t(`${holder.name} has this call.`) : "The assistant has this call.";
  return (
    <div class="stack" role="group" aria-label="Microphone">
      {!isOn && (
        <Toggle
          label="Keep the assistant on the call" value={isBeside} onInput={setBeside}
          hint="Otherwise it stays silent, listens, and continues when you hand back."
        />
      )}
      <div class="actions">
        {!isOn && (
          <Button icon="listen" isBusy={isBusy} onClick={take}>Use the microphone</Button>
        )}
        {(isOn || holder) && <Button isBusy={isBusy} onClick={handBack}>Hand back</Button>}
      </div>
      <small role="status">{problem ? messageOf(problem) : isOn ? WORDS[state] : who}</small>
    </div>
  );
}
