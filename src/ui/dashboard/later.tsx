// Pages in the second script, which is loaded when one of them is opened, or when another page
// shows telephone numbers. Used by routes.ts.
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "./kit/controls.tsx";
import { Failure, Notice, Skeleton } from "./kit/layout.tsx";
import type { PageProps } from "./page.ts";
import type * as More from "./pages/more.ts";

type Script = typeof More;
type Pages = Script["PAGES"];

let loaded: Pages | null = null;
let phone: Script["formatPhone"] | null = null;
let loading: Promise<Pages> | null = null;
let failures = 0;

/** The server only has another version's second script. */
const UPDATED = new Error("updated");

/** Waits for the styles, so that nothing is shown without them. */
function loadStyles(): Promise<void> {
  return new Promise((resolve) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = "/dashboard/dashboard-more.css";
    link.onload = () => resolve();
    link.onerror = () => resolve();
    document.head.append(link);
  });
}

/**
 * Firefox never requests an address again that has failed, hence `try`. The build inserts the
 * version before it; where it makes only one script, nothing can fail.
 */
async function importMore(): Promise<Script> {
  try {
    if (failures === 0) return await import("./pages/more.ts");
    return await import(`/dashboard/dashboard-more.js&try=${failures}`) as Script;
  } catch (error) {
    failures += 1;
    throw error;
  }
}

function loadMore(): Promise<Pages> {
  loading ??= Promise.all([importMore(), loadStyles()]).then(([more]) => {
    const { PAGES, formatPhone } = more as Omit<Script, "PAGES"> & { PAGES: Pages | null };
    if (PAGES === null) throw UPDATED;
    loaded = PAGES;
    phone = formatPhone;
    return PAGES;
  }, (error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}

export const later = (name: keyof Pages): FunctionComponent<PageProps> => function Later(props) {
  const [more, setMore] = useState(loaded);
  const [error, setError] = useState<unknown>(null);
  const load = (): void => {
    setError(null);
    loadMore().then((found) => {
      setMore(found);
      // Moves the focus to the heading if it waited on the place of the page that was loading.
      requestAnimationFrame(() => {
        const main = document.getElementById("main");
        if (document.activeElement !== main) return;
        main?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
      });
    }, setError);
  };
  useEffect(() => {
    if (!more) load();
  }, []);
  if (more) {
    const Page = more[name] as FunctionComponent<PageProps>;
    return <Page {...props} />;
  }
  if (error === UPDATED) return <Updated />;
  return error ? <Failure error={error} retry={load} /> : <Skeleton lines={6} />;
};

/** Asks and does not reload by itself: unsent input on the page would be lost. */
const Updated = () => (
  <Notice tone="warn">
    <span>The server was updated. Reload the page to continue.</span>
    <Button onClick={() => location.reload()}>Reload</Button>
  </Notice>
);

/** Telephone numbers in their countries' formats; unchanged until the second script is loaded. */
export function usePhone(): (text: string) => string {
  const [, draw] = useState(phone !== null);
  useEffect(() => {
    const keep = (): void => undefined;
    if (phone === null) loadMore().then(() => draw(true), keep);
  }, []);
  return (text) => phone?.(text) ?? text;
}
