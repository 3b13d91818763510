// How the sound of a call came through, in plain words first.
import { count as figure } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Figure } from "#ui/dashboard/kit/layout.tsx";
import type { CallRecord } from "./call-state.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

type Quality = NonNullable<CallRecord["quality"]>;

/** The lowest mean opinion score of each grade, as in G.109. */
const GRADES: [least: number, word: string][] = [
  [4.34, t("very good")], [4.03, t("good")], [3.6, t("fair")], [3.1, t("poor")], [0, t("bad")],
];

const gradeOf = (mos: number): string => GRADES.find(([least]) => mos >= least)?.[1] ?? t("bad");
const unitOf = (value: number | null, unit: string): string | null =>
  value === null ? null : `${figure(value)} ${unit}`;

/** Packets as a count and, where it is known, a share. */
function share(count: number | null, percent: number | null): string | null {
  if (count === null) return null;
  return percent === null ? String(count) : `${count} (${figure(percent)} %)`;
}

export function QualityCard({ quality }: { quality: Quality | null }) {
  if (quality === null) return null;
  const { mos, jitter_max_ms: worst } = quality;
  return (
    <Card title="Sound">
      <dl class="figures-row">
        {mos !== null && <Figure label="Rating" value={t("{mos} of 4.5", { mos: figure(mos) })} note={gradeOf(mos)} />}
        <Figure
          label="Jitter" value={unitOf(quality.jitter_ms, "ms") ?? "–"}
          note={worst === null
            ? undefined : t("{jitter_max_ms} ms at worst", { jitter_max_ms: figure(worst) })}
        />
        {quality.loss_percent !== null && (
          <Figure label="Not heard" value={`${figure(quality.loss_percent)} %`} note="lost or too late" />
        )}
      </dl>
      <details>
        <summary>In detail</summary>
        <Facts rows={[
          ["Codec", quality.codec.toUpperCase()],
          ["R-factor", quality.r_factor],
          ["One-way delay", unitOf(quality.delay_ms, "ms")],
          ["Round trip", unitOf(quality.round_trip_ms, "ms")],
          ["Packets from the caller", quality.packets_received],
          ["Lost", quality.packets_lost],
          ["Too late", quality.packets_late],
          ["Received twice", quality.packets_duplicate],
          ["Gaps filled in", unitOf(
            quality.frames_concealed && quality.frames_concealed * 20, "ms")],
          ["Packets to the caller", quality.packets_sent],
          ["Lost on the caller’s side", share(quality.remote_packets_lost, quality.remote_loss_percent)],
          ["Jitter on the caller’s side", unitOf(quality.remote_jitter_ms, "ms")],
        ]} />
      </details>
    </Card>
  );
}
