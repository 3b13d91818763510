// Paged lists, loaded for the rows in view. Used by rows.ts.

const PAGE_ROWS = 50;
/**
 * Fast scrolling passes many pages: except for the first, only those in view after this are loaded.
 */
const SETTLE_MS = 80;
/** How often pages are loaded until all are of one time, in a list that grows meanwhile. */
const TRIES = 3;

interface NumberedPage<T> {
  rows: T[];
  /** The rows of all pages together. */
  total: number;
}

export type LoadPage<T> = (page: number, perPage: number) => Promise<NumberedPage<T>>;

/** A list with a known number of rows, of which it loads those in view. */
export class NumberedPages<T> {
  total: number | null = null;
  error: unknown = null;
  readonly #load: { current: LoadPage<T> };
  readonly #changed: () => void;
  readonly #pages = new Map<number, T[]>();
  readonly #fresh = new Set<number>();
  #reloads = 0;
  /** The newest reload that has been answered. */
  #answered = 0;
  #view: [number, number] = [0, 1];
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isOver = false;

  /**
   * `before`: the same list when it was left, shown until each page in view has been loaded again.
   */
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
    // After a failure only people load again, or scrolling on does.
    if (this.error !== null && first === from && last === to) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.#fetch();
    }, this.#fresh.size === 0 ? 0 : SETTLE_MS);
  }

  /** What is shown stays until the new pages are there. */
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

  async #fetchPages(pages: number[], reload: number): Promise<void> {
    try {
      const found = await this.#loadTogether(pages);
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

  /** Where one page is newer than its neighbour, rows are there twice or not at all. */
  async #loadTogether(pages: number[]): Promise<NumberedPage<T>[]> {
    for (let left = TRIES; ; left -= 1) {
      const found = await Promise.all(
        pages.map((page) => this.#load.current(page + 1, PAGE_ROWS)));
      const isOfOneTime = found.every(({ total }) => total === found[0]?.total);
      if (isOfOneTime || left === 1 || this.#isOver) return found;
    }
  }
}

interface CursorPage<T> {
  rows: T[];
  /** Null: it is the last. */
  next: string | null;
}

export type LoadBehind<T> = (cursor: string | null) => Promise<CursorPage<T>>;

/** People who come back to a longer list get only this many rows loaded again. */
const AGAIN_ROWS_MAX = 1000;

/** Loads further pages as the end comes near. */
export class CursorPages<T> {
  rows: T[] | null = null;
  error: unknown = null;
  readonly #load: { current: LoadBehind<T> };
  readonly #changed: () => void;
  #next: string | null = null;
  #run = 0;
  #isLoading = false;
  /** A reload goes on until there are this many rows. */
  #wanted = 0;

  /** `before`: the same list when it was left, shown until all of it has been loaded again. */
  constructor(
    load: { current: LoadBehind<T> }, changed: () => void, before: CursorPages<T> | null = null,
  ) {
    this.#load = load;
    this.#changed = changed;
    this.rows = before?.rows ?? null;
    this.#wanted = Math.min(this.rows?.length ?? 0, AGAIN_ROWS_MAX);
  }

  /** Loads the next page when the end is near. */
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

