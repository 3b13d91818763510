// Lists that no event keeps current are loaded again when people come back to the page.
import { useEffect } from "preact/hooks";
import { useCalmly } from "./use-calmly.ts";

export function useFocusReload(reload: () => void): void {
  // A tab that is chosen tells it twice.
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
