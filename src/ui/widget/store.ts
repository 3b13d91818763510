// What the widget knows, and how each frame of the stream changes it. State and position are one
// value, so that a page that is loaded again goes on exactly where the text it shows ends
// (memory.ts keeps it).
import type {
  Attachment, Away, Desk, History, Message, Pending, Rating, Settings,
} from "./api.ts";
import type { Frame } from "./stream.ts";
import type { TextKey } from "./texts.ts";

export type Item =
  | {
      role: "user";
      text: string;
      isStored: boolean;
      files?: Attachment[];
      /** Abandoned for another message before it was known to have arrived. */
      isLost?: boolean;
    }
  | {
      role: "assistant";
      text: string;
      /** The person who wrote it. */
      author?: string;
      files?: Attachment[];
      /** The turn while its reply is being written; null once it is complete. */
      turn: number | null;
      wasStopped: boolean;
      /** Tools at work, by call. */
      tools: Record<string, string>;
      /** The turn that wrote it, under which it is rated. */
      reply?: number;
      rating?: Rating | null;
    }
  /** Said in a call: no part of the conversation's own messages. */
  | { role: "spoken"; by: Speaker; text: string; isFinal: boolean }
  /** `name`: the person who joins or leaves. */
  | { role: "note"; key: TextKey; name?: string };

export type Speaker = "user" | "assistant" | "colleague";

export interface Talk extends Desk {
  settings: Settings | null;
  conversation: string | null;
  /** The position in the stream that the items are at. */
  after: string;
  items: Item[];
  /** Sent and not yet answered; every attempt has the same key, so it is charged once. */
  pending: Pending | null;
  /** Files for the next message. */
  attached: Attachment[];
  /** The place in line for a person; null: not in line, or not known. */
  place: number | null;
  /** The visitor waits outside office hours; null: people are there, or it is not known. */
  away: Away | null;
  /** The visitor has asked for a callback. */
  hasCallback: boolean;
  /** The picture of the person who answers. */
  face: string | null;
  /** Why `pending` is not being answered; empty while it is. */
  problem: TextKey | "";
  /** The server was not reached: the problem may go away once the network is back. */
  isUnreached: boolean;
  hasEnded: boolean;
  /** A new chat begins once the visitor has scored this one or skipped that. */
  isClosing: boolean;
  /** The visitor has scored the chat or skipped that. */
  isScored: boolean;
  /** The chat was scored, not skipped, while this tab showed it. */
  isThanked: boolean;
  hasSound: boolean;
  isOpen: boolean;
  /** Messages that came while the panel was closed. */
  unread: number;
  variables: Record<string, string> | null;
  draft: string;
}

export const EMPTY: Talk = {
  settings: null, conversation: null, after: "0", items: [], pending: null, problem: "",
  isUnreached: false, hasEnded: false, isOpen: false, variables: null, draft: "", desk: "assistant",
  attached: [], place: null, face: null, away: null, hasCallback: false,
  person: null, isClosing: false, isScored: false, isThanked: false, hasSound: false, unread: 0,
};

/** A new conversation; the state of the panel is kept. */
export const renewed = (talk: Talk): Talk => ({
  ...EMPTY, settings: talk.settings, isOpen: talk.isOpen, variables: talk.variables,
  draft: talk.draft, hasSound: talk.hasSound,
});

/** The same for a conversation that is gone: what was not answered is back in the box. */
export const replaced = (talk: Talk): Talk =>
  ({ ...renewed(talk), draft: talk.draft || (talk.pending?.text ?? "") });

export const isAnswering = ({ pending, problem }: Talk): boolean =>
  pending !== null && problem === "";

/** The items once another message takes the pending one's place: what is not stored is lost. */
export const abandoned = ({ items }: Talk): Item[] => items.map((item) =>
  item.role === "user" && !item.isStored ? { ...item, isLost: true } : item);

/** A copy with another item at `index`; arrays have no `with` in browsers of 2022. */
const placed = (items: Item[], index: number, item: Item): Item[] =>
  items.map((one, at) => at === index ? item : one);

