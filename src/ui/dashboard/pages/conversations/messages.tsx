// The messages of a conversation. Stays at the newest unless somebody scrolled away; what
// visitors wrote is shown as it was written, replies as the widget shows them, never as HTML.
import { useMemo, useRef } from "preact/hooks";
import { useSettled } from "#ui/dashboard/data/use-settled.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { count, when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Markdown } from "#ui/dashboard/kit/markdown.tsx";
import { Icon } from "#ui/dashboard/kit/icons.tsx";
import { useEnd } from "#ui/dashboard/kit/use-end.ts";
import { FunctionCalls } from "#ui/dashboard/pages/calls/facts.tsx";
import type { Usage } from "./answers.tsx";
import type { Item } from "./talk.ts";

export function Messages({ items, usages, uuid }: {
  /** The conversation's uuid, under which its files are loaded. */
  uuid: string;
  items: readonly Item[];
  /** The tokens of each, as far as they are known. */
  usages: readonly (Usage | null)[];
}) {
  const { isAtEnd, toEnd, list } = useEnd<HTMLOListElement>([items]);
  if (items.length === 0) return <p class="soft">Nothing has been written yet.</p>;
  return (
    <div class="conversations-messages">
      <ol {...list} tabIndex={0} aria-label="Messages">
        {items.map((item, index) => (
          <Message key={index} item={item} usage={usages[index] ?? null} uuid={uuid} />
        ))}
      </ol>
      {!isAtEnd && <Button onClick={toEnd}>Jump to the newest</Button>}
      <Newest items={items} />
    </div>
  );
}

const nameOf = ({ role, author }: Item): string =>
  role === "user" ? "Customer" : author ?? "Assistant";

/**
 * Read out by screen readers once it is complete: new messages only, and none that people of the
 * desk write.
 */
function Newest({ items }: { items: readonly Item[] }) {
  const at = useSettled(
    items.findLastIndex(({ role, turn }) => turn === null && role !== "operator"));
  const found = useRef(at);
  const item = at > found.current ? items[at] : undefined;
  return (
    <p class="hidden-visually" role="status">
      {item && (item.isFailure ? <>No reply: {item.text}</> : `${nameOf(item)}: ${item.text}`)}
    </p>
  );
}

interface MessageProps {
  item: Item;
  usage: Usage | null;
  uuid: string;
}

/** Rendered again only when it changes, not with every new message. */
function Message({ item, usage, uuid }: MessageProps) {
  return useMemo(
    () => <Drawn item={item} usage={usage} uuid={uuid} />,
    [item, usage?.input_tokens, usage?.output_tokens, uuid]);
}

function Drawn({ item, usage, uuid }: MessageProps) {
  const { role, text, turn, at, working, functionCalls } = item;
  const { isFailure, wasStopped, wasCut, attachments, rating } = item;
  const names = [...new Set(Object.values(working))];
  if (isFailure) return <li class="conversations-failure">No reply: {text}</li>;
  return (
    <li class={`conversations-message ${role}`}>
      <span class="conversations-head">
        <strong>{nameOf(item)}</strong>
        {at && <time title={whenExactly(at)}>{when(at)}</time>}
        {turn !== null && <span class="badge busy">Writing</span>}
        {rating && (
          <span class={`badge ${rating === "up" ? "good" : "warn"}`}>
            {rating === "up" ? "Rated helpful" : "Rated not helpful"}
          </span>
        )}
        {wasStopped && <span class="badge warn">Stopped</span>}
        {wasCut && <span class="badge warn">Cut off at the maximum length of a reply</span>}
      </span>
      {text !== "" && (role === "user"
        ? <p dir="auto">{text}</p>
        : <Markdown text={text} isWhole={turn === null} />)}
      {attachments.map((file) => <Attached key={file.id} file={file} uuid={uuid} />)}
      {names.map((name) => (
        <small key={name} class="conversations-working"><Icon name="tools" />Using {name}…</small>
      ))}
      <FunctionCalls calls={functionCalls} />
      {usage && (
        <small class="conversations-usage">
          {count(usage.input_tokens)} tokens read, {count(usage.output_tokens)} written
        </small>
      )}
    </li>
  );
}

function Attached({ file: { id, name, type, bytes }, uuid }: {
  file: Item["attachments"][number]; uuid: string;
}) {
  const url = `/api/conversations/${uuid}/attachments/${id}`;
  return (
    <a class="conversations-file" href={url} target="_blank" rel="noopener noreferrer">
      {type.startsWith("image/") && <img src={url} alt="" loading="lazy" />}
      <span>{name} <small>{count(Math.ceil(bytes / 1024))} KB</small></span>
    </a>
  );
}
