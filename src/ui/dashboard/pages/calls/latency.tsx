// How long each reply of a call took, stage by stage, since the customer stopped speaking.
import { Card, Figure } from "#ui/dashboard/kit/layout.tsx";
import type { CallRecord } from "./call-state.ts";
import { plural } from "#ui/dashboard/kit/texts.ts";

type Turn = CallRecord["latency"][number];

const STAGES: [keyof Turn, string][] = [
  ["endpoint_ms", "Pause detected"], ["final_transcript_ms", "Understood"],
  ["first_token_ms", "First word"], ["first_audio_ms", "First audio"], ["heard_ms", "Heard"],
];

const middle = (values: number[]): number | null => {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
};

const ms = (value: number | null): string => value === null ? "–" : `${value} ms`;

export function LatencyCard({ turns }: { turns: Turn[] }) {
  if (turns.length === 0) return null;
  const heard = turns.flatMap(({ heard_ms: value }) => value === null ? [] : [value]);
  return (
    <Card title="Latency">
      <dl class="figures-row">
        <Figure label="Median" value={ms(middle(heard))} note="from silence to the reply" />
        <Figure label="Longest" value={ms(heard.length > 0 ? Math.max(...heard) : null)} />
      </dl>
      <details class="calls-latency">
        <summary>{plural(turns.length, "Each of {count} reply", "Each of {count} replies")}</summary>
        <div class="scrolls" tabIndex={0} role="region" aria-label="Latency of each reply">
          <table class="figures">
            <thead>
              <tr>
                <th scope="col">Reply</th>
                {STAGES.map(([stage, label]) => <th key={stage} scope="col">{label}</th>)}
              </tr>
            </thead>
            <tbody>
              {turns.map((turn, index) => (
                <tr key={index}>
                  <th scope="row">{index + 1}</th>
                  {STAGES.map(([stage]) => <td key={stage}>{ms(turn[stage])}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </Card>
  );
}
