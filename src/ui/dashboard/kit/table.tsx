// Lists of any length: only the rows in view, and a few around them, are in the page. All rows have
// one height, so that the place of a row is known without drawing those above it.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Rows } from "#ui/dashboard/data/rows.ts";
import { count as counted } from "./format.ts";
import { Failure, Skeleton } from "./layout.tsx";

export interface Column<T> {
  title: string;
  /** `has`: whether a column of this title is shown, too. */
  cell: (row: T, has: (title: string) => boolean) => ComponentChildren;
  /** 1: always there; 2: from tablets on; 3: on wide screens. */
  priority?: 1 | 2 | 3;
  align?: "end";
  /** A few words of the dashboard's own, which wrap onto a second line where they do not fit. */
  isWords?: true;
  /** Its share of the width; 1 by default. `none`: as wide as its content, as for a button. */
  grow?: number | "none";
  /**
   * Its width from tablets on, where that is known: enough for its longest text in any language.
   * The list's columns without one share the rest.
   */
  fits?: string;
}

/** The selected rows; only loaded rows can be selected. */
export interface Choice<T> {
  has(row: T): boolean;
  /** True when as many rows are selected as the server takes at once. */
  isFull: boolean;
  set(rows: T[], isOn: boolean): void;
  /** For screen readers: `Select Ada`. */
  label(row: T): string;
}

interface TableProps<T> {
  /** For screen readers. */
  label: string;
  columns: Column<T>[];
  rows: Rows<T>;
  rowKey: (row: T) => string | number;
  /** Makes the whole row a link. */
  href?: (row: T) => string;
  onClick?: (row: T) => void;
  /** Puts a box before each row. */
  choice?: Choice<T>;
  /** Shown where there are no rows. */
  empty: ComponentChildren;
}

/** From these widths on, columns of priority 2 and 3 are shown. */
const WIDER = ["(min-width: 48rem)", "(min-width: 80rem)"];
const tier = (): number => 1 + WIDER.filter((query) => matchMedia(query).matches).length;

/** The lowest priority for which there is room. */
export function useTier(): number {
  const [now, setNow] = useState(tier);
  useEffect(() => {
    const measure = (): void => setNow(tier());
    const queries = WIDER.map((query) => matchMedia(query));
    for (const query of queries) query.addEventListener("change", measure);
    measure();
    return () => {
      for (const query of queries) query.removeEventListener("change", measure);
    };
  }, []);
  return now;
}

/** The CSS width of a column; undefined: an equal part of what the others leave. */
function widthOf<T>(column: Column<T>, columns: Column<T>[], room: number): string | undefined {
  if (room > 1 && columns.some(({ fits }) => fits)) return column.fits;
  const share = ({ grow = 1 }: Column<T>): number => grow === "none" ? 0 : grow;
  const whole = columns.reduce((sum, one) => sum + share(one), 0);
  return `${(share(column) / whole) * 100}%`;
}

/** As in dashboard.css: 52 pixels, and more with a larger browser font. */
const rowPx = (): number =>
  52 * parseFloat(getComputedStyle(document.documentElement).fontSize) / 15;
const AROUND = 12;

/** Firefox draws nothing below 17.9 million pixels, Chromium nothing below 33.6 million. */
const HEIGHT_PX_MAX = 15_000_000;

export function Table<T>(props: TableProps<T>) {
  const { rows, empty } = props;
  const { count, error, reload } = rows;
  return (
    <>
      {Boolean(error) && <Failure error={error} retry={reload} />}
      {count === null && !error && <Skeleton />}
      {count === 0 && empty}
      {count !== null && count > 0 && <Drawn {...props} total={count} />}
    </>
  );
}

/** The list, as far down as browsers can draw it. */
function Drawn<T>(props: TableProps<T> & { total: number }) {
  const { total } = props;
  const count = Math.min(total, Math.floor(HEIGHT_PX_MAX / rowPx()));
  return (
    <>
      <Body {...props} count={count} />
      {total > count && (
        <p class="soft list-more">And {counted(total - count)} more: filter the list.</p>
      )}
    </>
  );
}

