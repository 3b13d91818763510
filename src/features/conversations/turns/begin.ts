// Stores a turn and asks its model concurrently. While another node answers in the conversation,
// the turn waits for it as it would in this node's own queue. Used by conversations.ts.
import type { Assistant } from "#features/assistants/assistants.ts";
import { utcDay, type Instant } from "#core/system.ts";
import type { AttachmentBody } from "#events/events.ts";
import type { createAsk, Asking } from "./asking.ts";
import { dailyCapOf, type Prices } from "#features/conversations/creation.ts";
import { askedByWords } from "#features/conversations/desk/rules.ts";
import type { createElsewhere } from "./elsewhere.ts";
import type { BeginOutcome, ConversationStore, Given, Outlook } from "#features/conversations/records.ts";

export interface NewTurn {
  text: string;
  attachments: AttachmentBody[];
  idempotencyKey: string | null;
  requestHash: string;
  given: Given | null;
  /** An unsaved assistant that answers in place of the stored one, for its owner's test. */
  draft: Assistant | null;
}

interface Options {
  store: Pick<ConversationStore, "beginTurn" | "outlook">;
  limits: Prices & { messagesMax: number };
}

interface Turns {
  ask: ReturnType<typeof createAsk>;
  elsewhere: ReturnType<typeof createElsewhere>;
}

type Asked = { asking: Asking; outcome: BeginOutcome };

/** Waits while another node answers in the conversation, as in this node's own queue. */
export async function askWhenFree(
  options: Options, turns: Turns, asked: Parameters<typeof askAndStore>[2],
): Promise<Asked> {
  const first = await askAndStore(options, turns, asked);
  if (first.outcome.kind !== "busy") return first;
  const { outlook: { conversation: { id, uuid } }, turn: { idempotencyKey } } = asked;
  await turns.elsewhere.free(id);
  // Messages and money have changed meanwhile: the model is asked only once the turn has begun.
  const outlook = await options.store.outlook(uuid, idempotencyKey) ?? asked.outlook;
  return askAndStore(options, turns, { ...asked, outlook, isCovered: false });
}

/** Asks the model while the turn is being stored, and drops the answer if it does not begin. */
async function askAndStore(
  { store, limits }: Options,
  turns: Turns,
  { outlook, isCovered, assistant, turn, now }: {
    outlook: Outlook; isCovered: boolean; assistant: Assistant; turn: NewTurn; now: Instant;
  },
): Promise<Asked> {
  const { given, draft: _, ...request } = turn;
  const { accountId, uuid: conversationUuid } = outlook.conversation;
  const terms = {
    messagePriceMicros: limits.messagePriceMicros,
    dailyCapMicros: dailyCapOf(assistant, limits.dailyCapMicros),
    messagesMax: limits.messagesMax,
  };
  const asks = askedByWords(assistant, turn.text, now);
  // Called before `beginTurn`, so that it reads the history without the new message.
  const asking = turns.ask({
    ...terms, outlook: asks ? waiting(outlook) : outlook, isCovered, assistant, given,
    text: turn.text, attachments: turn.attachments, at: now,
  });
  const stored = store.beginTurn(
    { ...request, ...terms, accountId, conversationUuid, day: utcDay(now), asks, now });
  let outcome: BeginOutcome | null = null;
  try {
    outcome = await stored;
    return { asking, outcome };
  } finally {
    if (outcome?.kind !== "started") asking.drop();
  }
}

/** The outlook as it will be once the message that requests a person is stored. */
function waiting({ conversation, ...rest }: Outlook): Outlook {
  const { desk } = conversation;
  const state = desk.state === "assistant" ? "waiting" : desk.state;
  return { ...rest, conversation: { ...conversation, desk: { ...desk, state } } };
}
