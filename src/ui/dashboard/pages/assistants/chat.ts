// A test conversation as it is shown, and how each frame of the server changes it. No view in here.
import type { Frame } from "#client/client.ts";
import { inTab } from "#ui/dashboard/kit/kept.ts";

export interface ToolCall {
  id: string;
  name: string;
  arguments: unknown;
  /** Undefined while the function runs. */
  result?: unknown;
}

export interface Line {
  role: "user" | "assistant";
  text: string;
  calls: ToolCall[];
  /** `cut`: it ended at its length limit and not by itself. */
  state: "writing" | "done" | "stopped" | "cut";
}

/** Kept for the tab, so that a reloaded page continues it. */
export interface Kept {
  conversation: string | null;
  /** Sent and not answered yet; the same key is never answered twice. */
  pending: { key: string; text: string } | null;
}

interface HistoryItem {
  role: "user" | "assistant" | "operator";
  content: string;
  function_calls?: { name: string; arguments: unknown; result: unknown }[];
  stopped?: boolean;
  truncated?: boolean;
}

const stateOf = ({ stopped, truncated }: HistoryItem): Line["state"] => {
  if (stopped === true) return "stopped";
  return truncated === true ? "cut" : "done";
};

function lineOf(item: HistoryItem): Line {
  const { role, content, function_calls: calls = [] } = item;
  return {
    role: role === "user" ? role : "assistant", text: content, state: stateOf(item),
    calls: calls.map((call, at) => ({ id: String(at), ...call })),
  };
}

export const linesOf = (history: HistoryItem[]): Line[] => history.map(lineOf);

export const said = (text: string): Line => ({ role: "user", text, calls: [], state: "done" });

/** Changes the reply that is being written, or begins one. */
function onReply(lines: Line[], change: (reply: Line) => Line): Line[] {
  const last = lines.at(-1);
  const fresh: Line = { role: "assistant", text: "", calls: [], state: "writing" };
  return last?.state === "writing"
    ? [...lines.slice(0, -1), change(last)]
    : [...lines, change(fresh)];
}

export const withoutUnfinished = (lines: Line[]): Line[] =>
  lines.filter(({ state }) => state !== "writing");

export function apply(lines: Line[], frame: Frame): Line[] {
  switch (frame.type) {
    case "reply_start":
      return onReply(lines, (reply) => ({ ...reply, text: "", calls: [] }));
    case "reply_delta":
      return onReply(lines, (reply) => ({ ...reply, text: reply.text + String(frame.text) }));
    case "function_call_start": {
      const { call_id: id, name, arguments: given } = frame;
      const call: ToolCall = { id: String(id), name: String(name), arguments: given };
      return onReply(lines, (reply) => ({ ...reply, calls: [...reply.calls, call] }));
    }
    case "function_call_end":
      return onReply(lines, (reply) => ({
        ...reply,
        calls: reply.calls.map((call) =>
          call.id === frame.call_id ? { ...call, result: frame.result } : call),
      }));
    case "message_added": {
      const message = frame.message as HistoryItem;
      return message.role === "assistant" ? onReply(lines, () => lineOf(message)) : lines;
    }
    case "reply_failed":
      return withoutUnfinished(lines);
    default:
      return lines;
  }
}

const nameOf = (uuid: string): string => `parley-test-chat ${uuid}`;

export function remembered(uuid: string): Kept {
  const none: Kept = { conversation: null, pending: null };
  const text = inTab.getItem(nameOf(uuid));
  return text === null ? none : { ...none, ...JSON.parse(text) as Kept };
}

export const remember = (uuid: string, kept: Kept): void =>
  inTab.setItem(nameOf(uuid), JSON.stringify(kept));
