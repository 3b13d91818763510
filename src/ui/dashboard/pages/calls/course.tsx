// How a call went, as charts under its player: the latency of each reply, and the jitter of the
// caller's audio. A point leads to its place in the recording.
import { Chart } from "#ui/dashboard/kit/chart.tsx";
import { decimal, duration } from "#ui/dashboard/kit/format.ts";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import type { CallRecord } from "./call-state.ts";

interface CourseProps {
  call: CallRecord;
  /** Absent: nothing was recorded. */
  playFrom?: (seconds: number) => void;
}

type Turn = CallRecord["latency"][number];
type Series = NonNullable<NonNullable<CallRecord["quality"]>["jitter_over_time"]>;

const ms = (value: number): string => `${Math.round(value)} ms`;

export function Course({ call, playFrom }: CourseProps) {
  const turns = call.latency.filter(({ heard_ms: heard }) => heard !== null);
  const series = call.quality?.jitter_over_time ?? null;
  return (
    <Card title="Latency and jitter">
      {turns.length === 0 && series === null
        ? <p class="soft">There was no reply to wait for, and the audio was not measured.</p>
        : (
          <div class="grid two">
            <Waits turns={turns} playFrom={playFrom} />
            <JitterChart series={series} playFrom={playFrom} />
          </div>
        )}
    </Card>
  );
}

function Waits({ turns, playFrom }: { turns: Turn[]; playFrom: CourseProps["playFrom"] }) {
  const isPlaced = turns.every(({ at_ms: at }) => at !== null);
  return (
    <Chart
      title="Latency of each reply" kind="bars" format={ms} empty="There was no reply to wait for."
      labels={turns.map(({ at_ms: at }, index) =>
        at === null ? `Reply ${index + 1}` : `Reply ${index + 1}, ${duration(at / 1000)}`)}
      series={[
        {
          name: "Until the model’s first word", colour: 1,
          values: turns.map((turn) => turn.first_token_ms),
        },
        {
          name: "From the first word until heard", colour: 3,
          values: turns.map(({ heard_ms: heard, first_token_ms: first }) =>
            Math.max(0, (heard ?? 0) - (first ?? 0))),
        },
      ]}
      {...(playFrom && isPlaced
        ? { onOpen: (at: number) => playFrom((turns[at]?.at_ms ?? 0) / 1000) } : {})}
    />
  );
}

function JitterChart({ series, playFrom }: {
  series: Series | null; playFrom: CourseProps["playFrom"];
}) {
  const { from_ms: from = 0, step_ms: step = 1, values = [] } = series ?? {};
  // The recording does not cover the ringing.
  const before = Math.max(0, Math.ceil(-from / step));
  const seconds = (at: number): number => Math.max(0, from + (before + at) * step) / 1000;
  const shown = values.slice(before);
  return (
    <Chart
      title="Jitter of the caller’s audio" kind="lines"
      {...(series ? {} : { empty: "The audio was not measured." })}
      format={(value) => `${decimal(value, 1)} ms`}
      labels={shown.map((_, at) => duration(seconds(at)))}
      series={[{ name: "Jitter", colour: 2, values: shown }]}
      {...(playFrom ? { onOpen: (at: number) => playFrom(seconds(at)) } : {})}
    />
  );
}
