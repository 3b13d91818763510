// Tabs of one browser have one cookie: who signs out in one is out in all, and who signs in there
// as somebody else is that one in all.
const NAME = "parley-signed-in";

/** `who`: the member's id; null: nobody any more. */
export function tellTabs(who: number | null): void {
  const tabs = new BroadcastChannel(NAME);
  tabs.postMessage(who);
  tabs.close();
}

/** Until what it returns is called. */
export function hearTabs(hear: (who: number | null) => void): () => void {
  const tabs = new BroadcastChannel(NAME);
  tabs.onmessage = ({ data }: MessageEvent<number | null>) => hear(data);
  return () => tabs.close();
}