/** Whether the pending message has reached the server as far as this page knows. */
export const isStored = ({ items }: Talk): boolean => {
  const last = items.findLast(({ role }) => role === "user");
  return last?.role === "user" && last.isStored;
};

type Reply = Extract<Item, { role: "assistant" }>;

const isOpenReply = (item: Item, turn?: number | null): item is Reply =>
  item.role === "assistant" && item.turn !== null && (turn === undefined || item.turn === turn);

/** The turn whose reply is being written, once it has begun. */
export const openTurn = ({ items }: Talk): number | null =>
  items.find((item) => isOpenReply(item))?.turn ?? null;

const isUnsent = (item: Item): item is Extract<Item, { role: "user" }> =>
  item.role === "user" && !item.isStored && !item.isLost;

/** What the log brings goes before what is not stored yet, which is answered later. */
function beforeUnsent(items: Item[], item: Item): Item[] {
  const unsent = items.findIndex(isUnsent);
  return unsent < 0 ? [...items, item] : [...items.slice(0, unsent), item, ...items.slice(unsent)];
}

/** Changes the turn's reply that is being written, and begins one if there is none. */
function onReply(items: Item[], turn: number, change: (reply: Reply) => Reply): Item[] {
  const index = items.findIndex((item) => isOpenReply(item, turn));
  const fresh: Reply = { role: "assistant", text: "", turn, wasStopped: false, tools: {} };
  const found = items[index];
  if (found?.role !== "assistant") {
    return beforeUnsent(items.filter((item) => !isOpenReply(item)), change(fresh));
  }
  return placed(items, index, change(found));
}

/** Turns come one after the other: until the pending message is stored, others are answered. */
const isOthers = (talk: Talk): boolean => talk.pending !== null && !isStored(talk);

function addMessage(talk: Talk, turn: number | null, message: Message): Talk {
  const { items } = talk;
  if (message.role === "user") {
    const index = items.findLastIndex((item) =>
      item.role === "user" && !item.isStored && item.text === message.content);
    const { content: text, attachments: files } = message;
    const item: Item = { role: "user", text, isStored: true, ...(files ? { files } : {}) };
    const problem = talk.isUnreached ? "" : talk.problem;
    // A message reopens a conversation that had ended.
    return index < 0
      ? { ...talk, items: beforeUnsent(items, item), hasEnded: false }
      : {
          ...talk, items: placed(items, index, item), problem, isUnreached: false, hasEnded: false,
        };
  }
  const reply: Reply = {
    role: "assistant", text: message.content, turn: null,
    wasStopped: message.stopped === true, tools: {},
    ...(message.author ? { author: message.author.name } : {}),
    ...(message.attachments ? { files: message.attachments } : {}),
    ...(turn === null ? {} : { reply: turn }),
  };
  if (turn === null) return { ...talk, items: beforeUnsent(items, reply) };
  const next = { ...talk, items: onReply(items, turn, () => reply) };
  return isOthers(talk) ? next : { ...next, pending: null, problem: "", isUnreached: false };
}

/** Notes in the log, at that point, that a person joined or left. */
function passOn(talk: Talk, { desk = "assistant", holder, away = null }: Frame): Talk {
  const person = holder?.name ?? null;
  const name = person ?? talk.person;
  const items: Item[] = name === null ? talk.items
    : [...talk.items, { role: "note", key: person ? "joined" : "left", name }];
  return { ...talk, items, desk, person, away, place: null, face: null };
}

function fail(talk: Talk, { reason }: Frame): Talk {
  const items = talk.items.filter((item) => !isOpenReply(item));
  if (isOthers(talk)) return { ...talk, items };
  if (reason === "stopped") return { ...talk, items, pending: null, problem: "" };
  // Why it failed concerns the account, not the person who asked.
  const problem = talk.pending === null ? "" : "failed";
  return { ...talk, items, problem, isUnreached: false };
}

export const rated = (talk: Talk, turn: number, rating: Rating | null): Talk => ({
  ...talk,
  items: talk.items.map((item) =>
    item.role === "assistant" && item.reply === turn ? { ...item, rating } : item),
});

