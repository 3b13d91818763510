// Unsent replies by conversation, so that they are still there when people come back from another
// one. Nothing is kept for conversations in which nothing was written.
import type { Pending } from "#ui/dashboard/data/new-key.ts";

export interface Attached {
  id: string;
  name: string;
}

export interface Unsent {
  text: string;
  files: readonly Attached[];
  /** One message has one key until it is sent, however often that is tried. */
  pending: Pending | null;
}

export type UnsentTexts = Map<string, Unsent>;

const NOTHING: Unsent = { text: "", files: [], pending: null };

export const isEmpty = ({ text, files }: Unsent): boolean => text.trim() === "" && files.length === 0;

export const unsentOf = (all: UnsentTexts, uuid: string): Unsent => all.get(uuid) ?? NOTHING;

export function keepUnsent(all: UnsentTexts, uuid: string, unsent: Unsent): void {
  const { text, files, pending } = unsent;
  if (text === "" && files.length === 0 && pending === null) all.delete(uuid);
  else all.set(uuid, unsent);
}
