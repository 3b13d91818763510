// Lists for tables: a number of rows, of which those in view are loaded. Lists in numbered pages
// load only the pages in view, however far down; lists with a cursor load on from the end.
import { useCallback, useEffect, useMemo, useReducer, useRef } from "preact/hooks";
import { CursorPages, NumberedPages, type LoadBehind, type LoadPage } from "./pages.ts";
import { useEvents, useRetry } from "./live.tsx";
import { entryOf } from "./seen.ts";
import { useFocusReload } from "./use-focus.ts";
import { useCalmly } from "./use-calmly.ts";

export interface Rows<T> {
  /** Null until the first page is there. */
  count: number | null;
  /** Undefined while it is being loaded. */
  at(index: number): T | undefined;
  /** Rows from `first` up to but without `last` are in view. */
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

/**
 * The pages of list `key`, and a number that changes with them. Keeps the list as it was last
 * loaded, so that people who come back find it just as long and their place still there.
 */
function useFollowed<P, L>(
  key: string,
  load: L,
  Pages: new (loader: { current: L }, changed: () => void, before: P | null) => P,
): [pages: P, version: number] {
  const [version, changed] = useReducer((count: number) => count + 1, 0);
  const loader = useRef(load);
  loader.current = load;
  const pages = useMemo(() => {
    const entry = entryOf(`rows ${key}`);
    const made: P = new Pages(loader, () => {
      entry.value = made;
      changed(undefined);
    }, entry.value as P | null);
    return made;
  }, [key]);
  return [pages, version];
}

/** `load` gives page `page`, from 1; another `key` is another list. */
export function usePages<T>(
  key: string,
  load: LoadPage<T>,
  changedBy: readonly string[] = [],
): Rows<T> {
  const [pages, version] = useFollowed(key, load, NumberedPages<T>);
  useEffect(() => {
    // A table that is already shown reports by itself which rows are in view.
    if (pages.total === null || pages.total === 0) pages.show(0, 1);
    return () => pages.close();
  }, [pages]);
  const reload = useCallback(() => pages.reload(), [pages]);
  useEvents(changedBy, useCalmly(reload));
  useFocusReload(reload);
  useRetry(pages.error, reload);
  return useMemo(() => ({
    count: pages.total,
    at: (index) => pages.at(index),
    show: (first, last) => pages.show(first, last),
    error: pages.error,
    reload,
  }), [pages, version, reload]);
}

/** `load` gives the page behind a cursor; null: the first. */
export function useCursor<T>(key: string, load: LoadBehind<T>): Rows<T> {
  const [pages, version] = useFollowed(key, load, CursorPages<T>);
  useEffect(() => {
    void pages.reload();
    return () => pages.close();
  }, [pages]);
  const reload = useCallback(() => pages.reload(), [pages]);
  useRetry(pages.error, reload);
  return useMemo(() => ({
    count: pages.rows?.length ?? null,
    at: (index) => pages.rows?.[index],
    show: (_first, last) => pages.show(last),
    error: pages.error,
    reload,
  }), [pages, version, reload]);
}