/** The chat is over, had an answer of somebody's, and has not been scored. */
export const asksOpinion = ({ items, hasEnded, isClosing, isScored, settings }: Talk): boolean =>
  (hasEnded || isClosing) && !isScored && settings?.widget_settings.satisfaction !== false
    && items.some((item) =>
      item.role === "assistant" && (item.reply !== undefined || item.author !== undefined));

function changed(talk: Talk, frame: Frame): Talk {
  const { items } = talk;
  const turn = frame.turn_id ?? null;
  if (frame.type === "message_added" && frame.message) return addMessage(talk, turn, frame.message);
  if (frame.type === "reply_failed") return fail(talk, frame);
  if (frame.type === "desk_changed") return passOn(talk, frame);
  if (frame.type === "conversation_ended") return { ...talk, hasEnded: true };
  if (frame.type === "conversation_rated") return { ...talk, isScored: true, isThanked: true };
  if (turn === null) return talk;
  if (frame.type === "reply_rated") return rated(talk, turn, frame.rating ?? null);
  switch (frame.type) {
    case "reply_start":
      return {
        ...talk, ...isOthers(talk) ? {} : { problem: "", isUnreached: false },
        items: onReply(items, turn, (reply) => ({ ...reply, text: "" })),
      };
    case "reply_delta":
      return {
        ...talk,
        items: onReply(items, turn, (reply) => ({
          ...reply, text: reply.text + (frame.text ?? ""),
        })),
      };
    case "function_call_start":
      return {
        ...talk,
        items: onReply(items, turn, (reply) => ({
          ...reply, tools: { ...reply.tools, [frame.call_id ?? ""]: frame.name ?? "" },
        })),
      };
    case "function_call_end":
      return {
        ...talk,
        items: onReply(items, turn, (reply) => {
          const { [frame.call_id ?? ""]: _, ...tools } = reply.tools;
          return { ...reply, tools };
        }),
      };
    default:
      return talk;
  }
}

export function apply(talk: Talk, frame: Frame): Talk {
  const next = changed(talk, frame);
  return frame.id === undefined || frame.id === "" ? next : { ...next, after: frame.id };
}

/** The talk as the server's history has it: after a gap the frames in between are gone. */
export function fromHistory(
  talk: Talk, { messages, turns, position, hasEnded, desk }: History,
): Talk {
  const newest = messages.findLast(({ role }) => role === "user");
  const unsent = talk.items.filter((item) => isUnsent(item) && item.text !== newest?.content);
  const stored = messages.map(({ role, content, author, stopped, attachments, rating }, at): Item =>
    role === "user"
      ? { role, text: content, isStored: true, ...(attachments ? { files: attachments } : {}) }
      : {
          role: "assistant", text: content, turn: null, wasStopped: stopped === true, tools: {},
          ...(author ? { author: author.name } : {}),
          ...(attachments ? { files: attachments } : {}),
          ...(turns[at] ? { reply: turns[at], rating: rating ?? null } : {}),
        });
  return {
    ...talk,
    ...desk,
    after: position,
    hasEnded,
    away: desk.desk === "waiting" ? talk.settings?.away ?? null : null,
    items: [...stored, ...unsent],
  };
}

/** What is being said in a call; a line may come many times until it is final. */
export function heard({ items, ...talk }: Talk, by: Speaker, text: string, isFinal: boolean): Talk {
  const line: Item = { role: "spoken", by, text, isFinal };
  const index = items.findLastIndex((item) =>
    item.role === "spoken" && item.by === by && !item.isFinal);
  return { ...talk, items: index < 0 ? [...items, line] : placed(items, index, line) };
}

/** The call is over: what was being said stays as it is. */
export function hungUp(talk: Talk): Talk {
  if (talk.items.at(-1)?.role !== "spoken") return talk;
  const items = talk.items.map((item): Item =>
    item.role === "spoken" ? { ...item, isFinal: true } : item);
  return { ...talk, items: [...items, { role: "note", key: "call_ended" }] };
}
