// The time of day for what runs on the screen, every second while it is wanted.
import { useEffect, useState } from "preact/hooks";

export function useNow(isWanted: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isWanted) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isWanted]);
  return now;
}
