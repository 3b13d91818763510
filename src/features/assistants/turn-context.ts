// What one turn knows and has of its assistant, in a text conversation or a call: who speaks, what
// the functions of the turn go by, and what it is answered with.
import type { FunctionSource } from "#engine/functions.ts";
import type { Languages, Persona } from "#engine/prompt.ts";
import type { LanguageModel } from "#providers/models/port.ts";
import type { Assistant } from "./assistants.ts";

/** One turn of a conversation or call, as functions need to know it. */
export interface TurnContext {
  assistant: Assistant;
  /**
   * Names the turn in journals, e.g. `turn:17`: what it did once is not done again. To be read when
   * a function is called, not before: a model may be asked before its turn has begun.
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
  /** Those of the assistant; a conversation and a call have functions of their own beside them. */
  functions: FunctionSource[];
  languages: Languages;
  /** The parts of the assistant's knowledgebase that belong to the question; null: none. */
  reference: string | null;
}

/** Resolves it all once for the turn; `question` null: nobody asked anything. */
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
