// A turn on its way to the disk and to its model at once; where another node answers in the
// conversation, it waits for that as for this node's own line. Used by conversations.ts.
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
  /** Answers in place of the stored assistant: its owner tries what is not saved. */
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

/** Waits while another node answers in the conversation, as in this node's own line. */
export async function askWhenFree(
  options: Options, turns: Turns, asked: Parameters<typeof askAndStore>[2],
): Promise<Asked> {
  const first = await askAndStore(options, turns, asked);
  if (first.outcome.kind !== "busy") return first;
  const { outlook: { conversation: { id, uuid } }, turn: { idempotencyKey } } = asked;
  await turns.elsewhere.free(id);
  // More was said meanwhile, and spent: the model is asked when the turn has begun.
  const outlook = await options.store.outlook(uuid, idempotencyKey) ?? asked.outlook;
  return askAndStore(options, turns, { ...asked, outlook, isCovered: false });
}

/** The turn is on its way to the disk before its model is asked; refused, nobody is any more. */
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
  // First of the two: it reads the history before the question can be in it.
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

/** As it will be once the message that asks for a person is stored. */
function waiting({ conversation, ...rest }: Outlook): Outlook {
  const { desk } = conversation;
  const state = desk.state === "assistant" ? "waiting" : desk.state;
  return { ...rest, conversation: { ...conversation, desk: { ...desk, state } } };
}