function Body<T>(given: TableProps<T> & { count: number; total: number }) {
  const room = useTier();
  const columns = given.columns.filter(({ priority = 1 }) => priority <= room);
  const props = { ...given, columns };
  const { label, rows, rowKey, choice, count, total } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  const [first, last] = useWindow(body, count);
  useHeld(body, props, first, last);
  useEffect(() => rows.show(first, last), [rows, first, last]);
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at);
  return (
    <table class="list" aria-label={label} aria-rowcount={total + 1}>
      <colgroup>
        {choice && <col class="choice" />}
        {columns.map((column) => (
          <col
            key={column.title} class={column.grow === "none" ? "whole" : undefined}
            style={{ width: widthOf(column, columns, room) }}
          />
        ))}
      </colgroup>
      <thead>
        <tr aria-rowindex={1}>
          {choice && <ChooseAll rows={rows} count={count} choice={choice} />}
          {columns.map(({ title, align }) => (
            <th key={title} scope="col" class={align}>{title}</th>
          ))}
        </tr>
      </thead>
      <tbody ref={body}>
        <Space rows={first} />
        {shown.map((index) => {
          const row = rows.at(index);
          return row === undefined
            ? <tr key={`at ${index}`} aria-rowindex={index + 2}><td colSpan={columns.length + (choice ? 1 : 0)}>…</td></tr>
            : <Row key={rowKey(row)} {...props} row={row} index={index} />;
        })}
        <Space rows={count - last} />
      </tbody>
    </table>
  );
}

const Space = ({ rows }: { rows: number }) =>
  rows > 0
    ? <tr class="space" style={{ height: `${rows * rowPx()}px` }} aria-hidden="true" />
    : null;

/** Selects the rows that are loaded, from the top, as many as may be. */
function ChooseAll<T>({ rows, count, choice }: {
  rows: Rows<T>; count: number; choice: Choice<T>;
}) {
  const loaded = Array.from({ length: count }, (_, at) => rows.at(at))
    .filter((row) => row !== undefined);
  const chosen = loaded.filter((row) => choice.has(row)).length;
  const isAll = chosen > 0 && (chosen === loaded.length || choice.isFull);
  return (
    <th scope="col" class="choice">
      <label>
        <input
          type="checkbox" aria-label="Select all that are loaded" checked={isAll}
          ref={(box) => {
            if (box) box.indeterminate = chosen > 0 && !isAll;
          }}
          onChange={() => choice.set(loaded, !isAll)}
        />
      </label>
    </th>
  );
}

function Choose<T>({ row, choice }: { row: T; choice: Choice<T> }) {
  const isOn = choice.has(row);
  return (
    <td class="choice">
      <label>
        <input
          type="checkbox" aria-label={choice.label(row)} checked={isOn}
          disabled={choice.isFull && !isOn} onChange={() => choice.set([row], !isOn)}
        />
      </label>
    </td>
  );
}

function Row<T>(props: TableProps<T> & { row: T; index: number }) {
  const { columns, row, index, href, onClick, choice } = props;
  const has = (title: string): boolean => columns.some((column) => column.title === title);
  const lead = (content: ComponentChildren): ComponentChildren => {
    if (href) return <a class="row-link" href={href(row)}>{content}</a>;
    if (!onClick) return content;
    return <button type="button" class="row-link" onClick={() => onClick(row)}>{content}</button>;
  };
  return (
    <tr aria-rowindex={index + 2} class={choice?.has(row) ? "chosen" : undefined}>
      {choice && <Choose row={row} choice={choice} />}
      {columns.map(({ title, cell, align, isWords }, at) => (
        <td key={title} class={isWords ? "words" : align}>
          {at === 0 ? lead(cell(row, has)) : cell(row, has)}
        </td>
      ))}
    </tr>
  );
}

/**
 * Keeps what people read in place while rows come and go above it: browsers do so only where the
 * whole table moves.
 */
function useHeld<T>(
  body: { current: HTMLElement | null }, { rows, rowKey }: TableProps<T>,
  first: number, last: number,
): void {
  const places = useRef(new Map<string | number, number>());
  useLayoutEffect(() => {
    const before = places.current;
    places.current = new Map();
    const moves: number[] = [];
    for (let index = first; index < last; index += 1) {
      const row = rows.at(index);
      if (row === undefined) continue;
      const place = before.get(rowKey(row));
      if (place !== undefined) moves.push(index - place);
      places.current.set(rowKey(row), index);
    }
    // The median move: a row that has changed may have moved on its own.
    const rowsDown = moves.sort((one, other) => one - other)[moves.length >> 1] ?? 0;
    const isBegun = (body.current?.getBoundingClientRect().top ?? 0) < -rowPx();
    if (rowsDown !== 0 && isBegun) scrollBy({ top: rowsDown * rowPx(), behavior: "instant" });
  }, [rows, first, last]);
}

/** The rows in view, with some around them: `[first, end)`. */
function useWindow(body: { current: HTMLElement | null }, count: number): [number, number] {
  const [range, setRange] = useState<[number, number]>([0, Math.min(count, 40)]);
  useEffect(() => {
    const measure = (): void => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const row = rowPx();
      const first = Math.min(count, Math.max(0, Math.floor(-top / row) - AROUND));
      const below = Math.ceil((innerHeight - top) / row) + AROUND;
      const last = Math.max(first, Math.min(count, below));
      setRange((before) => before[0] === first && before[1] === last ? before : [first, last]);
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [count]);
  return range;
}
