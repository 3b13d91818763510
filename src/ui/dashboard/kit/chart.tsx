// Bars and lines over days. Drawn as elements of the page, so that they scale, follow the theme and
// can be read: every chart has its figures as a table too.
import { useState } from "preact/hooks";

export interface Series {
  name: string;
  /** One of the colours of dashboard.css: `--chart-1` to `--chart-4`. */
  colour: 1 | 2 | 3 | 4;
  /** One figure for each label; null: none that day. */
  values: (number | null)[];
}

export interface ChartProps {
  title: string;
  /** Days, oldest first. */
  labels: string[];
  series: Series[];
  format: (value: number) => string;
  kind: "bars" | "lines";
}

const TICKS = 4;

const shown = (value: number | null | undefined, format: ChartProps["format"]): string =>
  value === null || value === undefined ? "–" : format(value);

/** The least of 1, 2, 2.5, 5 times a power of ten that is not below the value. */
export function niceTop(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= value) ?? 10;
  return step * power;
}

const sumAt = (series: Series[], at: number): number =>
  series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0);

export function Chart({ title, labels, series, format, kind }: ChartProps) {
  const [at, setAt] = useState<number | null>(null);
  const highest = labels.map((_, index) => kind === "bars"
    ? sumAt(series, index)
    : Math.max(0, ...series.map(({ values }) => values[index] ?? 0)));
  const top = niceTop(Math.max(0, ...highest));
  const ticks = Array.from({ length: TICKS + 1 }, (_, index) => (top * (TICKS - index)) / TICKS);
  return (
    <figure class="chart">
      <figcaption>
        <span>{at === null ? title : labels[at]}</span>
        <span class="legend">
          {series.map(({ name, colour, values }) => (
            <span key={name}>
              <i class={`c${colour}`} />{name}
              {at !== null && <b>{shown(values[at], format)}</b>}
            </span>
          ))}
        </span>
      </figcaption>
      <div class="plot" aria-hidden="true" onPointerLeave={() => setAt(null)}>
        <div class="ticks">{ticks.map((tick) => <span key={tick}>{format(tick)}</span>)}</div>
        <div class="area">
          {kind === "lines" && <Lines series={series} count={labels.length} top={top} />}
          {labels.map((label, index) => (
            <div key={label} class={`day ${at === index ? "at" : ""}`} onPointerEnter={() => setAt(index)}>
              {kind === "bars" && series.map(({ name, colour, values }) => (
                <i key={name} class={`c${colour}`} style={{ height: `${((values[index] ?? 0) / top) * 100}%` }} />
              ))}
            </div>
          ))}
        </div>
        <div class="ends"><span>{labels[0]}</span><span>{labels.at(-1)}</span></div>
      </div>
      <details>
        <summary>Figures</summary>
        <FigureTable title={title} labels={labels} series={series} format={format} />
      </details>
    </figure>
  );
}

function Lines({ series, count, top }: { series: Series[]; count: number; top: number }) {
  return (
    <svg viewBox="0 0 1000 1000" preserveAspectRatio="none">
      {series.map(({ name, colour, values }) => (
        <path key={name} class={`c${colour}`} d={pathOf(values, count, top)} vector-effect="non-scaling-stroke" />
      ))}
    </svg>
  );
}

/** Days without a figure interrupt the line; a day alone is a point. */
function pathOf(values: (number | null)[], count: number, top: number): string {
  let path = "";
  let isDrawing = false;
  values.forEach((value, index) => {
    if (value !== null) {
      const x = (((index + 0.5) / count) * 1000).toFixed(1);
      const y = (1000 - (value / top) * 1000).toFixed(1);
      path += isDrawing ? `L${x} ${y}` : `M${x} ${y}h0.01`;
    }
    isDrawing = value !== null;
  });
  return path;
}

function FigureTable({ title, labels, series, format }: Omit<ChartProps, "kind">) {
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label={`${title}: figures`}>
      <table class="figures">
        <thead>
          <tr><th scope="col">Day</th>{series.map(({ name }) => <th key={name} scope="col">{name}</th>)}</tr>
        </thead>
        <tbody>
          {labels.map((label, index) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {series.map(({ name, values }) => (
                <td key={name}>{shown(values[index], format)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
