// Lists in pages, as they are loaded for the rows in view. Used by rows.ts.

const PAGE_ROWS = 50;
/** Scrolling fast passes many pages: but for the first, those in view after so long are loaded. */
const SETTLE_MS = 80;

interface NumberedPage<T> {
  rows: T[];
  /** How many rows all pages have. */
  total: number;
}

export type LoadPage<T> = (page: number, perPage: number) => Promise<NumberedPage<T>>;

/** So many rows, of which those in view are asked for. */
export class NumberedPages<T> {
  total: number | null = null;
  error: unknown = null;
  readonly #load: { current: LoadPage<T> };
  readonly #changed: () => void;
  readonly #pages = new Map<number, T[]>();
  readonly #fresh = new Set<number>();
  #reloads = 0;
  /** The newest reload that anything has come of. */
  #answered = 0;
  #view: [number, number] = [0, 1];
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isOver = false;

  /** `before`: the same list as it was left, shown until each page in view is there anew. */
  constructor(
    load: { current: LoadPage<T> }, changed: () => void, before: NumberedPages<T> | null = null,
  ) {
    this.#load = load;
    this.#changed = changed;
    if (before === null) return;
    this.total = before.total;
    for (const [page, rows] of before.#pages) this.#pages.set(page, rows);
  }

  at(index: number): T | undefined {
    return this.#pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  show(first: number, last: number): void {
    const [from, to] = this.#view;
    this.#view = [first, last];
    // What failed is asked for again by people, or where they have scrolled on.
    if (this.error !== null && first === from && last === to) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.#fetch();
    }, this.#fresh.size === 0 ? 0 : SETTLE_MS);
  }

  /** What is shown stays until its successor is there. */
  reload(): Promise<void> {
    this.#reloads += 1;
    this.#fresh.clear();
    this.error = null;
    return this.#fetch();
  }

  close(): void {
    this.#isOver = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #fetch(): Promise<void> {
    const [first, last] = this.#view;
    const newest = Math.max(0, Math.ceil((this.total ?? 1) / PAGE_ROWS) - 1);
    const lastPage = Math.min(newest, Math.floor(Math.max(first, last - 1) / PAGE_ROWS));
    const wanted: number[] = [];
    for (let page = Math.min(Math.floor(first / PAGE_ROWS), newest); page <= lastPage; page += 1) {
      if (!this.#fresh.has(page)) wanted.push(page);
    }
    for (const page of wanted) this.#fresh.add(page);
    if (wanted.length > 0) await this.#fetchPages(wanted, this.#reloads);
  }

  /** Together: where one is newer than its neighbour, rows are there twice or not at all. */
  async #fetchPages(pages: number[], reload: number): Promise<void> {
    try {
      const found = await Promise.all(
        pages.map((page) => this.#load.current(page + 1, PAGE_ROWS)));
      // Answers may overtake each other.
      if (reload < this.#answered) return;
      this.#answered = reload;
      for (const [at, { rows, total }] of found.entries()) {
        this.#pages.set(pages[at]!, rows);
        this.total = total;
      }
      this.error = null;
    } catch (error) {
      if (reload < this.#reloads) return;
      for (const page of pages) this.#fresh.delete(page);
      this.error = error;
    }
    if (!this.#isOver) this.#changed();
  }
}

interface CursorPage<T> {
  rows: T[];
  /** Null: it is the last. */
  next: string | null;
}

export type LoadBehind<T> = (cursor: string | null) => Promise<CursorPage<T>>;

/** More is not loaded again for whoever comes back. */
const AGAIN_ROWS_MAX = 1000;

/** Loads on from the end. */
export class CursorPages<T> {
  rows: T[] | null = null;
  error: unknown = null;
  readonly #load: { current: LoadBehind<T> };
  readonly #changed: () => void;
  #next: string | null = null;
  #run = 0;
  #isLoading = false;
  /** So many rows are wanted at once. */
  #wanted = 0;

  /** `before`: the same list as it was left, shown until all of it is there anew. */
  constructor(
    load: { current: LoadBehind<T> }, changed: () => void, before: CursorPages<T> | null = null,
  ) {
    this.#load = load;
    this.#changed = changed;
    this.rows = before?.rows ?? null;
    this.#wanted = Math.min(this.rows?.length ?? 0, AGAIN_ROWS_MAX);
  }

  /** Near the end, the next page is wanted. */
  show(last: number): void {
    const isNearEnd = this.rows !== null && last >= this.rows.length - PAGE_ROWS / 2;
    const isIdle = !this.#isLoading && !this.error;
    if (isNearEnd && isIdle && this.#next !== null) void this.#fetch(false);
  }

  reload(): Promise<void> {
    return this.#fetch(true);
  }

  close(): void {
    this.#run += 1;
  }

  async #fetch(isAnew: boolean): Promise<void> {
    const run = (this.#run += 1);
    this.#isLoading = true;
    try {
      const found = isAnew ? [] : [...this.rows ?? []];
      let next = isAnew ? null : this.#next;
      do {
        const page = await this.#load.current(next);
        if (run !== this.#run) return;
        found.push(...page.rows);
        next = page.next;
      } while (next !== null && found.length < this.#wanted);
      this.rows = found;
      this.error = null;
      this.#next = next;
      this.#wanted = 0;
    } catch (error) {
      if (run !== this.#run) return;
      this.error = error;
    }
    this.#isLoading = false;
    this.#changed();
  }
}

