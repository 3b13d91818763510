// The two page envelopes of the contract: numbered pages and cursors.
import { Type, type TSchema } from "@sinclair/typebox";
import { LIMITS } from "../core/limits.ts";

/** Query fields of every list in numbered pages. */
export const pageQuery = (perPageDefault: number) => ({
  per_page: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.pageSizeMax, default: perPageDefault }),
  ),
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000, default: 1 })),
});

export const PageSchema = <T extends TSchema>(item: T) =>
  Type.Object({
    current_page: Type.Integer(),
    data: Type.Array(item),
    first_page_url: Type.String(),
    from: Type.Union([Type.Integer(), Type.Null()]),
    last_page: Type.Integer(),
    last_page_url: Type.String(),
    links: Type.Array(
      Type.Object({
        url: Type.Union([Type.String(), Type.Null()]),
        label: Type.String(),
        active: Type.Boolean(),
      }),
    ),
    next_page_url: Type.Union([Type.String(), Type.Null()]),
    path: Type.String(),
    per_page: Type.Integer(),
    prev_page_url: Type.Union([Type.String(), Type.Null()]),
    to: Type.Union([Type.Integer(), Type.Null()]),
    total: Type.Integer(),
  });

/** More numbered links than this would make a page of links instead of data. */
const NUMBERED_LINKS_MAX = 100;

export interface PageOf<Item> {
  items: Item[];
  total: number;
}

/** `path`: absolute URL of the list; `query`: the request's own, kept in every page link. */
export function pageEnvelope<Item>(
  { items, total }: PageOf<Item>,
  { path, query, page, perPage }: { path: string; query: string; page: number; perPage: number },
) {
  const lastPage = Math.max(1, Math.ceil(total / perPage));
  const urlOf = (number: number): string => {
    const parameters = new URLSearchParams(query);
    parameters.set("page", String(number));
    return `${path}?${parameters.toString()}`;
  };
  const previous = page > 1 ? urlOf(page - 1) : null;
  const next = page < lastPage ? urlOf(page + 1) : null;
  const centred = page - NUMBERED_LINKS_MAX / 2;
  const first = Math.max(1, Math.min(centred, lastPage - NUMBERED_LINKS_MAX + 1));
  const numbered = Array.from(
    { length: Math.min(lastPage, NUMBERED_LINKS_MAX) },
    (_, index) => first + index,
  ).map((number) => ({ url: urlOf(number), label: String(number), active: number === page }));
  const from = (page - 1) * perPage + 1;
  return {
    current_page: page,
    data: items,
    first_page_url: urlOf(1),
    from: items.length > 0 ? from : null,
    last_page: lastPage,
    last_page_url: urlOf(lastPage),
    links: [
      { url: previous, label: "&laquo; Previous", active: false },
      ...numbered,
      { url: next, label: "Next &raquo;", active: false },
    ],
    next_page_url: next,
    path,
    per_page: perPage,
    prev_page_url: previous,
    to: items.length > 0 ? from + items.length - 1 : null,
    total,
  };
}
