// The two page envelopes of the contract: numbered pages and cursors.
import { Type, type TSchema } from "@sinclair/typebox";
import { dayAfter, isDay } from "#core/days.ts";
import { fieldFault } from "#core/faults.ts";
import { about, named, Nullable, TimeZone } from "#core/schema.ts";
import { LIMITS } from "#core/limits.ts";
import type { Instant } from "#core/system.ts";
import { clockInstant, dayStart } from "#core/zones.ts";

export const PER_PAGE_DEFAULT = 15;

/** Query fields of every list in numbered pages. */
export const pageQuery = (perPageDefault = PER_PAGE_DEFAULT) => ({
  per_page: Type.Optional(
    Type.Integer({
      minimum: 1, maximum: LIMITS.pageSizeMax, default: perPageDefault,
      ...about("Rows per page."),
    }),
  ),
  page: Type.Optional(Type.Integer({
    minimum: 1, maximum: 1_000_000_000, default: 1, ...about("The page, counted from 1."),
  })),
});

const FIRST = "https://talk.example.com/api/user/list?page=1";
const PageLink = Type.Object({
  url: Nullable(Type.String(about("URL of the page; null if there is none.", FIRST))),
  label: Type.String(about("The page's number, or the words for previous and next.", "1")),
  active: Type.Boolean(about("Whether it is the current page.")),
}, named("PageLink", "A link to another page of a list."));

export const PageSchema = <T extends TSchema>(item: T) =>
  Type.Object({
    current_page: Type.Integer(about("The current page, counted from 1.", 1)),
    data: Type.Array(item, about("The rows of the page.")),
    first_page_url: Type.String(about("URL of the first page.", FIRST)),
    from: Nullable(Type.Integer(about("Number of the first row on this page; null if it is empty.",
      1))),
    last_page: Type.Integer(about("The number of pages, at least 1.", 1)),
    last_page_url: Type.String(about("URL of the last page.", FIRST)),
    links: Type.Array(PageLink, about("Links to the previous page, the pages around this one, and "
      + "the next.")),
    next_page_url: Nullable(Type.String(about("URL of the next page; null on the last.", FIRST))),
    path: Type.String(about(
      "URL of the list, without a query.", "https://talk.example.com/api/user/list")),
    per_page: Type.Integer(about("Rows per page.", 15)),
    prev_page_url: Nullable(Type.String(about("URL of the previous page; null on the first.",
      FIRST))),
    to: Nullable(Type.Integer(about("Number of the last row on this page; null if it is empty.",
      1))),
    total: Type.Integer(about("The total number of rows.", 1)),
  });

const Day = (description: string) => Type.String({
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T([01][0-9]|2[0-3]):[0-5][0-9])?$",
  ...about(description, "2026-03-01"),
});

/** A query field for a whole day. */
export const RangeDay = (description: string) =>
  Type.String({ pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", ...about(description, "2026-03-01") });

/** Query fields of lists that can be narrowed to days, both included. */
export const dayQuery = {
  date_from: Type.Optional(Day("Only rows from this day on, in `timezone`. With a time "
    + "(`2026-03-01T14:00`), from that time on.")),
  date_to: Type.Optional(Day("Only rows up to and including this day, in `timezone`. With a time, "
    + "only rows before it.")),
  timezone: Type.Optional(Type.String({
    ...TimeZone("The timezone must be a valid timezone."),
    ...about("The IANA time zone in which days are counted. Defaults to the account's.",
      "Europe/Berlin"),
  })),
};

export interface DayQuery {
  date_from?: string;
  date_to?: string;
  timezone?: string;
}

/** Fills in the account's time zone for days without one of their own. */
export const inZone = async (query: DayQuery, zoneOf: () => Promise<string>): Promise<DayQuery> =>
  query.timezone !== undefined || (query.date_from ?? query.date_to) === undefined
    ? query
    : { ...query, timezone: await zoneOf() };

/** The days as instants, the end exclusive or absent. Throws Fault 422 for impossible days. */
export function dayRange(
  { date_from: first, date_to: last, timezone = "UTC" }: DayQuery,
): { from?: Instant; to?: Instant } {
  return {
    ...(first === undefined ? {} : { from: instantOf("date_from", first, timezone) }),
    ...(last === undefined || isEndless(last)
      ? {}
      : { to: instantOf("date_to", last, timezone) }),
  };
}

const YEAR_AS_LONG = "9997";
/** Clients often send the last possible day for no end. The next one has a five-digit year. */
const isEndless = (text: string): boolean =>
  text.startsWith("9999-") && isDay(text.slice(0, 10).replace("9999", YEAR_AS_LONG));

/** A whole day ends where the next begins. */
function instantOf(field: keyof DayQuery, text: string, timezone: string): Instant {
  const [day = "", time] = text.split("T");
  if (!isDay(day)) throw fieldFault(field, `The ${field.replace("_", " ")} is not a valid date.`);
  if (time !== undefined) return clockInstant(day, time, timezone);
  return dayStart(field === "date_to" ? dayAfter(day) : day, timezone);
}

/** With more numbered links than this, the answer would be mostly links. */
const NUMBERED_LINKS_MAX = 100;

interface PageOf<Item> {
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
