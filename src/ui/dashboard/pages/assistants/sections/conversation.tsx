// Section: turn taking, silence, sounds, recording and voicemail.
import { SelectField } from "#ui/dashboard/kit/controls.tsx";
import { duration, words } from "#ui/dashboard/kit/format.ts";
import { useDraft, type Values } from "#ui/dashboard/pages/assistants/draft.ts";
import { Amount, Choice, LongText, Slider, Switch } from "#ui/dashboard/pages/assistants/fields.tsx";
import { about } from "#ui/dashboard/pages/assistants/labels.ts";
import { Lines } from "#ui/dashboard/pages/assistants/lines.tsx";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";

function Summary() {
  const { max_duration, record, ambient_sound } = useDraft().values;
  const sound = ambient_sound === "off" ? "" : `, ${words(ambient_sound ?? "").toLowerCase()} sound`;
  return (
    <>Up to {duration(max_duration ?? 0)}{record === true ? ", recorded" : ", not recorded"}{sound}</>
  );
}

function Turns() {
  const { values } = useDraft();
  const isPipeline = values.mode === "pipeline";
  return (
    <fieldset>
      <legend>Turn taking</legend>
      <div class="form-row">
        <Switch
          name="allow_interruptions" hint={isPipeline ? undefined : "Always, in this mode."}
        />
        <Switch name="wait_for_customer" />
        <Choice
          name="noise_cancellation"
          options={[
            { value: "off", label: "Off" },
            { value: "web", label: "In web calls" },
            { value: "everywhere", label: "In web calls and on the telephone" },
          ]}
        />
      </div>
      <div class="form-row">
        <Choice
          name="endpoint_type"
          options={[
            { value: "vad", label: "Silence (vad)" },
            { value: "ai", label: "Silence and meaning (ai)" },
          ]}
        />
        <Amount name="endpoint_sensitivity" min={0} max={1} step={0.1} />
        <Amount name="interrupt_sensitivity" min={0} max={1} step={0.1} />
        <Amount name="min_interrupt_words" min={0} max={10} />
      </div>
    </fieldset>
  );
}

function Times() {
  return (
    <fieldset>
      <legend>Silence and length</legend>
      <div class="form-row">
        <Amount name="max_duration" min={20} max={1200} />
        <Amount name="ringing_time" min={1} max={60} />
        <Amount name="conversation_inactivity_timeout" min={1} max={1440} />
      </div>
      <div class="form-row">
        <Amount name="max_silence_duration" min={1} max={360} />
        <Amount name="reengagement_interval" min={7} max={600} />
        <Amount name="max_initial_silence_duration" min={1} max={120} />
      </div>
      <LongText
        name="reengagement_prompt" rows={2} maxLength={1000}
        placeholder="Ask whether the caller is still there."
      />
    </fieldset>
  );
}

const KINDS = ["neutral", "positive", "negative", "question"] as const;

function Fillers() {
  const { values, errors, set } = useDraft();
  const config = values.filler_config ?? {};
  if (values.mode !== "pipeline") return null;
  return (
    <fieldset>
      <legend>Fillers</legend>
      <Switch name="fillers" />
      {values.fillers === true && (
        <div class="form-row">
          {KINDS.map((kind) => (
            <Lines
              key={kind} {...about(`filler_config.${kind}`)} errors={errors}
              value={config[kind] ?? []}
              onInput={(phrases) => set("filler_config", { ...config, [kind]: phrases })}
            />
          ))}
        </div>
      )}
    </fieldset>
  );
}

const SOUNDS = ["off", "office", "city", "forest", "crowded_room", "cafe", "nature"] as const;

function Body() {
  const { values, errors, set } = useDraft();
  return (
    <>
      <Turns />
      <Times />
      <Fillers />
      <fieldset>
        <legend>Audio and recording</legend>
        <div class="form-row">
          <SelectField
            {...about("ambient_sound")} value={values.ambient_sound ?? "off"}
            options={SOUNDS.map((value) => ({ value, label: words(value) }))}
            error={errors.ambient_sound}
            onInput={(value) => set("ambient_sound", value as Values["ambient_sound"])}
          />
          {values.ambient_sound !== "off" && (
            <Slider name="ambient_sound_volume" />
          )}
        </div>
        <Switch name="record" />
      </fieldset>
      <fieldset>
        <legend>Voicemail</legend>
        <Switch name="end_call_on_voicemail" />
        <LongText name="voice_mail_message" rows={2} maxLength={1000} />
      </fieldset>
    </>
  );
}

export const CONVERSATION: SectionSpec = {
  id: "conversation", title: "Conversation", Summary, Body,
  fields: [
    "allow_interruptions", "wait_for_customer", "noise_cancellation", "endpoint_type",
    "endpoint_sensitivity", "interrupt_sensitivity", "min_interrupt_words", "max_duration",
    "max_silence_duration", "max_initial_silence_duration", "ringing_time",
    "reengagement_interval", "reengagement_prompt", "conversation_inactivity_timeout", "fillers",
    "filler_config", "ambient_sound", "ambient_sound_volume", "record", "end_call_on_voicemail",
    "voice_mail_message",
  ],
};
