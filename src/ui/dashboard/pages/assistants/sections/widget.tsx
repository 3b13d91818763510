// Section: how the chat widget looks and where it may stand.
import { byName } from "#ui/dashboard/kit/by-name.ts";
import { NumberField, SelectField, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { words } from "#ui/dashboard/kit/format.ts";
import { languageName } from "#ui/dashboard/kit/languages.tsx";
import { useDraft, type Values } from "#ui/dashboard/pages/assistants/draft.ts";
import { ScriptTag } from "#ui/dashboard/pages/assistants/embed.tsx";
import { Picture } from "#ui/dashboard/pages/team/picture.tsx";
import { about } from "#ui/dashboard/pages/assistants/labels.ts";
import { Lines } from "#ui/dashboard/pages/assistants/lines.tsx";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";
import { PreChatForm, Words } from "./widget-form.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";

type Widget = NonNullable<Values["widget_settings"]>;

const POSITIONS = [
  "bottom-right", "bottom-left", "bottom-center", "middle-right", "middle-left", "top-right",
  "top-left", "top-center",
] as const;
/** The server's default. */
const REMEMBER_DAYS = 7;
const THEMES = ["modern", "light", "dark"];
const LANGUAGES = [
  "ar", "de", "en", "es", "fr", "he", "it", "ja", "nl", "pl", "pt", "ru", "tr", "zh",
];

function Summary() {
  const { widget_settings, allowed_origins } = useDraft().values;
  const where = allowed_origins === null ? t("the server’s own list of sites")
    : allowed_origins.includes("*") ? t("any site") : allowed_origins.join(", ") || t("no site");
  return <>{words(widget_settings?.position ?? "")}, on {where}</>;
}

export function WidgetFields() {
  const { values, errors, record, set } = useDraft();
  const widget = values.widget_settings ?? {};
  const change = (changes: Partial<Widget>): void =>
    set("widget_settings", { ...widget, ...changes });
  const theme = widget.theme ?? "modern";
  return (
    <>
      <Toggle
        {...about("widget_settings.enabled")} value={widget.enabled !== false}
        onInput={(isOn) => change({ enabled: isOn })}
      />
      <div class="form-row">
        <SelectField
          {...about("widget_settings.theme")} value={theme} error={errors["widget_settings.theme"]}
          options={[...new Set([...THEMES, theme])].map((value) =>
            ({ value, label: value === "modern" ? "Same as the visitor’s system" : words(value) }))}
          onInput={(value) => change({ theme: value })}
        />
        <div class="assistants-colour">
          <TextField
            {...about("widget_settings.color")} value={widget.color ?? ""} error={errors["widget_settings.color"]}
            onInput={(color) => change({ color })}
          />
          <input
            type="color" aria-label="Pick the colour" value={wholeColour(widget.color)}
            onInput={(event) => change({ color: event.currentTarget.value })}
          />
        </div>
        <SelectField
          {...about("widget_settings.position")} value={widget.position ?? "bottom-right"}
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
        {...about("widget_settings.remember_days")} min={0} max={365} step={1}
        value={widget.remember_days ?? REMEMBER_DAYS}
        error={errors["widget_settings.remember_days"]}
        onInput={(days) => change({ remember_days: days ?? REMEMBER_DAYS })}
      />
      <Beginning widget={widget} errors={errors} replace={(next) => set("widget_settings", next)} />
      <Opinions widget={widget} change={change} />
      <Toggle
        label="Only on sites named here" value={values.allowed_origins !== null}
        hint="Otherwise the server’s own list applies."
        onInput={(isOn) => set("allowed_origins", isOn ? record.allowed_origins ?? [] : null)}
      />
      {values.allowed_origins !== null && (
        <Lines
          {...about("allowed_origins")} errors={errors}
          value={values.allowed_origins} placeholder="https://www.example.com"
          onInput={(origins) => set("allowed_origins", origins)}
        />
      )}
      <ScriptTag uuid={record.uuid} />
    </>
  );
}

function Body() {
  const { record } = useDraft();
  return (
    <>
      <WidgetFields />
      <p>
        <a href={`#/assistants/${record.id}/widget`}>Edit it beside the widget itself</a>, or
        get it <a href={`#/assistants/${record.id}/embed`}>for HTML, React, WordPress or as a QR code</a>.
      </p>
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
        label="assistant’s picture" value={widget.avatar ?? null}
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
        {...about("widget_settings.attachments")} value={widget.attachments === true}
        onInput={(isOn) => change({ attachments: isOn })}
      />
      <Toggle
        {...about("widget_settings.transcripts")} value={widget.transcripts === true}
        onInput={(isOn) => change({ transcripts: isOn })}
      />
      <Toggle
        {...about("widget_settings.ratings")} value={widget.ratings !== false}
        onInput={(isOn) => change({ ratings: isOn })}
      />
      <Toggle
        {...about("widget_settings.satisfaction")} value={widget.satisfaction !== false}
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
        {...about("widget_settings.greeting")} value={greeting !== undefined}
        onInput={(isOn) => (isOn ? set({ text: "May we help?" }) : replace(others))}
      />
      {greeting && (
        <div class="form-row">
          <TextField
            {...about("widget_settings.greeting.text")} value={greeting.text}
            error={errors["widget_settings.greeting.text"]}
            onInput={(text) => set({ text })}
          />
          <NumberField
            {...about("widget_settings.greeting.after_seconds")} min={0} max={3600} step={1}
            value={greeting.after_seconds ?? 10}
            error={errors["widget_settings.greeting.after_seconds"]}
            onInput={(seconds) => set({ after_seconds: seconds ?? 10 })}
          />
          <NumberField
            {...about("widget_settings.greeting.again_days")} min={0} max={365} step={1}
            value={greeting.again_days ?? 7}
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
  // Includes a language that a file has added to the server.
  const codes = [...new Set([...LANGUAGES, value])].filter((code) => code !== "");
  const languages = byName(codes.map((code) => ({ code, name: languageName(code) })));
  return (
    <SelectField
      {...about("widget_settings.language")} value={value} error={error} onInput={onInput}
      options={[
        { value: "", label: "Same as the page" },
        ...languages.map(({ code, name }) => ({ value: code, label: name })),
      ]}
    />
  );
}

/** A colour field accepts only six digits. */
function wholeColour(colour: string | undefined): string {
  const [, digits = ""] = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(colour ?? "") ?? [];
  if (digits === "") return "#2563eb";
  return `#${digits.length === 3 ? digits.replaceAll(/./g, "$&$&") : digits}`.toLowerCase();
}

export const WIDGET: SectionSpec = {
  id: "widget", title: "Widget", Summary, Body, fields: ["widget_settings", "allowed_origins"],
};
