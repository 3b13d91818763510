// Evaluates an ended chat, for the webhooks about it: the model that extracts values from a call's
// transcript reads the chat's messages instead.
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Evaluate } from "#features/calls/evaluation.ts";
import type { EvaluationOptions } from "#features/conversations/evaluations.ts";
import type { ConversationStore } from "#features/conversations/records.ts";

interface ChatEvaluationOptions {
  findAssistant(accountId: number, assistantId: number): Promise<Assistant | null>;
  history: ConversationStore["history"];
  evaluate: Evaluate;
}

export function createChatEvaluation(
  { findAssistant, history, evaluate }: ChatEvaluationOptions,
): EvaluationOptions["evaluate"] {
  return async ({ id, accountId, assistantId }, signal) => {
    const assistant = await findAssistant(accountId, assistantId);
    if (!assistant) return { values: {}, error: "The assistant was deleted." };
    const said = (await history(id)).messages.map(({ role, content: text }) =>
      ({ speaker: role === "user" ? "customer" as const : "assistant" as const, text }));
    return evaluate(assistant, said, signal);
  };
}
