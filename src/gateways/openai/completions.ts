// A chat completion as a turn of a conversation: stored, billed, watched and stopped like any
// other, except that the model reads the messages the client sent instead of the stored ones.
// Called by gateways/routes.ts.
import { hash } from "node:crypto";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Conversations } from "#features/conversations/conversations.ts";
import type { Sent } from "#features/conversations/outcomes.ts";
import type { Conversation, Given } from "#features/conversations/records.ts";
import { Fault } from "#core/faults.ts";
import { estimateTokens } from "#engine/history.ts";
import type { ModelUsage } from "#providers/models/port.ts";

interface CompletionRequest {
  assistant: Assistant;
  given: Given;
  idempotencyKey: string | null;
}

interface CompletionTurn {
  conversation: Conversation;
  sent: Exclude<Sent, { kind: "stored" }>;
}

/** The length of request hashes when conversations stored them, so that old keys remain valid. */
const REQUEST_HASH_CHARS = 32;

/** Streaming is not part of the request: a retry may stream what the first try did not. */
const hashOf = ({ assistant, given }: CompletionRequest): string =>
  hash("sha256", JSON.stringify([assistant.id, given]), "hex").slice(0, REQUEST_HASH_CHARS);

/**
 * One conversation per request, because the client's history is the truth: one per `user` would mix
 * unrelated chats. A repeated key finds the conversation again.
 */
function open(
  conversations: Conversations, { assistant, idempotencyKey }: CompletionRequest,
): Promise<Conversation> {
  // The client has the greeting already, or never showed one.
  const silent = { ...assistant, settings: { ...assistant.settings, initial_message: "" } };
  return conversations.create({
    assistant: silent,
    type: "api",
    variables: {},
    ...(idempotencyKey === null
      ? {}
      : { externalIdentifier: `completion:${hash("sha256", idempotencyKey, "hex")}` }),
  });
}

/** Resolves once the turn has begun; throws a Fault when it is refused. */
export async function beginCompletion(
  conversations: Conversations, request: CompletionRequest,
): Promise<CompletionTurn> {
  const { given, idempotencyKey } = request;
  const conversation = await open(conversations, request);
  const sent = await conversations.send({
    uuid: conversation.uuid,
    text: given.messages.at(-1)?.content ?? "",
    idempotencyKey,
    requestHash: hashOf(request),
    given,
  });
  if (sent.kind !== "stored") return { conversation, sent };
  throw new Fault(409, "A person has this conversation.");
}

/** What the models count for the turn, up to now: null until one has, or if none does. */
export const countOf = (sent: CompletionTurn["sent"]) => (): ModelUsage | null => {
  if (sent.kind === "answering") return sent.usage();
  return sent.result.kind === "completed" ? sent.result.usage : null;
};

/** The models' count, or an estimate where they count nothing. */
export function usageOf(counted: ModelUsage | null, given: Given, reply: string) {
  const texts = [given.system, ...given.messages.map(({ content }) => content)];
  const { inputTokens, outputTokens } = counted ?? {
    inputTokens: texts.reduce((sum, text) => sum + estimateTokens(text), 0),
    outputTokens: estimateTokens(reply),
  };
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}
