// What a model may do with the conversation itself: end it. answering.ts joins it with the
// assistant's functions.
import { NO_FUNCTIONS, type FunctionSource } from "#engine/functions.ts";
import type { TurnContext } from "#features/assistants/turn-context.ts";

/** Ends the conversation once the reply is stored; it opens again with the next message. */
export function conversationFunctions({ assistant, endConversation }: TurnContext): FunctionSource {
  const ending = assistant.settings.tools.find(({ type }) => type === "end_call");
  if (ending?.type !== "end_call") return NO_FUNCTIONS;
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
