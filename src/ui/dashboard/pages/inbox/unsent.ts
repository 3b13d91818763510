// What was typed to visitors and not sent, by conversation, so that it is there when somebody comes
// back from another one. Nothing is kept of conversations that were only looked at.

export interface Unsent {
  text: string;
  /** One message has one key until it is sent, however often that is tried. */
  pending: { key: string; text: string } | null;
}

export interface UnsentTexts {
  of(uuid: string): Unsent;
  set(uuid: string, unsent: Unsent): void;
  /** Conversations there is something of. */
  count(): number;
}

const NOTHING: Unsent = { text: "", pending: null };

export function createUnsentTexts(): UnsentTexts {
  const kept = new Map<string, Unsent>();
  return {
    of: (uuid) => kept.get(uuid) ?? NOTHING,
    set: (uuid, unsent) => {
      if (unsent.text === "" && unsent.pending === null) kept.delete(uuid);
      else kept.set(uuid, unsent);
    },
    count: () => kept.size,
  };
}
