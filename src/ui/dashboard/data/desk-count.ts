// How many conversations wait for a person, shown on every page: in the window's title, in the
// menu, and by the alerts that people have chosen. Used by app.tsx.
import { useEffect } from "preact/hooks";
import { titleWaiting } from "#ui/dashboard/kit/title.ts";
import { useAlerts } from "#ui/dashboard/pages/inbox/alerts.tsx";
import { unwrap, useApi } from "./session.tsx";
import { useData } from "./use-data.ts";

/** Null: nobody waits, or nobody knows yet. */
export function useDeskCount(): number | null {
  const api = useApi();
  const { value } = useData("inbox/waiting", () =>
    unwrap(api.GET("/user/inbox", { params: { query: { queue: "waiting", per_page: 1 } } })),
  ["desk_changed"]);
  const now = value?.counts.waiting;
  useAlerts(now);
  useEffect(() => {
    titleWaiting(now ?? 0);
    return () => titleWaiting(0);
  }, [now]);
  return now === undefined || now === 0 ? null : now;
}
