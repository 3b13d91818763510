// How an assistant gets into a website: the tag to copy, put together from what it may say, and the
// widget itself to try.
import { useEffect, useState } from "preact/hooks";
import { Button, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { Copyable } from "#ui/dashboard/kit/copy.tsx";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import { useDraft } from "./draft.ts";
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
  const attributes: Record<string, string> = {
    ...texts, ...(isOpen ? { "data-open": "true" } : {}),
  };
  return (
    <div class="grid two">
      <Card title="On your website">
        <div class="stack">
          <p>Put this tag at the end of the page, before <code>&lt;/body&gt;</code>.</p>
          <ScriptTag uuid={record.uuid} attributes={attributes} />
          <div class="form-row assistants-two">
            {TEXTS.map(([name, label]) => (
              <TextField
                key={name} label={label} value={texts[name] ?? ""} placeholder="As it comes"
                onInput={(text) => setTexts((before) => ({ ...before, [name]: text }))}
              />
            ))}
          </div>
          <Toggle label="Opens by itself" value={isOpen} onInput={setOpen} />
          <p><small>
            Theme, colour, position and the sites it may stand on are among
            the <a href={`#/assistants/${record.id}`}>settings</a>.
          </small></p>
        </div>
      </Card>
      <Card title="Try it">
        <div class="stack">
          <p>
            The widget as visitors see it, on this page. What you write there is a real chat of your
            website and costs as much; <a href={`#/assistants/${record.id}/test`}>the test chat</a> is
            free.
          </p>
          <p><Button onClick={() => setTrying(!isTrying)}>
            {isTrying ? "Take it away" : "Show the widget here"}
          </Button></p>
          <p>
            Talk with it: <a href={`/talk/${record.uuid}`} target="_blank" rel="noopener">
              {`${location.origin}/talk/${record.uuid}`}
            </a>
          </p>
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

/** The script puts its element into the page; both go when this does. */
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
