// One section of the assistant's editor, as each file in sections/ describes itself.
import type { FunctionComponent } from "preact";
import type { Field } from "./draft.ts";
export interface SectionSpec {
  id: string;
  title: string;
  fields: readonly Field[];
  /** What is set, in one line. */
  Summary: FunctionComponent;
  Body: FunctionComponent;
}
