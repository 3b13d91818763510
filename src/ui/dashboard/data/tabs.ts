// The tabs of one browser share one cookie: signing out in one signs out all, and signing in as
// somebody else in one does so in all.
const NAME = "parley-signed-in";

/** `who`: the member's id; null: signed out. */
export function tellTabs(who: number | null): void {
  const tabs = new BroadcastChannel(NAME);
  tabs.postMessage(who);
  tabs.close();
}

/** Listens until the returned function is called. */
export function hearTabs(hear: (who: number | null) => void): () => void {
  const tabs = new BroadcastChannel(NAME);
  tabs.onmessage = ({ data }: MessageEvent<number | null>) => hear(data);
  return () => tabs.close();
}
