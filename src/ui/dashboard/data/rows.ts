// Lists as tables take them: so many rows, of which those in view are asked for. Lists in numbered
// pages load just the pages in view, however far down; lists with a cursor load on from the end.
import { useCallback, useEffect, useMemo, useReducer, useRef } from "preact/hooks";
import { useReloads } from "./use-data.ts";

export interface Rows<T> {
  /** Null until the first page is there. */
  count: number | null;
  /** Undefined while it is being loaded. */
  at(index: number): T | undefined;
  /** Rows `first` to behind `last` are in view. */
  show(first: number, last: number): void;
  error: unknown;
  reload(): void;
}

/** Rows of a list that is there as a whole. */
export function rowsOf<T>(
  list: T[] | null, error: unknown = null, reload: () => void = () => undefined,
): Rows<T> {
  return {
    count: list?.length ?? null, at: (index) => list?.[index], show: () => undefined, error, reload,
  };
}

const PAGE_ROWS = 50;
/** Scrolling fast passes many pages: those still in view after so long are loaded. */
const SETTLE_MS = 80;

interface NumberedPage<T> {
  rows: T[];
  /** How many rows all pages have. */
  total: number;
}

type LoadPage<T> = (page: number, perPage: number) => Promise<NumberedPage<T>>;

class NumberedPages<T> {
  total: number | null = null;
  error: unknown = null;
  readonly #load: { current: LoadPage<T> };
  readonly #changed: () => void;
  readonly #pages = new Map<number, T[]>();
  readonly #fresh = new Set<number>();
  #view: [number, number] = [0, 1];
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isOver = false;

  constructor(load: { current: LoadPage<T> }, changed: () => void) {
    this.#load = load;
    this.#changed = changed;
  }

  at(index: number): T | undefined {
    return this.#pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  show(first: number, last: number): void {
    this.#view = [first, last];
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#fetch();
    }, this.total === null ? 0 : SETTLE_MS);
  }

  /** What is shown stays until its successor is there. */
  reload(): void {
    this.#fresh.clear();
    this.error = null;
    this.#fetch();
  }

  close(): void {
    this.#isOver = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #fetch(): void {
    const [first, last] = this.#view;
    const newest = Math.max(0, Math.ceil((this.total ?? 1) / PAGE_ROWS) - 1);
    const lastPage = Math.min(newest, Math.floor(Math.max(first, last - 1) / PAGE_ROWS));
    for (let page = Math.min(Math.floor(first / PAGE_ROWS), newest); page <= lastPage; page += 1) {
      if (this.#fresh.has(page)) continue;
      this.#fresh.add(page);
      void this.#fetchPage(page);
    }
  }

  async #fetchPage(page: number): Promise<void> {
    try {
      const { rows, total } = await this.#load.current(page + 1, PAGE_ROWS);
      this.#pages.set(page, rows);
      this.total = total;
      this.error = null;
    } catch (error) {
      this.#fresh.delete(page);
      this.error = error;
    }
    if (!this.#isOver) this.#changed();
  }
}

/** `load` gives page `page`, from 1; another `key` is another list. */
export function usePages<T>(
  key: string,
  load: LoadPage<T>,
  changedBy: readonly string[] = [],
): Rows<T> {
  const [version, changed] = useReducer((count: number) => count + 1, 0);
  const loader = useRef(load);
  loader.current = load;
  const pages = useMemo(() => new NumberedPages<T>(loader, () => changed(undefined)), [key]);
  useEffect(() => {
    pages.show(0, 1);
    return () => pages.close();
  }, [pages]);
  const reload = useCallback(() => pages.reload(), [pages]);
  useReloads(changedBy, reload);
  return useMemo(() => ({
    count: pages.total,
    at: (index) => pages.at(index),
    show: (first, last) => pages.show(first, last),
    error: pages.error,
    reload,
  }), [pages, version, reload]);
}

interface CursorPage<T> {
  rows: T[];
  /** Null: it is the last. */
  next: string | null;
}

type LoadBehind<T> = (cursor: string | null) => Promise<CursorPage<T>>;

class CursorPages<T> {
  rows: T[] | null = null;
  error: unknown = null;
  readonly #load: { current: LoadBehind<T> };
  readonly #changed: () => void;
  #next: string | null = null;
  #run = 0;
  #isLoading = false;

  constructor(load: { current: LoadBehind<T> }, changed: () => void) {
    this.#load = load;
    this.#changed = changed;
  }

  /** Near the end, the next page is wanted. */
  show(last: number): void {
    const isNearEnd = this.rows !== null && last >= this.rows.length - PAGE_ROWS / 2;
    const isIdle = !this.#isLoading && !this.error;
    if (isNearEnd && isIdle && this.#next !== null) void this.#fetch(false);
  }

  reload(): void {
    void this.#fetch(true);
  }

  close(): void {
    this.#run += 1;
  }

  async #fetch(isAnew: boolean): Promise<void> {
    const run = (this.#run += 1);
    this.#isLoading = true;
    try {
      const { rows, next } = await this.#load.current(isAnew ? null : this.#next);
      if (run !== this.#run) return;
      this.rows = isAnew ? rows : [...this.rows ?? [], ...rows];
      this.#next = next;
      this.error = null;
    } catch (error) {
      if (run !== this.#run) return;
      this.error = error;
    }
    this.#isLoading = false;
    this.#changed();
  }
}

/** `load` gives the page behind a cursor; null: the first. After an event the list begins anew. */
export function useCursor<T>(
  key: string,
  load: LoadBehind<T>,
  changedBy: readonly string[] = [],
): Rows<T> {
  const [version, changed] = useReducer((count: number) => count + 1, 0);
  const loader = useRef(load);
  loader.current = load;
  const pages = useMemo(() => new CursorPages<T>(loader, () => changed(undefined)), [key]);
  useEffect(() => {
    pages.reload();
    return () => pages.close();
  }, [pages]);
  const reload = useCallback(() => pages.reload(), [pages]);
  useReloads(changedBy, reload);
  return useMemo(() => ({
    count: pages.rows?.length ?? null,
    at: (index) => pages.rows?.[index],
    show: (_first, last) => pages.show(last),
    error: pages.error,
    reload,
  }), [pages, version, reload]);
}
