// The account's assistants, for choosing one: by name, as there may be hundreds.
import type { Assistant } from "#ui/dashboard/data/lists.ts";
import type { Option } from "#ui/dashboard/kit/controls.tsx";
import { LOCALE } from "#ui/dashboard/kit/texts.ts";

const NAMES = new Intl.Collator(LOCALE, { numeric: true });

export const assistantOptions = (assistants: readonly Assistant[]): Option[] =>
  assistants.map(({ id, name }) => ({ value: String(id), label: name }))
    .toSorted((one, other) => NAMES.compare(one.label, other.label));
