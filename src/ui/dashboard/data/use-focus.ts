// Lists that no event keeps current are loaded again when people come back to the page.
import { useEffect } from "preact/hooks";

export function useFocusReload(reload: () => void): void {
  useEffect(() => {
    const onShown = (): void => {
      if (document.visibilityState === "visible") reload();
    };
    addEventListener("focus", onShown);
    document.addEventListener("visibilitychange", onShown);
    return () => {
      removeEventListener("focus", onShown);
      document.removeEventListener("visibilitychange", onShown);
    };
  }, [reload]);
}
