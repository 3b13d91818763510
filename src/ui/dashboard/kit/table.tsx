// Lists of any length: only the rows in view, and a few around them, are in the page. All rows have
// one height, so that the place of a row is known without drawing those above it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Rows } from "#ui/dashboard/data/rows.ts";
import { Failure, Skeleton } from "./layout.tsx";

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** 1: always there; 2: from tablets on; 3: on wide screens. */
  priority?: 1 | 2 | 3;
  align?: "end";
  /** Its share of the width; 1 by default. */
  grow?: number;
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
  /** Shown where there are no rows. */
  empty: ComponentChildren;
}

/** As in dashboard.css. */
const ROW_PX = 52;
const AROUND = 12;

export function Table<T>(props: TableProps<T>) {
  const { rows, empty } = props;
  const { count, error, reload } = rows;
  return (
    <>
      {Boolean(error) && <Failure error={error} retry={reload} />}
      {count === null && !error && <Skeleton />}
      {count === 0 && empty}
      {count !== null && count > 0 && <Body {...props} count={count} />}
    </>
  );
}

function Body<T>(props: TableProps<T> & { count: number }) {
  const { label, columns, rows, rowKey, count } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  const [first, last] = useWindow(body, count);
  useEffect(() => rows.show(first, last), [rows, first, last]);
  const whole = columns.reduce((sum, { grow = 1 }) => sum + grow, 0);
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at);
  return (
    <table class="list" aria-label={label} aria-rowcount={count + 1}>
      <colgroup>
        {columns.map(({ title, priority = 1, grow = 1 }) => (
          <col key={title} class={`p${priority}`} style={{ width: `${(grow / whole) * 100}%` }} />
        ))}
      </colgroup>
      <thead>
        <tr aria-rowindex={1}>
          {columns.map(({ title, priority = 1, align }) => (
            <th key={title} scope="col" class={`p${priority} ${align ?? ""}`}>{title}</th>
          ))}
        </tr>
      </thead>
      <tbody ref={body}>
        <Space rows={first} />
        {shown.map((index) => {
          const row = rows.at(index);
          return row === undefined
            ? <tr key={`at ${index}`} aria-rowindex={index + 2}><td colSpan={columns.length}>…</td></tr>
            : <Row key={rowKey(row)} {...props} row={row} index={index} />;
        })}
        <Space rows={count - last} />
      </tbody>
    </table>
  );
}

const Space = ({ rows }: { rows: number }) =>
  rows > 0
    ? <tr class="space" style={{ height: `${rows * ROW_PX}px` }} aria-hidden="true" />
    : null;

function Row<T>({ columns, row, index, href, onClick }: TableProps<T> & { row: T; index: number }) {
  const lead = (content: ComponentChildren): ComponentChildren => {
    if (href) return <a class="row-link" href={href(row)}>{content}</a>;
    if (!onClick) return content;
    return <button type="button" class="row-link" onClick={() => onClick(row)}>{content}</button>;
  };
  return (
    <tr aria-rowindex={index + 2}>
      {columns.map(({ title, cell, priority = 1, align }, at) => (
        <td key={title} class={`p${priority} ${align ?? ""}`}>
          {at === 0 ? lead(cell(row)) : cell(row)}
        </td>
      ))}
    </tr>
  );
}

/** The rows in view, with some around them: `[first, behind last]`. */
function useWindow(body: { current: HTMLElement | null }, count: number): [number, number] {
  const [range, setRange] = useState<[number, number]>([0, Math.min(count, 40)]);
  useEffect(() => {
    const measure = (): void => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.min(count, Math.max(0, Math.floor(-top / ROW_PX) - AROUND));
      const below = Math.ceil((innerHeight - top) / ROW_PX) + AROUND;
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
