// How to put an assistant on a website: the tag to copy, with the chosen attributes, and the widget
// itself to try.
import { useEffect, useState } from "preact/hooks";
import { encode } from "uqr";
import { Button, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { Copyable } from "#ui/dashboard/kit/copy.tsx";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import { useDraft } from "./draft.ts";
import { SwitchedOff } from "./preview.tsx";
import { Signing } from "./signing.tsx";

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

function tagOf(uuid: string, attributes: Record<string, string>): string {
  const given = Object.entries({ "data-assistant": uuid, ...attributes })
    .filter(([, text]) => text.trim() !== "")
    .map(([name, text]) => ` ${name}="${escaped(text)}"`);
  return `<script async src="${location.origin}/widget.js"${given.join("")}></script>`;
}

export function ScriptTag({ uuid, attributes = {} }: {
  uuid: string; attributes?: Record<string, string>;
}) {
  return <Copyable label="Script tag" text={tagOf(uuid, attributes)} />;
}

/** The same tag for tools in which people do not write HTML. */
function Elsewhere({ uuid, attributes }: { uuid: string; attributes: Record<string, string> }) {
  const given = Object.entries({ "data-assistant": uuid, ...attributes })
    .filter(([, text]) => text.trim() !== "");
  const react = `useEffect(() => {
  const script = document.createElement("script");
  script.src = ${JSON.stringify(`${location.origin}/widget.js`)};
${given.map(([name, text]) => `  script.setAttribute(${JSON.stringify(name)}, ${JSON.stringify(text)});`).join("\n")}
  document.body.append(script);
  return () => {
    script.remove();
    document.querySelector("assistant-chat")?.remove();
  };
}, []);`;
  const wordpress = `add_action('wp_footer', function () { ?>
${tagOf(uuid, attributes)}
<?php });`;
  return (
    <>
      <details>
        <summary>React</summary>
        <p>In a component of the page:</p>
        <Copyable label="React effect" text={react} />
      </details>
      <details>
        <summary>WordPress</summary>
        <p>In the theme’s <code>functions.php</code>, or in a plugin for code snippets:</p>
        <Copyable label="WordPress snippet" text={wordpress} />
      </details>
    </>
  );
}

/** Drawn as one path, so that it scales and prints. */
function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { border: 2 });
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg class="assistants-qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label}>
      <path class="light" d={`M0 0h${size}v${size}h-${size}z`} /><path d={dark.join("")} />
    </svg>
  );
}

const TEXTS = [
  ["data-header-title", "Title"],
  ["data-header-subtitle", "Line below it"],
  ["data-button-main-text", "Beside the button"],
  ["data-start-button-text", "On the call button"],
] as const;

export function Embed() {
  const { record } = useDraft();
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [isOpen, setOpen] = useState(false);
  const [isTrying, setTrying] = useState(false);
  const isOff = record.widget_settings?.enabled === false;
  const attributes: Record<string, string> = {
    ...texts, ...(isOpen ? { "data-open": "true" } : {}),
  };
  return (
    <div class="grid two">
      <Card title="On your website">
        <div class="stack">
          <p>Put this tag at the end of the page, before <code>&lt;/body&gt;</code>.</p>
          <ScriptTag uuid={record.uuid} attributes={attributes} />
          <Elsewhere uuid={record.uuid} attributes={attributes} />
          <div class="form-row assistants-two">
            {TEXTS.map(([name, label]) => (
              <TextField
                key={name} label={label} value={texts[name] ?? ""} placeholder="The widget’s own text"
                onInput={(text) => setTexts((before) => ({ ...before, [name]: text }))}
              />
            ))}
          </div>
          <Toggle label="Opens by itself" value={isOpen} onInput={setOpen} />
          <p><small>
            Theme, colour, position, words, form and the sites it may stand on are edited{" "}
            <a href={`#/assistants/${record.id}/widget`}>beside the widget itself</a>.
          </small></p>
        </div>
      </Card>
      <Card title="Try it">
        <div class="stack">
          <p>
            The widget as visitors see it, on this page. What you write there is a real chat and
            costs as much as one; <a href={`#/assistants/${record.id}/test`}>the test chat</a> is
            free.
          </p>
          {isOff ? <SwitchedOff /> : (
            <p><Button onClick={() => setTrying(!isTrying)}>
              {isTrying ? "Hide the widget" : "Show the widget here"}
            </Button></p>
          )}
          <p>
            Talk with it: <a href={`/talk/${record.uuid}`} target="_blank" rel="noopener">
              {`${location.origin}/talk/${record.uuid}`}
            </a>
          </p>
          <QrCode text={`${location.origin}/talk/${record.uuid}`} label="QR code of the talk page" />
        </div>
      </Card>
      <Signing assistantId={record.id} />
      {isTrying && (
        <Widget
          key={JSON.stringify(attributes)} uuid={record.uuid} attributes={attributes}
        />
      )}
    </div>
  );
}

/** Loads the widget's script, which adds its element to the page; unmounting removes both. */
function Widget({ uuid, attributes }: { uuid: string; attributes: Record<string, string> }) {
  useEffect(() => {
    const script = document.createElement("script");
    for (const [name, text] of Object.entries({ "data-assistant": uuid, ...attributes })) {
      if (text.trim() !== "") script.setAttribute(name, text);
    }
    const remove = (): void => {
      for (const element of document.querySelectorAll("assistant-chat")) element.remove();
    };
    let isGone = false;
    script.onload = () => {
      if (isGone) remove();
    };
    script.src = "/widget.js";
    document.body.append(script);
    return () => {
      isGone = true;
      script.remove();
      remove();
    };
  }, []);
  return null;
}
