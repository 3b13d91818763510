// Speaks a sentence with the draft's voice and settings, by the engine that calls would use.
import { useEffect, useRef, useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { useDraft } from "./draft.ts";
import { problemOf } from "./use-chat.ts";

type State = "silent" | "waiting" | "speaking";

export function VoiceSample() {
  const api = useApi();
  const toasts = useToasts();
  const { values } = useDraft();
  const [state, setState] = useState<State>("silent");
  /** The sample that is playing; null or another once this one is stopped. */
  const playing = useRef<AudioContext | null>(null);
  const stop = (): void => {
    void playing.current?.close();
    playing.current = null;
    setState("silent");
  };
  useEffect(() => () => void playing.current?.close(), []);
  const speak = async (): Promise<void> => {
    const context = new AudioContext();
    playing.current = context;
    setState("waiting");
    const body = {
      voice_id: values.voice_id ?? 0, language_id: values.language_id ?? 0,
      synthesizer_provider_id: values.synthesizer_provider_id,
      speech_speed: values.speech_speed, voice_stability: values.voice_stability,
      voice_similarity: values.voice_similarity, tts_emotion_enabled: values.tts_emotion_enabled,
    };
    try {
      const sound = await unwrap(api.POST("/user/assistants/voice-sample", {
        body: body as never, parseAs: "arrayBuffer",
      })) as unknown as ArrayBuffer;
      const buffer = await context.decodeAudioData(sound);
      if (playing.current !== context) return;
      const source = new AudioBufferSourceNode(context, { buffer });
      source.connect(context.destination);
      source.onended = () => {
        if (playing.current === context) stop();
      };
      source.start();
      setState("speaking");
    } catch (error) {
      if (playing.current !== context) return;
      stop();
      toasts.fail(new Error(problemOf(error), { cause: error }));
    }
  };
  return (
    <p>
      <Button
        needs="build" icon={state === "speaking" ? "stop" : "play"} isBusy={state === "waiting"}
        onClick={() => (state === "speaking" ? stop() : void speak())}
      >
        {state === "speaking" ? "Stop" : "Hear these settings"}
      </Button>{" "}
      <small>A sentence with the settings shown here, saved or not. Free.</small>
    </p>
  );
}
