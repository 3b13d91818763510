// What one turn in a text conversation or a call needs of its assistant: the context that its
// functions receive, and the model, functions and knowledge it is answered with.
import type { FunctionSource } from "#engine/functions.ts";
import type { Languages, Persona } from "#engine/prompt.ts";
import type { LanguageModel } from "#providers/models/port.ts";
import type { Assistant } from "./assistants.ts";

/** One turn of a conversation or call, as functions need to know it. */
export interface TurnContext {
  assistant: Assistant;
  /**
   * Names the turn in journals, e.g. `turn:17`, so that its side effects are not repeated. Read it
   * only when a function is called: a model may be asked before its turn has begun.
   */
  readonly scope: string;
  /** Variables of the conversation with the system's own. */
  variables: Record<string, string>;
  /** Lets the conversation end with this turn. */
  endConversation(): void;
}

/** What a turn is answered with. */
interface ResolvedTurn {
  model: LanguageModel;
  /** The assistant's functions; conversations and calls add functions of their own. */
  functions: FunctionSource[];
  languages: Languages;
  /** Passages of the assistant's knowledgebase that are relevant to the question; null: none. */
  reference: string | null;
}

/** Resolves all of it once per turn; `question` null: nobody has asked anything. */
export type ResolveTurn = (turn: TurnContext, question: string | null) => Promise<ResolvedTurn>;

/** The one that answers in writing, and for parts of a call; null: the server's first. */
export const modelIdOf = ({ settings, mode }: Assistant): number | null =>
  mode === "pipeline" ? settings.llm_model_id : settings.chat_llm_fallback_id;

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
