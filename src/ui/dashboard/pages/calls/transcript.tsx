// What was said on a call, entry by entry. While it is live the newest is kept in view; beside a
// recording the entry being heard is, and each entry leads to its place in the sound.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { duration } from "#ui/dashboard/kit/format.ts";
import { useEnd } from "#ui/dashboard/kit/use-end.ts";
import { speakerOf, type Entry } from "./call-state.ts";
import { FunctionCalls } from "./facts.tsx";

interface TranscriptProps {
  entries: readonly Entry[];
  /** What is being said and in no entry yet. */
  saying?: { sender: string; text: string } | null;
  /** Stays at the end, unless somebody scrolled away from it. */
  followsEnd?: boolean;
  /** The number of the entry being heard. */
  current?: number | null;
  /** Brings the current entry into view. */
  followsCurrent?: boolean;
  onSeek?: (entry: Entry) => void;
  empty: string;
}

export function Transcript(props: TranscriptProps) {
  const { entries, saying = null, followsEnd = false, current = null, onSeek, empty } = props;
  const { list } = useEnd<HTMLOListElement>([entries, saying], followsEnd);
  useEffect(() => {
    if (props.followsCurrent && current !== null) scrollTo(list.ref.current, current);
  }, [current, props.followsCurrent]);
  if (entries.length === 0 && !saying) return <p class="soft">{empty}</p>;
  return (
    <ol {...list} class="calls-transcript" tabIndex={0} aria-label="Transcript">
      {entries.map((entry) => (
        <EntryRow
          key={entry.number} entry={entry} isCurrent={entry.number === current} onSeek={onSeek}
        />
      ))}
      {saying && (
        <Row sender={saying.sender} at={<span class="calls-at">now</span>} name="saying">
          <p dir="auto">{saying.text}</p>
        </Row>
      )}
    </ol>
  );
}

/** Within the list only: the page itself stays where it is. */
function scrollTo(list: HTMLElement | null, number: number): void {
  const row = list?.querySelector<HTMLElement>(`[data-number="${number}"]`);
  if (!list || !row) return;
  const top = row.offsetTop - list.offsetTop - (list.clientHeight - row.offsetHeight) / 2;
  list.scrollTo({ top, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function EntryRow({ entry, isCurrent, onSeek }: {
  entry: Entry; isCurrent: boolean; onSeek: ((entry: Entry) => void) | undefined;
}) {
  const at = duration(entry.start_ms / 1000);
  const seek = onSeek && (() => onSeek(entry));
  return (
    <Row
      sender={entry.sender} author={entry.author} number={entry.number} isCurrent={isCurrent}
      onClick={seek}
      at={seek
        ? <button type="button" class="calls-at" aria-label={`Play from ${at}`} onClick={seek}>{at}</button>
        : <span class="calls-at">{at}</span>}
    >
      {entry.text !== "" && <p dir="auto">{entry.text}</p>}
      {entry.text === "" && entry.sender === "operator" && (
        <small>Spoke, but nothing here understood the words.</small>
      )}
      {entry.interrupted && entry.text !== "" && <small>Interrupted: only what was heard is shown here.</small>}
      <FunctionCalls calls={entry.function_calls} />
    </Row>
  );
}

function Row({ sender, author, at, number, isCurrent = false, name = "", onClick, children }: {
  sender: string; author?: { name: string } | undefined; at: ComponentChildren; number?: number;
  isCurrent?: boolean; name?: string;
  onClick?: (() => void) | undefined; children: ComponentChildren;
}) {
  // Clicking the words does the same as the time's button; selecting them does not count.
  const click = (event: MouseEvent): void => {
    const isElsewhere = event.target instanceof Element && event.target.closest("button, details");
    if (!isElsewhere && getSelection()?.isCollapsed !== false) onClick?.();
  };
  return (
    <li
      class={`calls-entry ${sender} ${name} ${isCurrent ? "current" : ""} ${onClick ? "seeks" : ""}`}
      data-number={number} aria-current={isCurrent ? "true" : undefined}
      onClick={onClick && click}
    >
      {at}
      <div>
        <strong>{speakerOf(sender, author)}</strong>
        {children}
      </div>
    </li>
  );
}
