// When the model of a turn is asked: at once, while the turn is still being stored, where nothing
// known stands against it; else when it has begun. The law of the turn is the same either way:
// until its message is stored and its price set aside nothing is shown and no function is called,
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
  /** The price was there for it when the outlook was read. */
  isCovered: boolean;
  text: string;
  attachments: AttachmentBody[];
  /** When it is stored. */
  at: Instant;
  dailyCapMicros: Micros | null;
  messagesMax: number;
}

export interface Asking {
  readonly abort: AbortController;
  /** The turn has begun. */
  begin(live: LiveReply): Promise<Answered>;
  /** It has not, and will not. */
  drop(): void;
}

/** What a turn that is being stored is about to set aside. */
export interface Cover {
  readonly isCovered: boolean;
  /** The turn is stored, or refused. */
  release(): void;
}

/**
 * The price of turns against their balance, less what others are about to set aside. To be called
 * at once with an outlook that was read: a balance is older after every wait.
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
  // A model that was asked costs the operator, also where the turn is refused: whatever may be
  // refused, or was answered before, is asked when it has begun.
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
        const dropped = new Error("the turn did not begin");
        answered.catch(() => undefined);
        begun.reject(dropped);
        abort.abort(dropped);
      },
    };
  };
}
