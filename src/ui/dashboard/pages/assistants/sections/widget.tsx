// Section: how the chat widget looks and where it may stand.
import { NumberField, SelectField, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { words } from "#ui/dashboard/kit/format.ts";
import { useDraft, type Values } from "#ui/dashboard/pages/assistants/draft.ts";
import { ScriptTag } from "#ui/dashboard/pages/assistants/embed.tsx";
import { Picture } from "#ui/dashboard/pages/team/picture.tsx";
import { Lines } from "#ui/dashboard/pages/assistants/lines.tsx";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";
import { PreChatForm, Words } from "./widget-form.tsx";

type Widget = NonNullable<Values["widget_settings"]>;

const POSITIONS = [
  "bottom-right", "bottom-left", "bottom-center", "middle-right", "middle-left", "top-right",
  "top-left", "top-center",
] as const;
/** The server's, where the assistant does not say. */
const REMEMBER_DAYS = 7;
const THEMES = ["modern", "light", "dark"];
const LANGUAGES: [code: string, name: string][] = [
  ["", "As the page"], ["ar", "Arabic"], ["zh", "Chinese"], ["nl", "Dutch"], ["en", "English"],
  ["fr", "French"], ["de", "German"], ["he", "Hebrew"], ["it", "Italian"], ["ja", "Japanese"],
  ["pl", "Polish"], ["pt", "Portuguese"], ["ru", "Russian"], ["es", "Spanish"], ["tr", "Turkish"],
];

function Summary() {
  const { widget_settings, allowed_origins } = useDraft().values;
  const where = allowed_origins === null ? "the server’s own list of sites"
    : allowed_origins.includes("*") ? "any site" : allowed_origins.join(", ") || "no site";
  return <>{words(widget_settings?.position ?? "")}, on {where}</>;
}

function Body() {
  const { values, errors, record, set } = useDraft();
  const widget = values.widget_settings ?? {};
  const change = (changes: Partial<Widget>): void =>
    set("widget_settings", { ...widget, ...changes });
  const theme = widget.theme ?? "modern";
  return (
    <>
      <div class="form-row">
        <SelectField
          label="Theme" value={theme} error={errors["widget_settings.theme"]}
          options={[...new Set([...THEMES, theme])].map((value) =>
            ({ value, label: value === "modern" ? "As the visitor’s system" : words(value) }))}
          onInput={(value) => change({ theme: value })}
        />
        <div class="assistants-colour">
          <TextField
            label="Colour" value={widget.color ?? ""} error={errors["widget_settings.color"]}
            onInput={(color) => change({ color })}
          />
          <input
            type="color" aria-label="Pick the colour" value={wholeColour(widget.color)}
            onInput={(event) => change({ color: event.currentTarget.value })}
          />
        </div>
        <SelectField
          label="Position" value={widget.position ?? "bottom-right"}
          error={errors["widget_settings.position"]}
          options={POSITIONS.map((value) => ({ value, label: words(value) }))}
          onInput={(value) => change({ position: value as NonNullable<Widget["position"]> })}
        />
        <LanguageField
          value={widget.language ?? ""} error={errors["widget_settings.language"]}
          onInput={(language) => {
            const { language: _, ...others } = widget;
            set("widget_settings", language === "" ? others : { ...others, language });
          }}
        />
      </div>
      <NumberField
        label="Days a visitor’s browser remembers the conversation" min={0} max={365} step={1}
        value={widget.remember_days ?? REMEMBER_DAYS}
        error={errors["widget_settings.remember_days"]}
        hint="In all its tabs. 0: each tab has a conversation of its own, until it is closed."
        onInput={(days) => change({ remember_days: days ?? REMEMBER_DAYS })}
      />
      <Beginning widget={widget} errors={errors} replace={(next) => set("widget_settings", next)} />
      <Opinions widget={widget} change={change} />
      <Toggle
        label="Only on sites named here" value={values.allowed_origins !== null}
        hint="Otherwise the server’s own list holds."
        onInput={(isOn) => set("allowed_origins", isOn ? record.allowed_origins ?? [] : null)}
      />
      {values.allowed_origins !== null && (
        <Lines
          label="Allowed origins" name="allowed_origins" errors={errors}
          value={values.allowed_origins} placeholder="https://www.example.com"
          hint="One to a line, * for any." onInput={(origins) => set("allowed_origins", origins)}
        />
      )}
      <ScriptTag uuid={record.uuid} />
      <p><a href={`#/assistants/${record.id}/embed`}>More of the tag, and try it</a></p>
    </>
  );
}

interface Part {
  widget: Widget;
  errors: Record<string, string>;
  replace(widget: Widget): void;
}

function Beginning(part: Part) {
  const { widget, replace } = part;
  return (
    <>
      <Greeting {...part} />
      <PreChatForm {...part} />
      <Words {...part} />
      <Picture
        label="picture of the assistant" value={widget.avatar ?? null}
        onInput={(avatar) => {
          const { avatar: _, ...others } = widget;
          replace(avatar === null ? others : { ...others, avatar });
        }}
      />
    </>
  );
}

function Opinions({ widget, change }: {
  widget: Widget; change(changes: Partial<Widget>): void;
}) {
  return (
    <>
      <Toggle
        label="Visitors can attach images and PDF" value={widget.attachments === true}
        hint="Up to 10 MB each. A model that can look at them does; people see them in the inbox."
        onInput={(isOn) => change({ attachments: isOn })}
      />
      <Toggle
        label="Visitors can have the chat sent by e-mail" value={widget.transcripts === true}
        hint="Where the server has a mail server. To the address they name, a few times an hour."
        onInput={(isOn) => change({ transcripts: isOn })}
      />
      <Toggle
        label="Visitors can rate each reply" value={widget.ratings !== false}
        hint="A thumb up or down; in the history and in webhooks as `rating`."
        onInput={(isOn) => change({ ratings: isOn })}
      />
      <Toggle
        label="Visitors are asked how the chat was" value={widget.satisfaction !== false}
        hint="From one to five, with a comment, when it is over."
        onInput={(isOn) => change({ satisfaction: isOn })}
      />
    </>
  );
}

function Greeting({ widget, errors, replace }: Part) {
  const { greeting, ...others } = widget;
  const set = (changes: Partial<NonNullable<Widget["greeting"]>>): void =>
    replace({ ...others, greeting: { text: "", ...greeting, ...changes } });
  return (
    <>
      <Toggle
        label="Greets visitors by itself" value={greeting !== undefined}
        hint="A line beside the button, once in a while for each visitor."
        onInput={(isOn) => (isOn ? set({ text: "May we help?" }) : replace(others))}
      />
      {greeting && (
        <div class="form-row">
          <TextField
            label="Greeting" value={greeting.text} error={errors["widget_settings.greeting.text"]}
            onInput={(text) => set({ text })}
          />
          <NumberField
            label="After seconds" min={0} max={3600} step={1} value={greeting.after_seconds ?? 10}
            error={errors["widget_settings.greeting.after_seconds"]}
            onInput={(seconds) => set({ after_seconds: seconds ?? 10 })}
          />
          <NumberField
            label="Again after days" min={0} max={365} step={1} value={greeting.again_days ?? 7}
            error={errors["widget_settings.greeting.again_days"]}
            onInput={(days) => set({ again_days: days ?? 7 })}
          />
        </div>
      )}
    </>
  );
}

function LanguageField({ value, error, onInput }: {
  value: string; error: string | undefined; onInput(value: string): void;
}) {
  // A language that was added to the server by a file.
  const known = LANGUAGES.some(([code]) => code === value) ? [] : [[value, value] as const];
  return (
    <SelectField
      label="Language" value={value} error={error} onInput={onInput}
      options={[...LANGUAGES, ...known].map(([code, label]) => ({ value: code, label }))}
    />
  );
}

/** What a colour field takes: six digits. */
function wholeColour(colour: string | undefined): string {
  const [, digits = ""] = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(colour ?? "") ?? [];
  if (digits === "") return "#2563eb";
  return `#${digits.length === 3 ? digits.replaceAll(/./g, "$&$&") : digits}`.toLowerCase();
}

export const WIDGET: SectionSpec = {
  id: "widget", title: "Widget", Summary, Body, fields: ["widget_settings", "allowed_origins"],
};
