// When the model of a turn is asked: at once, while the turn is still being stored, where nothing
// known stands against it; else when it has begun. The law of the turn is the same either way:
// until its message is stored and its price set aside nothing is shown and no function is called,
// and a turn that does not begin leaves nothing behind. Used by conversations.ts.
import type { Micros } from "#core/money.ts";
import { answer, type AnswerOptions, type Answered, type AskedTurn } from "./answering.ts";
import { assistantAnswers } from "./desk.ts";
import type { LiveReply } from "./live-reply.ts";
import { messagePrice, type Outlook } from "./records.ts";

interface Question extends Pick<AskedTurn, "assistant" | "given"> {
  outlook: Outlook;
  text: string;
  messagePriceMicros: Micros;
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

export function createAsk(options: AnswerOptions): (question: Question) => Asking {
  /** What turns that are being stored are about to set aside, by account. */
  const expected = new Map<number, Micros>();
  const expect = (accountId: number, micros: Micros): void => {
    const sum = (expected.get(accountId) ?? 0) + micros;
    if (sum > 0) expected.set(accountId, sum);
    else expected.delete(accountId);
  };
  // A model that was asked costs the operator, also where the turn is refused: whatever may be
  // refused, or was answered before, is asked when it has begun.
  const mayAsk = (
    { outlook, dailyCapMicros, messagesMax }: Question, priceMicros: Micros,
  ): boolean => {
    const { conversation, freeMicros, messageCount, isRepeat } = outlook;
    return assistantAnswers(conversation.desk.state) && !isRepeat && dailyCapMicros === null
      && messageCount + 2 <= messagesMax
      && (priceMicros === 0
        || freeMicros - (expected.get(conversation.accountId) ?? 0) >= priceMicros);
  };
  return (question) => {
    const { assistant, given, text, outlook: { conversation } } = question;
    const priceMicros = messagePrice(conversation.type, question.messagePriceMicros);
    const abort = new AbortController();
    const turn = { assistant, conversation, given, abort };
    if (!mayAsk(question, priceMicros)) {
      return {
        abort,
        begin: (live) =>
          answer(options, { ...turn, unstored: null, begun: Promise.resolve(live) }),
        drop: () => undefined,
      };
    }
    const begun = Promise.withResolvers<LiveReply>();
    expect(conversation.accountId, priceMicros);
    const answered = answer(options, { ...turn, unstored: text, begun: begun.promise });
    return {
      abort,
      begin: (live) => {
        expect(conversation.accountId, -priceMicros);
        begun.resolve(live);
        return answered;
      },
      drop: () => {
        expect(conversation.accountId, -priceMicros);
        const dropped = new Error("the turn did not begin");
        answered.catch(() => undefined);
        begun.reject(dropped);
        abort.abort(dropped);
      },
    };
  };
}
