// What one turn knows of its assistant, in a text conversation or a call: who speaks, and what the
// functions of the turn go by.
import type { Persona } from "#engine/prompt.ts";
import type { Assistant } from "./assistants.ts";

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

export function personaOf(assistant: Assistant): Persona {
  const { settings } = assistant;
  return {
    uuid: assistant.uuid,
    name: assistant.name,
    systemPrompt: settings.system_prompt,
    variables: settings.variables,
    timezone: settings.timezone,
  };
}
