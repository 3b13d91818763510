// A conversation as its page holds it, and how each frame of its stream changes it. The log is read
// from its beginning; where that is no longer kept the history is loaded, and the log read from the
// position where the history ends.
import type { Frame, paths } from "#client/client.ts";

export type History =
  paths["/conversations/{uuid}"]["get"]["responses"][200]["content"]["application/json"];

export interface Item {
  role: "user" | "assistant" | "operator";
  /** The person who wrote it; only set for an operator's message. */
  author?: string;
  text: string;
  /** The turn while its reply is being written; null once it is stored. */
  turn: number | null;
  wasStopped: boolean;
  /** It ended at its length limit and not by itself. */
  wasCut: boolean;
  functionCalls: readonly unknown[];
  /** Functions at work, by call. */
  working: Record<string, string>;
  at: string | null;
  attachments: readonly { id: string; name: string; type: string; bytes: number }[];
  /** The turn of the reply, by which visitors rate it. */
  reply?: number;
  rating?: "up" | "down" | null;
  /** Set on a failed reply, whose text is the server's reason. */
  isFailure?: true;
}

export interface Talk {
  items: readonly Item[];
  aiEnabled: boolean | null;
  hasEnded: boolean;
  assistantUuid: string | null;
  type: string | null;
}

export const EMPTY: Talk = {
  items: [], aiEnabled: null, hasEnded: false, assistantUuid: null, type: null,
};

interface MessageBody {
  role: "user" | "assistant" | "operator";
  content: string;
  author?: { name: string };
  function_calls?: unknown[];
  stopped?: boolean;
  truncated?: boolean;
  created_at?: string;
  attachments?: Item["attachments"];
  rating?: "up" | "down";
}

const itemOf = (message: MessageBody): Item => ({
  role: message.role, text: message.content, turn: null, wasStopped: message.stopped === true,
  wasCut: message.truncated === true,
  functionCalls: message.function_calls ?? [], working: {}, at: message.created_at ?? null,
  attachments: message.attachments ?? [],
  ...(message.rating ? { rating: message.rating } : {}),
  ...(message.author ? { author: message.author.name } : {}),
});

const writing = (turn: number): Item => ({
  role: "assistant", text: "", turn, wasStopped: false, wasCut: false, functionCalls: [],
  working: {}, at: null, attachments: [],
});

/** False: it is still being written, or there is none. */
export const isStored = ({ turn, isFailure }: Item): boolean => turn === null && !isFailure;

/** Many at a time: the list is copied once. */
export function applyFrames(talk: Talk, frames: readonly Frame[]): Talk {
  const items = [...talk.items];
  const next: Talk = { ...talk, items };
  for (const frame of frames) {
    if (typeof frame.turn_id === "number") applyToReply(items, frame, frame.turn_id);
    else if (frame.type === "message_added") items.push(itemOf(frame.message as MessageBody));
    if (frame.type === "ai_toggled") next.aiEnabled = frame.ai_enabled === true;
    // An ended conversation continues with the next message, or when a person is asked for or takes
    // it.
    const goesOn = frame.type === "message_added"
      || (frame.type === "desk_changed" && frame.desk !== "assistant");
    if (goesOn) next.hasEnded = false;
    if (frame.type === "conversation_ended") next.hasEnded = true;
    if (frame.type === "conversation_created") {
      next.assistantUuid = frame.assistant_id as string;
      next.type = frame.conversation_type as string;
    }
  }
  return next;
}

/** Changes `items` in place. */
function applyToReply(items: Item[], frame: Frame, turn: number): void {
  const message = frame.message as MessageBody | undefined;
  if (message?.role === "user") return void items.push(itemOf(message));
  if (frame.type === "reply_rated") {
    const rated = items.findLastIndex((item) => item.reply === turn);
    const item = items[rated];
    if (item) items[rated] = { ...item, rating: (frame.rating as Item["rating"]) ?? null };
    return;
  }
  const index = items.findLastIndex((item) => item.turn === turn);
  const put = (item: Item): void => {
    if (index < 0) items.push(item);
    else items[index] = item;
  };
  const reply = items[index] ?? writing(turn);
  switch (frame.type) {
    case "reply_start":
      return put({ ...writing(turn), working: reply.working });
    case "reply_delta":
      return put({ ...reply, text: reply.text + String(frame.text ?? "") });
    case "function_call_start":
      return put({
        ...reply, working: { ...reply.working, [String(frame.call_id)]: String(frame.name) },
      });
    case "function_call_end": {
      const { [String(frame.call_id)]: _, ...working } = reply.working;
      return put({ ...reply, working });
    }
    case "message_added":
      return message && put({ ...itemOf(message), reply: turn });
    case "reply_failed":
      if (index >= 0) items.splice(index, 1);
      if (frame.reason !== "stopped") {
        items.push({ ...writing(turn), turn: null, text: String(frame.error), isFailure: true });
      }
      return;
    default:
  }
}

/** After a gap the frames in between are gone: the history says what they led to. */
export const fromHistory = (talk: Talk, { history, turn_ids: turns, ended }: History): Talk => ({
  ...talk,
  // As the list of conversations has it, which is loaded again after a gap, too.
  aiEnabled: null,
  hasEnded: ended,
  items: history.map((message, at) => {
    const turn = turns[at];
    return typeof turn === "number" ? { ...itemOf(message), reply: turn } : itemOf(message);
  }),
});
