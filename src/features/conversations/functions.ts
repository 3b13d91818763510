// What a model may call in one turn: the sources of functions joined into the engine's port. Made
// anew for each turn, read by the engine.
import type { Assistant } from "#features/assistants/assistants.ts";
import type { ToolBox, ToolCallRequest } from "#engine/functions.ts";
import type { ModelTool } from "#providers/models/port.ts";

/** One turn of a conversation or call, as functions need to know it. */
export interface TurnContext {
  assistant: Assistant;
  /** Names the turn in journals, e.g. `turn:17`: what it did once is not done again. */
  scope: string;
  /** Variables of the conversation with the system's own. */
  variables: Record<string, string>;
  /** Lets the conversation end with this turn. */
  endConversation(): void;
}

/** Functions of one kind; `call` gets only names of its own `tools`. */
export interface ToolSource {
  tools: ModelTool[];
  call(request: ToolCallRequest): Promise<Record<string, unknown>>;
}

export const NO_FUNCTIONS: ToolSource = { tools: [], call: () => Promise.resolve({}) };

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });

/** Of two functions with one name the first source's counts. */
export function joinTools(sources: ToolSource[]): ToolBox {
  const owners = new Map<string, ToolSource>();
  const tools: ModelTool[] = [];
  for (const source of sources) {
    for (const tool of source.tools) {
      if (owners.has(tool.name)) continue;
      owners.set(tool.name, source);
      tools.push(tool);
    }
  }
  return {
    tools,
    call: async (request, signal) => {
      const owner = owners.get(request.name);
      if (!owner) return { error: `There is no function named ${request.name}.` };
      // A turn that is over stops waiting; what was sent is finished and journaled all the same.
      return Promise.race([owner.call(request), aborted(signal)]);
    },
  };
}

/** Ends the conversation once the reply is stored; it opens again with the next message. */
export function endConversationSource({ assistant, endConversation }: TurnContext): ToolSource {
  const ending = assistant.settings.tools.find(({ type }) => type === "end_call");
  if (ending?.type !== "end_call") return NO_FUNCTIONS;
  const description = ending.description
    || "Ends the conversation. Use it when the person has said goodbye and nothing is left to do.";
  return {
    tools: [{
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
