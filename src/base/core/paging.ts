// Pages that are asked for by number, with how many there are in all.

/** Counts all matches only where the page does not show how many: a count reads each of them. */
export async function pageOf<Item>(
  { page, perPage }: { page: number; perPage: number },
  list: (offset: number, rows: number) => Promise<Item[]>, count: () => Promise<number>,
): Promise<{ items: Item[]; total: number }> {
  const offset = (page - 1) * perPage;
  const items = await list(offset, perPage);
  const isLast = items.length < perPage && (items.length > 0 || offset === 0);
  return { items, total: isLast ? offset + items.length : await count() };
}
