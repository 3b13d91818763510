// Notices events that another process committed (the CLI adding balance, say), so that watchers see
// them within a second. Our own commits are published as they happen and only counted here.
import type { EventBus } from "#events/bus.ts";
import type { EventLog } from "#events/log.ts";

const ROWS_MAX = 1000;

/** Resolves to what looks once; it is called again when that has resolved, never before. */
export async function watchForeignCommits(
  { events, bus }: { events: EventLog; bus: EventBus },
): Promise<() => Promise<void>> {
  let committed = bus.committed();
  let newest = await events.newestId();
  return async () => {
    // Counted before the log is read and again after: what is ours and committed in between then
    // looks foreign at the most, and is published twice, which sessions ignore by its number.
    const committedNow = bus.committed();
    const newestNow = await events.newestId();
    const foreign = newestNow - newest > committedNow - committed;
    const found = foreign ? await events.since(newest, ROWS_MAX) : [];
    newest = newestNow;
    bus.publishCommitted(found);
    committed = bus.committed();
  };
}
