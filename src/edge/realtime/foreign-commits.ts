// Notices events that another process committed (the CLI adding balance, say), so that watchers see
// them within a second. Our own commits are published as they happen and only counted here.
import { LIMITS } from "#core/limits.ts";
import type { System, Timer } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { EventLog } from "#events/log.ts";

const ROWS_MAX = 1000;

export function watchForeignCommits(
  { events, bus, system }: { events: EventLog; bus: EventBus; system: System },
): Timer {
  let newest = events.newestId();
  let committed = bus.committed();
  return system.every(LIMITS.foreignCommitPollMs, () => {
    const newestNow = events.newestId();
    const committedNow = bus.committed();
    // A commit of ours that is durable but not yet published looks foreign too; it is then
    // published twice, which sessions ignore by its sequence number.
    const foreign = newestNow - newest > committedNow - committed;
    const found = foreign ? events.since(newest, ROWS_MAX) : [];
    newest = newestNow;
    bus.publishCommitted(found);
    committed = bus.committed();
  });
}
