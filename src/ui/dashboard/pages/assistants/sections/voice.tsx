// Section: the language and the voice, and how it sounds.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Dialog, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { decimal, words } from "#ui/dashboard/kit/format.ts";
import { Loaded } from "#ui/dashboard/kit/layout.tsx";
import { useDraft } from "#ui/dashboard/pages/assistants/draft.ts";
import { Row, Slider, Switch } from "#ui/dashboard/pages/assistants/fields.tsx";
import { about, labelOf } from "#ui/dashboard/pages/assistants/labels.ts";
import { Lines } from "#ui/dashboard/pages/assistants/lines.tsx";
import {
  isAvailable, lackOf, languageRows, useLanguages, useSynthesizers, useTranscribers, useVoices,
} from "#ui/dashboard/pages/assistants/lookups.ts";
import { VoiceSample } from "#ui/dashboard/pages/assistants/voice-sample.tsx";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

function Summary() {
  const { mode, language_id, voice_id, speech_speed } = useDraft().values;
  const languages = useLanguages().value;
  const voices = useVoices(mode ?? "pipeline", null).value;
  const voice = voices?.find(({ id }) => id === voice_id)?.name ?? t("no voice");
  const language = languages?.find(({ id }) => id === language_id)?.name ?? "";
  return <>{voice}, {language}, speed {decimal(speech_speed ?? 1, 2)}</>;
}

function Body() {
  const { values, errors, warnings, set } = useDraft();
  const language = values.language_id ?? 0;
  const mode = values.mode ?? "pipeline";
  const languages = languageRows(useLanguages().value, mode);
  const synthesizers = useSynthesizers(language).value;
  const transcribers = useTranscribers(language).value;
  const told = about("recogniser_hints");
  const others = values.secondary_language_ids ?? [];
  return (
    <>
      <div class="form-row">
        <Row name="language_id" items={languages} />
        <VoiceField />
      </div>
      <details class="assistants-more">
        <summary>{labelOf("secondary_language_ids")} ({others.length})</summary>
        {warnings.secondary_language_ids && (
          <small class="assistants-warning">{warnings.secondary_language_ids}</small>
        )}
        <div class="assistants-chips">
          {(languages ?? []).filter(({ id }) => id !== language).map(({ id, name, isGrey }) => (
            <label key={id} class={`assistants-check ${isGrey ? "soft" : ""}`}>
              <input
                type="checkbox" checked={others.includes(id)}
                onChange={(event) => set("secondary_language_ids", event.currentTarget.checked
                  ? [...others, id]
                  : others.filter((other) => other !== id))}
              />
              {name}
            </label>
          ))}
        </div>
      </details>
      <div class="form-row">
        <Slider name="speech_speed" min={0.7} max={1.2} />
        <Slider name="voice_stability" />
        <Slider name="voice_similarity" />
      </div>
      <Switch name="tts_emotion_enabled" />
      {mode !== "multimodal" && <VoiceSample />}
      <Lines
        {...told} hint={warnings.recogniser_hints ?? told.hint} errors={errors}
        value={values.recogniser_hints ?? []}
        onInput={(hints) => set("recogniser_hints", hints)}
      />
      {mode !== "multimodal" && (
        <div class="form-row">
          <Row
            name="synthesizer_provider_id" none="Chosen by language"
            items={synthesizers}
          />
          {mode === "pipeline" && (
            <Row
              name="transcriber_provider_id" none="Chosen by language"
              items={transcribers}
            />
          )}
        </div>
      )}
    </>
  );
}

type Voice = NonNullable<ReturnType<typeof useVoices>["value"]>[number];

const traits = ({ gender, age, accent }: Voice): string =>
  [words(gender), age, accent].filter(Boolean).join(", ");

