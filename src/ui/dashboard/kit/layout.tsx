// The parts of every page: head, cards, notices, badges, and the states before there is anything to
// show.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { messageOf } from "#ui/dashboard/data/session.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { words } from "./format.ts";
import { titlePage } from "./title.ts";

interface PageProps {
  title: string;
  /** The page above this one: `#/calls`. */
  back?: { href: string; label: string } | undefined;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Page({ title, back, actions, children }: PageProps) {
  useEffect(() => {
    titlePage(`${title} · Parley`);
  }, [title]);
  return (
    <>
      <header class="page-head">
        <div>
          {back && <a class="back" href={back.href}><Icon name="back" />{back.label}</a>}
          <h1 tabIndex={-1}>{title}</h1>
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

interface CardProps {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

export function Card({ title, actions, class: name, children }: CardProps) {
  return (
    <section class={`card ${name ?? ""}`}>
      {(title || actions) && (
        <header class="card-head">
          <h2>{title}</h2>
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

/** One figure with what it means. */
export function Figure({ label, value, note }: {
  label: string; value: ComponentChildren; note?: ComponentChildren;
}) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd><strong>{value}</strong>{note && <small>{note}</small>}</dd>
    </div>
  );
}

/** Names and values: `[["Duration", "3:10"], …]`. */
export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value], at) => (
        <div key={at}><dt>{name}</dt><dd>{value ?? "–"}</dd></div>
      ))}
    </dl>
  );
}

type Tone = "neutral" | "good" | "busy" | "warn" | "bad";

const TONES: Record<string, Tone> = {
  active: "good", completed: "good", delivered: "good", "in-progress": "busy", ringing: "busy",
  initiated: "busy", processing: "busy", pending: "busy", scheduled: "busy", rescheduled: "warn",
  grace: "warn", stopped: "warn", "no-answer": "warn", busy: "warn", inactive: "neutral",
  failed: "bad", dead: "bad", suspended: "bad", disabled: "bad", blacklisted: "bad",
  "reached-max-retries": "warn", ended: "busy",
};

/** A state in its colour; `busy` pulses. */
export function Status({ code, tone }: { code: string; tone?: Tone }) {
  return <span class={`badge ${tone ?? TONES[code] ?? "neutral"}`}>{words(code)}</span>;
}

export function Notice({ tone = "neutral", children }: {
  tone?: Tone; children: ComponentChildren;
}) {
  return <div class={`notice ${tone}`} role={tone === "bad" ? "alert" : undefined}>{children}</div>;
}

export function Failure({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  return (
    <Notice tone="bad">
      <span>{messageOf(error)}</span>
      {retry && <button type="button" class="quiet" onClick={retry}>Try again</button>}
    </Notice>
  );
}

export function Empty({ icon, title, children }: {
  icon: IconName; title: string; children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <p><strong>{title}</strong></p>
      {children && <div>{children}</div>}
    </div>
  );
}

/** Shows the content of a `Data`, its failure, or that it is being loaded. */
export function Loaded<T>({ data, children }: {
  data: { value: T | null; error: unknown; reload(): void };
  children: (value: T) => ComponentChildren;
}) {
  const { value, error, reload } = data;
  return (
    <>
      {Boolean(error) && <Failure error={error} retry={reload} />}
      {value !== null ? children(value) : !error && <Skeleton />}
    </>
  );
}

export function Skeleton({ lines = 4 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => <i key={index} />)}
    </div>
  );
}

/** Tabs as links: the address says what is shown. */
export function Tabs({ tabs, current }: {
  tabs: { href: string; label: string; id: string }[]; current: string;
}) {
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    const tab = nav.current?.querySelector<HTMLElement>("[aria-current]");
    if (!nav.current || !tab) return;
    // Sideways only: the page stays where it is.
    const { offsetLeft: start, clientWidth: room } = nav.current;
    nav.current.scrollLeft = tab.offsetLeft - start - (room - tab.offsetWidth) / 2;
  }, [current]);
  return (
    <nav class="tabs" aria-label="Sections" ref={nav}>
      {tabs.map(({ href, label, id }) => (
        <a key={id} href={href} aria-current={id === current ? "page" : undefined}>{label}</a>
      ))}
    </nav>
  );
}
