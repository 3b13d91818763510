// Why a call came to nothing, in words for its owner and with what to do about it, and how a call
// with that end is charged. Pure; ending.ts puts it on the record.
import type { Micros } from "#core/money.ts";
import type { EndReason } from "./records.ts";

/**
 * How a call is billed. `full`: by the rules of its price; `lasted`: only its time, since the
 * server ended it or the customer was lost; `nothing`: the server's own part of it did not work.
 */
export type Charge = "full" | "lasted" | "nothing";

export interface EndFacts {
  reason: EndReason;
  isAnswered: boolean;
  /** The line is the operator's, not one an account brings along. */
  isOwnLine: boolean;
  /** What failed, in the words of the engine, the model or the carrier. */
  detail: string | null;
  /** The model failed, and gave no reply during the whole call. */
  wasMute: boolean;
}

export function chargeOf({ reason, isOwnLine, wasMute }: EndFacts): Charge {
  if (wasMute || reason === "speech_failed" || reason === "model_failed") return "nothing";
  if (reason === "carrier_failed") return isOwnLine ? "nothing" : "lasted";
  return reason === "server_restarted" || reason === "media_timeout" ? "lasted" : "full";
}

/** The shortest call that is billed. */
const BILLED_SECONDS_MIN = 30;

/** The price of this many seconds of talk, rounded up to the micro-dollar. */
export const talkCost = (seconds: number, pricePerMinute: Micros): Micros =>
  Math.ceil((Math.max(seconds, BILLED_SECONDS_MIN) * pricePerMinute) / 60);

/** How long the money lasts where calls cost nothing. */
export const FOREVER_S = 1_000_000;

const DETAIL_CHARS_MAX = 300;

/** What follows a sentence in the place of its stop: the detail where there is one. */
export const because = (detail: string | null): string => {
  const text = (detail ?? "").trim().replace(/[.:]+$/, "").slice(0, DETAIL_CHARS_MAX);
  return text === "" ? "" : `: ${text}`;
};

const MODEL = "Check the assistant's model, its key and its address; the call cost nothing.";

/** One or two sentences; null: nothing failed. */
export function failureOf(facts: EndFacts): string | null {
  const { reason, isAnswered, detail, wasMute } = facts;
  if (wasMute) return `The language model gave no reply in this call${because(detail)}. ${MODEL}`;
  switch (reason) {
    case "busy":
      return "The number was busy. Call again later.";
    case "no_answer":
      return "Nobody answered while it rang. Call again later, or let it ring longer (ringing_time).";
    case "rejected":
      return "The called side refused the call. Ask whether it accepts calls from your number.";
    case "carrier_failed":
      return isAnswered
        ? `The line broke off${because(detail)}. Check the connection to the carrier.`
        : `The call could not be put through${because(detail)}. ${lineAdvice(detail)}`;
    case "speech_failed":
      return `Speech on this server failed${because(detail)}. Check the speech engine and its key; `
        + "the call cost nothing.";
    case "model_failed":
      return `The language model failed${because(detail)}. ${MODEL}`;
    case "server_restarted":
      return "The server was stopped or restarted during the call. Call again; "
        + "at most the time it lasted was charged.";
    case "media_timeout":
      return "The other side's audio stopped. The call was charged until then; "
        + "check the network between the telephone and this server.";
    case "customer_hung_up":
      return isAnswered ? null : "The caller hung up before the call was answered.";
    case "assistant_ended":
    case "silence":
    case "no_first_words":
    case "max_duration":
    case "voicemail":
    case "balance":
    case "transferred":
    case "operator":
      return null;
  }
}

const ADVICE: [pattern: RegExp, advice: string][] = [
  [/\bACK\b/, "Check that the caller's side can reach this server at its public address (PARLEY_SIP_PUBLIC_HOST)."],
  [/\bSRTP\b/, "Let the trunk encrypt its audio (SRTP), or do not require it (require_srtp)."],
  [/\b30[12]\b/, "The called side redirected the call, which is not followed: call the other number, "
    + "or let the trunk follow redirects."],
  [/\b(401|403|407)\b/, "Check the trunk's user name and password, and that it may call from your number."],
  [/\b(404|410|484|604)\b/, "Check the number: the carrier does not know it."],
  [/\b(408|Unreachable)\b/i, "Check the trunk's address, and that this server can reach it."],
  [/\b(415|488)\b/, "Check the codecs of the trunk: it shares none with this server."],
  [/PARLEY_/, "The operator of this server must set them."],
];

const lineAdvice = (detail: string | null): string =>
  ADVICE.find(([pattern]) => pattern.test(detail ?? ""))?.[1]
  ?? "Check the number and the trunk or carrier; if it persists, ask the carrier.";
