// Section: which model thinks, and in which of the three ways it talks.
import { SelectField, type Option } from "#ui/dashboard/kit/controls.tsx";
import { words } from "#ui/dashboard/kit/format.ts";
import { Notice } from "#ui/dashboard/kit/layout.tsx";
import { useDraft, type Values } from "#ui/dashboard/pages/assistants/draft.ts";
import { Row, Slider } from "#ui/dashboard/pages/assistants/fields.tsx";
import { about } from "#ui/dashboard/pages/assistants/labels.ts";
import { isAvailable, lackOf, useModels } from "#ui/dashboard/pages/assistants/lookups.ts";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";

function Summary() {
  const { values } = useDraft();
  const mode = values.mode ?? "pipeline";
  const models = useModels(mode === "pipeline" ? "llm" : mode).value;
  const id = mode === "pipeline" ? values.llm_model_id : values.multimodal_model_id;
  return <>{words(mode)}, {models?.find((model) => model.id === id)?.name ?? "no model"}</>;
}

const MODES = [
  { value: "pipeline", label: "Pipeline: transcriber, model, voice" },
  { value: "multimodal", label: "Multimodal: one model hears and speaks" },
  { value: "dualplex", label: "Dualplex: one model hears, a voice speaks" },
];

/** A mode without any available model is disabled and says what the first model lacks. */
function useModes(chosen: string): Option[] {
  const multimodal = useModels("multimodal").value;
  const dualplex = useModels("dualplex").value;
  const models: Record<string, typeof multimodal> = { multimodal, dualplex };
  return MODES.map(({ value, label }) => {
    const [first, ...rest] = models[value] ?? [];
    return first && ![first, ...rest].some(isAvailable)
      ? { value, label: `${label}${lackOf(first)}`, isDisabled: value !== chosen }
      : { value, label };
  });
}

function Body() {
  const { values, record, errors, set } = useDraft();
  const mode = values.mode ?? "pipeline";
  const chat = useModels("llm").value;
  const modes = useModes(mode);
  const spoken = useModels(mode === "dualplex" ? "dualplex" : "multimodal").value;
  return (
    <>
      <div class="form-row">
        <SelectField
          {...about("mode")} value={mode} options={modes} error={errors.mode}
          onInput={(next) => set("mode", next as Values["mode"])}
        />
        {mode === "pipeline"
          ? <Row name="llm_model_id" none="Choose…" items={chat} />
          : <Row name="multimodal_model_id" none="Choose…" items={spoken} />}
        {mode !== "pipeline" && (
          <Row
            name="chat_llm_fallback_id" none="The server’s choice"
            items={chat}
          />
        )}
      </div>
      {mode !== record.mode && (
        <Notice tone="warn">
          Another mode starts with its own model and speech providers unless you choose them here.
        </Notice>
      )}
      <div class="form-row">
        <Slider name="llm_temperature" />
        {mode !== "pipeline" && <Slider name="turn_detection_threshold" />}
      </div>
    </>
  );
}

export const MODEL: SectionSpec = {
  id: "model", title: "Model", Summary, Body,
  fields: [
    "mode", "llm_model_id", "multimodal_model_id", "chat_llm_fallback_id", "llm_temperature",
    "turn_detection_threshold",
  ],
};
