// What the browser keeps of the talk. Each tab keeps its own in sessionStorage: how the panel
// stands and what is being sent. The conversation itself lies in localStorage for as many days as
// the assistant's settings say, so that all tabs, and tomorrow's visit, show one. Used by
// controller.ts. Pages may be forbidden to store anything; then the talk lives as long as the page.
import { EMPTY, openTurn, renewed, type Talk } from "./store.ts";

/** What tabs have in common; positions in the log included, so that each goes on by itself. */
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
  /** As it stands when another tab has begun anew; null: there is nothing new. */
  adopted(talk: Talk): Talk | null;
  /** Calls back when another tab has written. */
  onWritten(heard: () => void): void;
}

const DAY_MS = 86_400_000;
/** Where the server says nothing of it. */
const DAYS = 7;

/** Storage that may be forbidden, full or written by somebody else. */
function tried<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}

/** Kept by the widget of before, which knew its own words and wrote notes as they were shown. */
const readable = (talk: Talk): Talk => ({
  ...talk,
  settings: talk.settings?.texts ? talk.settings : null,
  items: talk.items.filter((item) => item.role !== "note" || item.key),
});

const daysOf = ({ settings }: Talk): number => settings?.widget_settings.remember_days ?? DAYS;

/** Others may use the browser after a visitor has signed out: what they could read is forgotten. */
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
  /** Nothing of it has changed, or it will be said better when the reply is complete. */
  const isWritten = (talk: Talk): boolean => openTurn(talk) !== null || (written !== null
    && written.items === talk.items && written.conversation === talk.conversation
    && written.settings === talk.settings && written.desk === talk.desk
    && written.hasEnded === talk.hasEnded && written.isScored === talk.isScored
    && written.hasCallback === talk.hasCallback);
  const adopted = (talk: Talk): Talk | null => {
    const other = shared();
    known = other?.conversation ?? known;
    return other && other.conversation !== talk.conversation
      ? { ...renewed(talk), ...other, draft: talk.draft || (talk.pending?.text ?? "") }
      : null;
  };
  return {
    adopted,
    load: () => {
      const own = tried(() => JSON.parse(sessionStorage.getItem(name) ?? "null") as Talk | null);
      const talk = { ...EMPTY, ...own };
      // What is on its way to a conversation goes on there.
      const read = (): Talk =>
        readable((talk.pending && talk.conversation ? null : adopted(talk)) ?? talk);
      return tried(read) ?? EMPTY;
    },
    save: (talk, isShared) => {
      tried(() => sessionStorage.setItem(name, JSON.stringify(talk)));
      if (daysOf(talk) === 0) return forget();
      if (!isShared || isWritten(talk)) return;
      if (talk.conversation === null) {
        // Begun anew, or gone at the server.
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
