// The filters and columns of a list, kept in the page's address, so that a reload, a bookmark and a
// saved view restore them; and as the list was left, for people who come back to it.
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

/** What the list that is shown wrote into the address; it does not apply to the next list. */
let own = "";

/** `none`: the fields of a list without filters. */
export function useAddressed<F extends Fields>(list: string, none: F): [F, (fields: F) => void] {
  const [fields, setFields] = useState<F>(() => {
    const given = new URLSearchParams(location.search).toString();
    return given !== "" && given !== own
      ? fieldsFrom(none, given)
      : left.get(list) as F | undefined ?? none;
  });
  const written = useRef("");
  // Before paint: people who go on at once still find the list as they left it.
  useLayoutEffect(() => {
    left.set(list, fields);
    own = written.current = addressOf(differing(fields, none));
    write(own);
  }, [fields]);
  useLayoutEffect(() => () => {
    // The next list may already have written its own filters into the address.
    if (new URLSearchParams(location.search).toString() === written.current) write("");
  }, []);
  return [fields, setFields];
}

/** When somebody else signs in. */
export const forgetAddresses = (): void => left.clear();

/** Opens a list with these filters. */
export function openNarrowed(path: string, fields: Fields): void {
  own = "";
  write(addressOf(fields));
  location.hash = path;
}
