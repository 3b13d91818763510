// The real widget in a frame, with unsaved changes: its requests are answered for the draft, and
// messages written in it are tests. The browser stores nothing of it.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Parley } from "#client/client.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useMay } from "#ui/dashboard/data/rights.tsx";
import { Toggle } from "#ui/dashboard/kit/controls.tsx";
import { Card, Notice } from "#ui/dashboard/kit/layout.tsx";
import { useDraft, type Draft } from "./draft.ts";
import { problemOf } from "./use-chat.ts";

/** Waits for a pause in typing before it draws. */
const PAUSE_MS = 500;
const PAGE = "<!doctype html><title>Preview</title><meta name=viewport content=\"width=device-width\">";

interface Preview {
  api: Parley;
  draft: Pick<Draft, "record" | "unsaved">;
  /** Tests by their greeting and variables: a change of the look continues the existing test. */
  begun: Map<string, Promise<Response>>;
  /** Why nothing can be shown; null: it is shown. */
  tell(error: unknown): void;
}

const refusal = (status: number): Response => Response.json({}, { status });

/** Answers the widget's requests as tests of the draft. */
function answering({ api, draft, begun, tell }: Preview, own: typeof fetch): typeof fetch {
  const params = { path: { id: draft.record.id } };
  const settings = (draft.unsaved ?? {}) as never;
  const look = async (query: URLSearchParams): Promise<Response> => {
    try {
      const body = { settings, ...Object.fromEntries(query) };
      const shown = await unwrap(api.POST("/user/assistant/{id}/widget-preview", { params, body }));
      tell(null);
      return Response.json(shown);
    } catch (error) {
      tell(error);
      return refusal(422);
    }
  };
  const make = async (variables: Record<string, string>): Promise<Response> => {
    const { data, response } = await api.POST("/user/assistant/{id}/tests", {
      params, body: { settings, variables },
    });
    return data ? Response.json(data) : refusal(response.status);
  };
  const begin = async ({ variables }: { variables: Record<string, string> }): Promise<Response> => {
    const { initial_message: greeting = draft.record.initial_message } = draft.unsaved ?? {};
    const key = JSON.stringify([greeting, variables]);
    const made = begun.get(key) ?? make(variables);
    begun.set(key, made);
    const isBegun = await made.then(({ ok }) => ok, () => false);
    if (!isBegun) begun.delete(key);
    return (await made).clone();
  };
  const send = async (
    uuid: string, message: string, headers: Record<string, string>,
  ): Promise<Response> => {
    const { response } = await api.POST("/user/conversations/{uuid}/test-messages", {
      params: { path: { uuid } }, body: { message, settings }, headers, parseAs: "stream",
    });
    return response;
  };
  return async (input, init) => {
    const { pathname, searchParams } = new URL(
      input instanceof Request ? input.url : String(input), location.href);
    if (pathname.startsWith("/api/widget/")) return look(searchParams);
    if (init?.method !== "POST" || typeof init.body !== "string") return own(input, init);
    const body = JSON.parse(init.body) as {
      variables: Record<string, string>; message: string; attachments?: string[];
    };
    if (pathname === "/api/conversations") return begin(body);
    const [, uuid] = /^\/api\/conversations\/([0-9a-f-]{36})\/messages$/.exec(pathname) ?? [];
    return uuid === undefined || body.attachments
      ? own(input, init)
      : send(uuid, body.message, init.headers as Record<string, string>);
  };
}

/** Storage that lives as long as the frame. */
function forgetful(): Storage {
  const kept = new Map<string, string>();
  return {
    get length() {
      return kept.size;
    },
    clear: () => kept.clear(),
    getItem: (name) => kept.get(name) ?? null,
    key: (at) => [...kept.keys()][at] ?? null,
    removeItem: (name) => void kept.delete(name),
    setItem: (name, value) => void kept.set(name, value),
  };
}

/** Opening the panel would take the focus from the field beside it that people type in. */
function keepFocus(inner: Window, page: Document): void {
  const { HTMLElement: Element, HTMLDialogElement: Panel } = inner as unknown as typeof globalThis;
  const { focus } = Element.prototype;
  let isTouched = false;
  Element.prototype.focus = function (...given) {
    if (isTouched) focus.apply(this, given);
  };
  for (const name of ["show", "showModal"] as const) {
    const open = Panel.prototype[name];
    Panel.prototype[name] = function () {
      const { activeElement: active } = document;
      open.call(this);
      if (!isTouched && active instanceof HTMLElement) active.focus({ preventScroll: true });
    };
  }
  for (const type of ["pointerdown", "keydown"]) {
    page.addEventListener(type, () => (isTouched = true), { once: true });
  }
}

function fill(frame: HTMLIFrameElement, preview: Preview, isOpen: boolean): void {
  const { contentWindow: inner, contentDocument: page } = frame;
  if (!inner || !page) return;
  for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(inner, name, { value: forgetful() });
  }
  keepFocus(inner, page);
  Object.assign(inner, { fetch: answering(preview, inner.fetch.bind(inner)) });
  const script = page.createElement("script");
  script.src = "/widget.js";
  script.dataset.assistant = preview.draft.record.uuid;
  if (isOpen) script.dataset.open = "true";
  page.body.append(script);
}

/** Switched on again, it is a change like others, to be saved. */
export function SwitchedOff() {
  const { values, set } = useDraft();
  return (
    <Notice>
      <span>The widget is switched off: visitors do not see it.</span>
      <button
        type="button" class="quiet"
        onClick={() => set("widget_settings", { ...values.widget_settings, enabled: true })}
      >Switch it on</button>
    </Notice>
  );
}

export function WidgetPreview() {
  const api = useApi();
  const draft = useDraft();
  const whyNot = useMay()("build");
  const frame = useRef<HTMLIFrameElement>(null);
  const begun = useRef<Preview["begun"]>(new Map());
  const [isOpen, setOpen] = useState(true);
  const isOff = draft.values.widget_settings?.enabled === false;
  const [problem, setProblem] = useState<string | null>(null);
  const drawn = JSON.stringify([draft.unsaved, isOpen]);
  const [shown, setShown] = useState(drawn);
  useEffect(() => {
    const timer = setTimeout(() => setShown(drawn), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [drawn]);
  return (
    <Card title="Preview">
      <div class="stack">
        <Toggle label="Show it open" value={isOpen} onInput={setOpen} />
        {(problem ?? whyNot) && <Notice tone="bad">{problem ?? whyNot}</Notice>}
        {whyNot === null && isOff && <SwitchedOff />}
        {whyNot === null && !isOff && (
          <iframe
            key={shown} ref={frame} class="assistants-preview" title="Widget preview"
            srcdoc={PAGE}
            onLoad={() => {
              const tell = (error: unknown): void =>
                setProblem(error === null ? null : problemOf(error));
              if (!frame.current) return;
              fill(frame.current, { api, draft, begun: begun.current, tell }, isOpen);
            }}
          />
        )}
        <p><small>
          The widget itself, with your unsaved changes. What you write in it is a free test.
        </small></p>
      </div>
    </Card>
  );
}
