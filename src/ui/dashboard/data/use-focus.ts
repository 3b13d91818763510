// Lists that no event keeps current are loaded again when people come back to the page.
import { useEffect } from "preact/hooks";
import { useCalmly } from "./use-calmly.ts";

export function useFocusReload(reload: () => void): void {
  // Switching to a tab fires two events.
  const reloadSoon = useCalmly(reload);
  useEffect(() => {
    const onShown = (): void => {
      if (document.visibilityState === "visible") reloadSoon();
    };
    addEventListener("focus", onShown);
    document.addEventListener("visibilitychange", onShown);
    return () => {
      removeEventListener("focus", onShown);
      document.removeEventListener("visibilitychange", onShown);
    };
  }, [reloadSoon]);
}
