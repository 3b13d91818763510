// When the model of a turn is asked: at once, while the turn is still being stored, unless
// something may refuse it; otherwise once it has begun. The guarantees are the same either way:
// until its message is stored and its price reserved, nothing is shown and no function is called,
// and a turn that does not begin leaves nothing behind. Used by conversations.ts.
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import type { AttachmentBody } from "#events/events.ts";
import { answer, type AnswerOptions, type Answered, type AskedTurn } from "./answering.ts";
import { assistantAnswers } from "#features/conversations/desk/desk.ts";
import type { LiveReply } from "./live-reply.ts";
import { messagePrice, type Outlook } from "#features/conversations/records.ts";

interface Question extends Pick<AskedTurn, "assistant" | "given"> {
  outlook: Outlook;
  /** The balance covered its price when the outlook was read. */
  isCovered: boolean;
  text: string;
  attachments: AttachmentBody[];
  /** The time it is stored with. */
  at: Instant;
  dailyCapMicros: Micros | null;
  messagesMax: number;
}

export interface Asking {
  readonly abort: AbortController;
  /** Called when the turn has begun. */
  begin(live: LiveReply): Promise<Answered>;
  /** Called when the turn will not begin: aborts the model's answer. */
  drop(): void;
}

/** The money that a turn being stored is about to reserve. */
export interface Cover {
  readonly isCovered: boolean;
  /** Called once the turn is stored or refused. */
  release(): void;
}

/**
 * Checks the price of a turn against the balance, less what concurrent turns are about to reserve.
 * Call it in the same turn of the event loop as the outlook is read: a wait makes the balance
 * stale.
 */
export function createCovers(messagePriceMicros: Micros): (outlook: Outlook) => Cover {
  const expected = new Map<number, Micros>();
  return ({ conversation: { accountId, type }, freeMicros }) => {
    const priceMicros = messagePrice(type, messagePriceMicros);
    const sum = (expected.get(accountId) ?? 0) + priceMicros;
    if (priceMicros === 0 || sum > freeMicros) {
      return { isCovered: priceMicros === 0, release: () => undefined };
    }
    expected.set(accountId, sum);
    return {
      isCovered: true,
      release: () => {
        const rest = (expected.get(accountId) ?? 0) - priceMicros;
        if (rest > 0) expected.set(accountId, rest);
        else expected.delete(accountId);
      },
    };
  };
}

export function createAsk(options: AnswerOptions): (question: Question) => Asking {
  // Asking a model costs the operator even if the turn is then refused. So where a turn may be
  // refused, or was answered before, the model is asked only once it has begun.
  const mayAsk = ({ outlook, isCovered, dailyCapMicros, messagesMax }: Question): boolean => {
    const { conversation, messageCount, isRepeat } = outlook;
    return isCovered && assistantAnswers(conversation.desk.state) && !isRepeat
      && dailyCapMicros === null && messageCount + 2 <= messagesMax;
  };
  return (question) => {
    const { assistant, given, text, attachments, at, outlook } = question;
    const { conversation, messageCount } = outlook;
    const abort = new AbortController();
    const turn = { assistant, conversation, given, abort };
    if (!mayAsk(question)) {
      return {
        abort,
        begin: (live) =>
          answer(options, { ...turn, unstored: null, begun: Promise.resolve(live) }),
        drop: () => undefined,
      };
    }
    const begun = Promise.withResolvers<LiveReply>();
    const unstored = { text, attachments, at, messageCount };
    const answered = answer(options, { ...turn, unstored, begun: begun.promise });
    return {
      abort,
      begin: (live) => {
        begun.resolve(live);
        return answered;
      },
      drop: () => {
        const dropped = new Error("could not begin a turn");
        answered.catch(() => undefined);
        begun.reject(dropped);
        abort.abort(dropped);
      },
    };
  };
}
