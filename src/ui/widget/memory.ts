// What the browser keeps of the talk. Each tab has its own state in sessionStorage: whether the
// panel is open, and what is being sent. The conversation itself is in localStorage for as many
// days as the assistant's settings say, so that all tabs and later visits show the same one. Used
// by controller.ts. If pages may store nothing, the talk lives as long as the page.
import { EMPTY, openTurn, replaced, type Talk } from "./store.ts";

/** What tabs share, the position in the stream included, from which each goes on by itself. */
type Shared = Pick<Talk,
  "settings" | "conversation" | "after" | "items" | "hasEnded" | "isScored" | "variables" | "desk"
  | "person" | "away" | "hasCallback">;

interface Kept extends Shared {
  /** In milliseconds since the epoch. */
  until: number;
}

interface Memory {
  load(): Talk;
  /** `isShared` false: for this tab alone. */
  save(talk: Talk, isShared: boolean): void;
  /** The talk moved to a new conversation that another tab has begun; null: there is none. */
  adopted(talk: Talk): Talk | null;
  /** Calls back when another tab has written. */
  onWritten(heard: () => void): void;
}

const DAY_MS = 86_400_000;
/** The default for when the server does not say. */
const DAYS = 7;

/** Null: `work` failed on storage, which may be forbidden, full or written by others. */
function tried<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}

/** Drops what older widgets stored: settings without texts, and notes as text without a key. */
const readable = (talk: Talk): Talk => ({
  ...talk,
  settings: talk.settings?.texts ? talk.settings : null,
  items: talk.items.filter((item) => item.role !== "note" || item.key),
});

const daysOf = ({ settings }: Talk): number => settings?.widget_settings.remember_days ?? DAYS;

/** Others may use the browser after a visitor has signed out: other visitors' talks are deleted. */
function forgetOthers(place: string, name: string): void {
  for (const storage of [localStorage, sessionStorage]) {
    for (const key of Object.keys(storage)) {
      if (key.startsWith(`${place} `) && key !== name) storage.removeItem(key);
    }
  }
}

/** `visitor`: who has signed in at the page; null: nobody. */
export function createMemory(
  place: string, visitor: string | null, signal: AbortSignal,
): Memory {
  const name = visitor === null ? place : `${place} ${visitor}`;
  tried(() => forgetOthers(place, name));
  let written: Talk | null = null;
  /** The conversation of all tabs, as far as this one knows. */
  let known: string | null = null;
  const shared = (): Shared | null => {
    const kept = tried(() => JSON.parse(localStorage.getItem(name) ?? "null") as Kept | null);
    if (!kept?.conversation || !(kept.until > Date.now())) return null;
    const { until: _, ...rest } = kept;
    return rest;
  };
  const forget = (): void => {
    written = null;
    known = null;
    tried(() => localStorage.removeItem(name));
  };
  /** Nothing has changed, or a reply is being written and is stored once it is complete. */
  const isWritten = (talk: Talk): boolean => openTurn(talk) !== null || (written !== null
    && written.items === talk.items && written.conversation === talk.conversation
    && written.settings === talk.settings && written.desk === talk.desk
    && written.hasEnded === talk.hasEnded && written.isScored === talk.isScored
    && written.hasCallback === talk.hasCallback);
  const adopted = (talk: Talk): Talk | null => {
    const other = shared();
    known = other?.conversation ?? known;
    return other && other.conversation !== talk.conversation
      ? { ...replaced(talk), ...other }
      : null;
  };
  return {
    adopted,
    load: () => {
      const own = tried(() => JSON.parse(sessionStorage.getItem(name) ?? "null") as Talk | null);
      const talk = { ...EMPTY, ...own };
      // A message that is being sent stays in its conversation.
      const read = (): Talk =>
        readable((talk.pending && talk.conversation ? null : adopted(talk)) ?? talk);
      return tried(read) ?? EMPTY;
    },
    save: (talk, isShared) => {
      tried(() => sessionStorage.setItem(name, JSON.stringify(talk)));
      if (daysOf(talk) === 0) return forget();
      if (!isShared || isWritten(talk)) return;
      if (talk.conversation === null) {
        // The visitor has begun anew, or the server no longer has the conversation.
        if (known !== null) forget();
        return;
      }
      written = talk;
      known = talk.conversation;
      const { settings, conversation, after, hasEnded, isScored, variables, desk, person } = talk;
      const { away, hasCallback } = talk;
      const items = talk.items.filter((item) => item.role !== "user" || item.isStored);
      const kept: Kept = {
        settings, conversation, after, hasEnded, isScored, variables, desk, person, items, away,
        hasCallback,
        until: Date.now() + daysOf(talk) * DAY_MS,
      };
      tried(() => localStorage.setItem(name, JSON.stringify(kept)));
    },
    onWritten: (heard) => addEventListener("storage", ({ key }) => {
      if (key === name) heard();
    }, { signal }),
  };
}
