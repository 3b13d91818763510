// What a model may do with the conversation itself: end it, or request a person. answering.ts adds
// these to the assistant's functions.
import { LIMITS } from "#core/limits.ts";
import { wholeStart } from "#core/values.ts";
import { NO_FUNCTIONS, type FunctionSource } from "#engine/functions.ts";
import type { Away, DeskState } from "#events/events.ts";
import type { TurnContext } from "#features/assistants/turn-context.ts";
import { sayAway } from "#features/conversations/desk/context.ts";

/**
 * Ends the conversation once the reply is stored; it opens again with the next message. One whose
 * visitor waits for a person is not ended, as nobody would come then.
 */
export function endFunction(
  { assistant, endConversation }: TurnContext, desk: DeskState,
): FunctionSource {
  const ending = assistant.settings.tools.find(({ type }) => type === "end_call");
  if (ending?.type !== "end_call" || desk === "waiting") return NO_FUNCTIONS;
  const description = ending.description
    || "Ends the conversation. Use it when the person has said goodbye and nothing is left to do.";
  return {
    offered: [{
      name: "end_conversation",
      description,
      parameters: { type: "object", properties: {}, additionalProperties: false },
    }],
    call: () => {
      endConversation();
      return Promise.resolve({ ended: true });
    },
  };
}

const text = (description: string) => ({ type: "string", description });
const read = (value: unknown): string => (typeof value === "string" ? value.trim() : "");

/** Requests a person once the reply is stored; offered only while the assistant has it. */
export function requestFunction(
  { assistant }: Pick<TurnContext, "assistant">,
  { desk, away }: { desk: DeskState; away: Away | null }, ask: (note: string) => void,
): FunctionSource {
  if (assistant.settings.desk.assistant_may_ask !== true || desk !== "assistant") return NO_FUNCTIONS;
  return {
    offered: [{
      name: "request_human",
      description: "Asks a person of the team to take over this conversation. Use it when the "
        + "visitor asks for a person, or needs something you cannot do. Tell the visitor that "
        + "somebody will answer here.",
      parameters: {
        type: "object",
        properties: {
          reason: text("Why a person is needed, in a few words"),
          summary: text("What the person who comes has to know"),
        },
        required: ["reason", "summary"],
        additionalProperties: false,
      },
    }],
    call: ({ arguments: { reason, summary } }) => {
      const note = [read(reason), read(summary)].filter((part) => part !== "").join("\n");
      ask(wholeStart(note, LIMITS.noteCharsMax));
      return Promise.resolve(away === null
        ? { asked: true }
        : { asked: true, nobody_is_there_now: true, ...away, tell_the_visitor: sayAway(away) });
    },
  };
}
