// Choices are listed by name, as there may be hundreds of them.
import type { Option } from "./controls.tsx";
import { LOCALE } from "./texts.ts";

const NAMES = new Intl.Collator(LOCALE, { numeric: true });

export const byName = <T extends { name: string }>(rows: readonly T[]): T[] =>
  rows.toSorted((one, other) => NAMES.compare(one.name, other.name));

export const namedOptions = (rows: readonly { id: number; name: string }[]): Option[] =>
  byName(rows).map(({ id, name }) => ({ value: String(id), label: name }));