function VoiceField() {
  const { values, errors, set } = useDraft();
  const [isPicking, setPicking] = useState(false);
  const mode = values.mode ?? "pipeline";
  const every = useVoices(mode, null).value;
  const fitting = useVoices(mode, values.language_id ?? null).value;
  const chosen = every?.find(({ id }) => id === values.voice_id);
  const { warnings } = useDraft();
  const fits = !fitting || fitting.some(({ id }) => id === values.voice_id);
  return (
    <div class={`field ${errors.voice_id ? "wrong" : ""}`}>
      <label for="assistants-voice">{labelOf("voice_id")}</label>
      <button
        id="assistants-voice" type="button" data-setting="voice_id" class="button assistants-voice"
        aria-describedby="assistants-voice-note" onClick={() => setPicking(true)}
        {...(errors.voice_id ? { "aria-invalid": true } : {})}
      >
        <span>{chosen ? `${chosen.name}${lackOf(chosen)}` : "Choose…"}</span>
        <small>{chosen ? traits(chosen) : ""}</small>
      </button>
      <small id="assistants-voice-note">
        {errors.voice_id ?? warnings.voice_id ?? (fits ? "" : "Not made for this language.")}
      </small>
      {isPicking && (
        <VoicePicker
          onClose={() => setPicking(false)}
          onPick={(id) => {
            set("voice_id", id);
            setPicking(false);
          }}
        />
      )}
    </div>
  );
}

/** Plays one voice at a time, until its sample ends or the dialog is closed. */
function useListening() {
  const toasts = useToasts();
  const audio = useRef<HTMLAudioElement | null>(null);
  const [playing, setPlaying] = useState<number | null>(null);
  const stop = (): void => {
    audio.current?.pause();
    audio.current = null;
    setPlaying(null);
  };
  useEffect(() => () => audio.current?.pause(), []);
  const listen = (id: number, url: string): void => {
    stop();
    if (id === playing) return;
    const next = new Audio(url);
    audio.current = next;
    setPlaying(id);
    next.addEventListener("ended", stop);
    next.play().catch((error: unknown) => {
      if (audio.current !== next) return;
      stop();
      toasts.fail(new Error("The voice cannot be played.", { cause: error }));
    });
  };
  return { playing, listen };
}

function VoicePicker({ onPick, onClose }: { onPick(id: number): void; onClose(): void }) {
  const { values } = useDraft();
  const [search, setSearch] = useState("");
  const [gender, setGender] = useState("");
  const voices = useVoices(values.mode ?? "pipeline", values.language_id ?? null);
  const { playing, listen } = useListening();
  const passes = (voice: Voice): boolean =>
    (gender === "" || voice.gender === gender)
    && `${voice.name} ${traits(voice)}`.toLowerCase().includes(search.trim().toLowerCase());
  return (
    <Dialog title="Voice" onClose={onClose}>
      <div class="filters">
        <TextField
          label="Search" type="search" value={search} placeholder="Name, accent, age"
          onInput={setSearch}
        />
        <SelectField
          label="Gender" value={gender} onInput={setGender}
          options={[
            { value: "", label: "All" }, { value: "female", label: "Female" },
            { value: "male", label: "Male" },
          ]}
        />
      </div>
      <Loaded data={voices}>
        {(list) => {
          const found = list.filter(passes);
          return found.length === 0 ? <p>No matching voices.</p> : (
            <ul class="assistants-voices" aria-label="Voices for the language">
              {found.map((voice) => (
                <li key={voice.id}>
                  <button
                    type="button" aria-pressed={voice.id === values.voice_id}
                    disabled={!isAvailable(voice)} onClick={() => onPick(voice.id)}
                  >
                    <strong>{voice.name}</strong>
                    <small>{traits(voice)}{lackOf(voice)}</small>
                  </button>
                  {voice.preview_url && (
                    <Button
                      icon={playing === voice.id ? "stop" : "play"}
                      label={`${playing === voice.id ? "Stop" : "Listen to"} ${voice.name}`}
                      onClick={() => listen(voice.id, voice.preview_url ?? "")}
                    />
                  )}
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Dialog>
  );
}

export const VOICE: SectionSpec = {
  id: "voice", title: "Voice and speech", Summary, Body,
  fields: [
    "language_id", "secondary_language_ids", "voice_id", "speech_speed", "voice_stability",
    "voice_similarity", "tts_emotion_enabled", "synthesizer_provider_id",
    "transcriber_provider_id", "recogniser_hints",
  ],
};
