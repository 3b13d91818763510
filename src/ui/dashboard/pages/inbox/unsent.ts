// What was written to visitors and not sent, by conversation, so that it is there when somebody
// comes back from another one. Nothing is kept of conversations that were only looked at.

export interface Attached {
  id: string;
  name: string;
}

export interface Unsent {
  text: string;
  files: readonly Attached[];
  /** One message has one key until it is sent, however often that is tried. */
  pending: { key: string; message: string } | null;
}

export interface UnsentTexts {
  of(uuid: string): Unsent;
  set(uuid: string, unsent: Unsent): void;
  /** Conversations there is something of. */
  count(): number;
}

const NOTHING: Unsent = { text: "", files: [], pending: null };

export const isEmpty = ({ text, files }: Unsent): boolean => text.trim() === "" && files.length === 0;

export function createUnsentTexts(): UnsentTexts {
  const kept = new Map<string, Unsent>();
  return {
    of: (uuid) => kept.get(uuid) ?? NOTHING,
    set: (uuid, unsent) => {
      const { text, files, pending } = unsent;
      if (text === "" && files.length === 0 && pending === null) kept.delete(uuid);
      else kept.set(uuid, unsent);
    },
    count: () => kept.size,
  };
}
