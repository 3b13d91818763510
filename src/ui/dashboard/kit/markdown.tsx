// Markdown as the chat widget shows it, by the widget's own code, which is loaded on demand: HTML
// in it is text, and what is not Markdown stays as it is.
import { useEffect, useRef } from "preact/hooks";
import type { renderMarkdown } from "#ui/widget/chat.ts";

async function rendered(text: string, isWhole: boolean): Promise<HTMLElement[]> {
  const address = new URL("/widget-chat.js", location.href).href;
  const chat = await import(address) as { renderMarkdown: typeof renderMarkdown };
  return chat.renderMarkdown(text, isWhole, (name) => (name === "code" ? "Code" : "Table"));
}

/** Shows the text as written until the widget's code is loaded. */
export function Markdown({ text, isWhole = true }: { text: string; isWhole?: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let isCurrent = true;
    rendered(text, isWhole).then((nodes) => {
      if (isCurrent) place.current?.replaceChildren(...nodes);
    }, () => place.current?.replaceChildren(text));
    return () => {
      isCurrent = false;
    };
  }, [text, isWhole]);
  return <div ref={place} class="markdown" dir="auto"><p>{text}</p></div>;
}
