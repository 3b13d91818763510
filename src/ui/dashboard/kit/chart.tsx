// Bars and lines over hours, days or weeks. Drawn as elements of the page, so that they scale,
// follow the theme and can be read: every chart has its figures as a table too.
import { useState } from "preact/hooks";
import { ticksOf } from "./ticks.ts";

interface Series {
  name: string;
  /** One of the colours of dashboard.css: `--chart-1` to `--chart-4`. */
  colour: 1 | 2 | 3 | 4;
  /** One figure for each label; null: none that day. */
  values: (number | null)[];
}

interface ChartProps {
  title: string;
  /** Days, oldest first. */
  labels: string[];
  series: Series[];
  format: (value: number) => string;
  kind: "bars" | "lines";
  /** Only whole figures make sense: so do the lines behind them. */
  isWhole?: boolean;
  /** Shown for all days while no day is pointed at: `{ Calls: "120" }`. */
  totals?: Record<string, string>;
  /** The period before, as a dashed line; for bars, all series together. */
  before?: { values: (number | null)[]; total: string } | null;
  /** Opens a day's own list. */
  onOpen?: (index: number) => void;
  /** In place of the plot, when there is nothing to draw. */
  empty?: string;
}

const BEFORE = "Period before";

const shown = (value: number | null | undefined, format: ChartProps["format"]): string =>
  value === null || value === undefined ? "–" : format(value);

const sumAt = (series: Series[], at: number): number =>
  series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0);

export function Chart(props: ChartProps) {
  const { title, labels, series, format, totals, empty, before } = props;
  const [at, setAt] = useState<number | null>(null);
  const isEmpty = series.every(({ values }) => values.every((value) => !value));
  return (
    <figure class="chart" aria-label={title}>
      <figcaption>
        <span>{at === null ? title : labels[at]}</span>
        <span class="legend">
          {series.map(({ name, colour, values }) => (
            <span key={name}>
              <i class={`c${colour}`} />{name}
              {at !== null && <b>{shown(values[at], format)}</b>}
              {at === null && totals?.[name] !== undefined && <b>{totals[name]}</b>}
            </span>
          ))}
          {before && (
            <span>
              <i class="before" />{BEFORE}
              <b>{at === null ? before.total : shown(before.values[at], format)}</b>
            </span>
          )}
        </span>
      </figcaption>
      {isEmpty && empty
        ? <p class="plot-empty">{empty}</p>
        : <Plot {...props} at={at} onPoint={setAt} />}
      {!(isEmpty && empty) && (
        <details>
          <summary aria-label={`Figures: ${title}`}>Figures</summary>
          <FigureTable {...props} />
        </details>
      )}
    </figure>
  );
}

/** For sighted people and pointers; everybody else has the table of figures below it. */
function Plot(props: ChartProps & { at: number | null; onPoint(at: number | null): void }) {
  const { labels, series, format, kind, isWhole, before, at, onPoint, onOpen } = props;
  const highest = labels.map((_, index) => kind === "bars"
    ? sumAt(series, index)
    : Math.max(0, ...series.map(({ values }) => values[index] ?? 0)));
  const earlier = before?.values.slice(0, labels.length).map((value) => value ?? 0) ?? [];
  const ticks = ticksOf(Math.max(0, ...highest, ...earlier), isWhole);
  const top = ticks.at(-1) ?? 1;
  // The position decides, not the element: touch events stay with the element first touched.
  const point = (
    { currentTarget, clientX }: { currentTarget: HTMLElement; clientX: number },
  ): void => {
    const { left, width } = currentTarget.getBoundingClientRect();
    const index = Math.floor(((clientX - left) / width) * labels.length);
    onPoint(Math.min(labels.length - 1, Math.max(0, index)));
  };
  const middle = labels.length > 4 ? labels[Math.floor(labels.length / 2)] : null;
  return (
    <div class="plot" aria-hidden="true">
      <div class="ticks">{ticks.toReversed().map((tick) => <span key={tick}>{format(tick)}</span>)}</div>
      <div
        class={`area ${onOpen ? "opens" : ""}`} onPointerMove={point} onPointerDown={point}
        onPointerLeave={(event) => event.pointerType === "mouse" && onPoint(null)}
        onPointerCancel={() => onPoint(null)}
        onClick={() => at !== null && onOpen?.(at)}
      >
        {ticks.slice(1).map((tick) => (
          <span key={tick} class="line" style={{ bottom: `${(tick / top) * 100}%` }} />
        ))}
        {kind === "lines" && <Lines series={series} count={labels.length} top={top} />}
        {before && <Before values={before.values} count={labels.length} top={top} />}
        {labels.map((_, index) => (
          <div key={index} class={`day ${at === index ? "at" : ""}`}>
            {kind === "bars" && series.map(({ name, colour, values }) => (values[index] ?? 0) > 0 && (
              <i key={name} class={`c${colour}`} style={{ height: `${((values[index] ?? 0) / top) * 100}%` }} />
            ))}
            {kind === "lines" && series.map(({ name, colour, values }) => isAlone(values, index) && (
              <b key={name} class={`dot c${colour}`} style={{ bottom: `${((values[index] ?? 0) / top) * 100}%` }} />
            ))}
          </div>
        ))}
      </div>
      <div class="ends">
        <span>{labels[0]}</span>{middle && <span>{middle}</span>}<span>{labels.at(-1)}</span>
      </div>
    </div>
  );
}

/** A line takes two days: one without neighbours is drawn as a dot. */
const isAlone = (values: (number | null)[], index: number): boolean =>
  typeof values[index] === "number"
    && typeof values[index - 1] !== "number" && typeof values[index + 1] !== "number";

function Lines({ series, count, top }: { series: Series[]; count: number; top: number }) {
  return (
    <svg viewBox="0 0 1000 1000" preserveAspectRatio="none">
      {series.map(({ name, colour, values }) => (
        <path key={name} class={`c${colour}`} d={pathOf(values, count, top)} vector-effect="non-scaling-stroke" />
      ))}
    </svg>
  );
}

function Before({ values, count, top }: {
  values: (number | null)[]; count: number; top: number;
}) {
  return (
    <svg viewBox="0 0 1000 1000" preserveAspectRatio="none">
      <path
        class="before" vector-effect="non-scaling-stroke"
        d={pathOf(values.slice(0, count), count, top)}
      />
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

function FigureTable({ title, labels, series, format, before, onOpen }: ChartProps) {
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label={`${title}: figures`}>
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ name }) => <th key={name} scope="col">{name}</th>)}
            {before && <th scope="col">{BEFORE}</th>}
          </tr>
        </thead>
        <tbody>
          {labels.map((label, index) => (
            <tr key={index}>
              <th scope="row">
                {onOpen
                  ? <button type="button" class="chart-day" onClick={() => onOpen(index)}>{label}</button>
                  : label}
              </th>
              {series.map(({ name, values }) => (
                <td key={name}>{shown(values[index], format)}</td>
              ))}
              {before && <td>{shown(before.values[index], format)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
