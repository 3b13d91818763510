// A campaign's progress: a bar of its leads by state, whose legend filters the list of leads.
import type { ComponentChildren } from "preact";
import type { Data } from "#ui/dashboard/data/use-data.ts";
import { count, words } from "#ui/dashboard/kit/format.ts";
import { Card, Loaded } from "#ui/dashboard/kit/layout.tsx";
import type { LeadStatus } from "#ui/dashboard/pages/leads/live-leads.ts";
import { sumOf, useProgress, type Counts } from "./counts.ts";
import { percent } from "./figures.ts";
import { plural } from "#ui/dashboard/kit/texts.ts";

/** From done to not begun. */
const ORDER: readonly LeadStatus[] = [
  "completed", "processing", "scheduled", "rescheduled", "reached-max-retries", "blacklisted",
  "created",
];

export function ProgressCard({ counts, status, onStatus, children }: {
  counts: Data<Counts>;
  /** The state that the list is filtered by; empty: all. */
  status: string; onStatus(status: string): void;
  children?: ComponentChildren;
}) {
  return (
    <Card title="Progress">
      <Loaded data={counts}>
        {(known) => sumOf(known) === 0
          ? <p class="soft">It has no leads yet.</p>
          : <Bar counts={known} status={status} onStatus={onStatus} />}
      </Loaded>
      {children}
    </Card>
  );
}

function Bar({ counts, status: chosen, onStatus }: {
  counts: Counts; status: string; onStatus(status: string): void;
}) {
  const total = sumOf(counts);
  const present = ORDER.filter((status) => counts[status] > 0);
  return (
    <>
      <p class="campaigns-done">
        <strong>{percent(counts.completed / total)}</strong>
        <span class="soft">
          {plural(total, "{done} of {count} lead completed", "{done} of {count} leads completed", {
            done: count(counts.completed),
          })}
        </span>
      </p>
      <div class="campaigns-bar" aria-hidden="true">
        {present.map((status) => (
          <i key={status} class={`campaigns-s-${status}`} style={{ flex: counts[status] }} />
        ))}
      </div>
      <div class="campaigns-keys" role="group" aria-label="Leads by status">
        {ORDER.filter((status) => counts[status] > 0 || status === chosen).map((status) => (
          <button
            key={status} type="button" class="campaigns-key" aria-pressed={chosen === status}
            onClick={() => onStatus(chosen === status ? "" : status)}
          >
            <i class={`campaigns-s-${status}`} />{words(status)} <b>{count(counts[status])}</b>
          </button>
        ))}
      </div>
    </>
  );
}

/** For a cell in the list of campaigns. */
export function ProgressCell({ campaignId }: { campaignId: number }) {
  const progress = useProgress(campaignId);
  if (!progress) return <span class="soft">…</span>;
  const { done, total } = progress;
  if (total === 0) return <span class="soft">No leads</span>;
  return (
    <span class="campaigns-cell">
      <span>{count(done)} of {count(total)}</span>
      <span class="campaigns-bar" aria-hidden="true">
        {done > 0 && <i class="campaigns-s-completed" style={{ flex: done }} />}
        <i style={{ flex: total - done }} />
      </span>
    </span>
  );
}
