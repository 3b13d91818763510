// The account's assistants, for choosing one.
import type { Assistant } from "#ui/dashboard/data/lists.ts";
import type { Option } from "#ui/dashboard/kit/controls.tsx";

export const assistantOptions = (assistants: readonly Assistant[]): Option[] =>
  assistants.map(({ id, name }) => ({ value: String(id), label: name }));
