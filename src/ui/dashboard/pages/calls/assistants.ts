// The account's assistants, for choosing one.
import type { Assistant } from "../../data/lists.ts";
import type { Option } from "../../kit/controls.tsx";

export const assistantOptions = (assistants: readonly Assistant[]): Option[] =>
  assistants.map(({ id, name }) => ({ value: String(id), label: name }));
