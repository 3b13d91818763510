// Debounces what people type, so that lists are not loaded at every key.
import { useEffect, useState } from "preact/hooks";

const SETTLE_MS = 250;

export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
