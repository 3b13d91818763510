// What a list is narrowed to and shows, kept in the page's address, so that a reload, a bookmark
// and a saved view find it again; and as it was left, for whoever comes back.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

type Fields = Record<string, string>;

/** As each list was when it was left. */
const left = new Map<string, Fields>();

export const addressOf = (fields: Fields): string =>
  new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== "")).toString();

export function fieldsFrom<F extends Fields>(none: F, text: string): F {
  const given = new URLSearchParams(text);
  const known = Object.keys(none).map((name) => [name, given.get(name) ?? none[name] ?? ""]);
  return Object.fromEntries(known) as F;
}

function write(search: string): void {
  const { pathname, hash } = location;
  history.replaceState(history.state, "", `${pathname}${search && `?${search}`}${hash}`);
}

const differing = (fields: Fields, none: Fields): Fields => Object.fromEntries(
  Object.entries(fields).filter(([name, value]) => value !== none[name]));

/** What the list that is shown wrote into the address, which says nothing to the next one. */
let own = "";

/** `none`: what a list shows that nobody has narrowed. */
export function useAddressed<F extends Fields>(list: string, none: F): [F, (fields: F) => void] {
  const [fields, setFields] = useState<F>(() => {
    const given = new URLSearchParams(location.search).toString();
    return given !== "" && given !== own
      ? fieldsFrom(none, given)
      : left.get(list) as F | undefined ?? none;
  });
  const written = useRef("");
  // Before the page is painted: whoever goes on at once finds the list as it was left, too.
  useLayoutEffect(() => {
    left.set(list, fields);
    own = written.current = addressOf(differing(fields, none));
    write(own);
  }, [fields]);
  useLayoutEffect(() => () => {
    // Whoever goes to another list from here may have narrowed that one already.
    if (new URLSearchParams(location.search).toString() === written.current) write("");
  }, []);
  return [fields, setFields];
}

/** When somebody else signs in. */
export const forgetAddresses = (): void => left.clear();

/** Shows a list narrowed to this. */
export function openNarrowed(path: string, fields: Fields): void {
  own = "";
  write(addressOf(fields));
  location.hash = path;
}
