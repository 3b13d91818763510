// The short form a new assistant begins with; everything else has a default.
import { useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { fieldErrors } from "#ui/dashboard/data/session.tsx";
import { Form, SelectField, TextArea, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { zoneOptions } from "#ui/dashboard/kit/zone.ts";
import {
  idOf, isAvailable, languageRows, optionsOf, useLanguages, useModels, useVoices,
} from "./lookups.ts";

type Creation = NonNullable<paths["/user/assistant"]["post"]["requestBody"]>;
type NewAssistant = Creation["content"]["application/json"];

const PROMPT = "You are the friendly assistant of our company. Answer briefly and only what you know. Ask one question at a time.";

interface Fields {
  name: string;
  type: "inbound" | "outbound";
  language_id: number | null;
  voice_id: number | null;
  llm_model_id: number | null;
  timezone: string;
  initial_message: string;
  system_prompt: string;
  isActive: boolean;
}

const START: Fields = {
  name: "", type: "inbound", language_id: null, voice_id: null, llm_model_id: null,
  timezone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC",
  initial_message: "Hello! How can I help you?", system_prompt: PROMPT, isActive: true,
};

/** Until chosen: the browser's language, and the first available item of each catalog. */
function useChoices({ language_id: language, voice_id: voice, llm_model_id: model }: Fields) {
  const languages = useLanguages();
  const models = useModels("llm");
  const own = navigator.language.slice(0, 2);
  const first = languages.value?.find(({ iso_2 }) => iso_2 === own) ?? languages.value?.[0];
  const chosen = language ?? first?.id ?? null;
  const voices = useVoices("pipeline", chosen);
  const catalogs = [languages, models, voices];
  return {
    languages: languages.value, models: models.value, voices: voices.value,
    /**
     * A catalog that could not be loaded does not count; the server refuses what is then missing.
     */
    isLoading: catalogs.some(({ value, error }) => value === null && !error),
    chosen: {
      language_id: chosen,
      voice_id: voices.value?.find(({ id }) => id === voice)?.id ?? firstOf(voices.value),
      llm_model_id: model ?? firstOf(models.value),
    },
  };
}

const firstOf = (items: Parameters<typeof optionsOf>[0]): number | null =>
  (items?.find(isAvailable) ?? items?.[0])?.id ?? null;

export const TYPES = [
  { value: "inbound", label: "Inbound: answers" },
  { value: "outbound", label: "Outbound: calls people" },
];

export function CreateAssistant({ create, onClose }: {
  create(body: NewAssistant): Promise<void>; onClose(): void;
}) {
  const [fields, setFields] = useState(START);
  const [error, setError] = useState<unknown>(null);
  const set = (changes: Partial<Fields>): void =>
    setFields((before) => ({ ...before, ...changes }));
  const { languages, models, voices, isLoading, chosen } = useChoices(fields);
  const wrong = fieldErrors(error);
  const { isActive, ...body } = { ...fields, ...chosen };
  const submit = async (): Promise<void> => {
    await create({
      ...body, mode: "pipeline", status: isActive ? "active" : "inactive",
    } as NewAssistant);
  };
  const row = (
    label: string, name: "language_id" | "voice_id" | "llm_model_id",
    items: { id: number; name: string }[] | null,
  ) => (
    <SelectField
      label={label} options={optionsOf(items, chosen[name])} error={wrong[name]}
      value={String(chosen[name] ?? "")} onInput={(text) => set({ [name]: idOf(text) })}
    />
  );
  return (
    <Dialog title="New assistant" isWide onClose={onClose}>
      <Form
        submit="Create" error={error} onError={setError} isWaiting={isLoading}
        onSubmit={submit} onCancel={onClose}
      >
        <div class="form-row">
          <TextField
            label="Name" value={fields.name} error={wrong.name} placeholder="Front desk"
            onInput={(name) => set({ name })}
          />
          <SelectField
            label="Type" value={fields.type} error={wrong.type} options={TYPES}
            onInput={(type) => set({ type: type as Fields["type"] })}
          />
        </div>
        <div class="form-row">
          {row("Language", "language_id", languageRows(languages, "pipeline"))}
          {row("Voice", "voice_id", voices)}
          {row("Model", "llm_model_id", models)}
          <SelectField
            label="Time zone" value={fields.timezone} error={wrong.timezone}
            options={zoneOptions(fields.timezone)} onInput={(timezone) => set({ timezone })}
          />
        </div>
        <TextField
          label="Greeting" value={fields.initial_message} error={wrong.initial_message}
          hint="What it says first." onInput={(initial_message) => set({ initial_message })}
        />
        <TextArea
          label="Prompt" rows={7} value={fields.system_prompt} error={wrong.system_prompt}
          hint="Who it is, what it knows and how it behaves."
          onInput={(system_prompt) => set({ system_prompt })}
        />
        <Toggle
          label="Active" value={fields.isActive} onInput={(value) => set({ isActive: value })}
          hint="Takes calls as soon as it is created. Chats are answered either way."
        />
      </Form>
    </Dialog>
  );
}
