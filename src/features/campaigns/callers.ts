// The number a campaign shows and whether its assistant may call. Asked by campaigns.ts when one
// is started, by dialler.ts before each call, and by routes.ts for what an owner chooses.
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Lines } from "#features/calls/lines.ts";
import type { Campaign } from "./campaigns.ts";

interface CallersOptions {
  findAssistant(accountId: number, assistantId: number): Assistant | null;
  findNumber(accountId: number, phoneNumberId: number): { phoneNumber: string } | null;
  whyCannotCall: Lines["whyCannotCall"];
}

export interface Callers {
  findAssistant(accountId: number, assistantId: number): Assistant | null;
  ownsNumber(accountId: number, phoneNumberId: number): boolean;
  /** The campaign's numbers that the account still has; none: the assistant's own. */
  numbersOf(campaign: Campaign, assistant: Assistant): string[];
  /** A sentence; null: the assistant can call. The first of the numbers stands for all of them. */
  whyCannotCall(assistant: Assistant, campaign: Campaign): string | null;
  /** The assistant of the campaign; null: it was deleted, or may not call. */
  readyAssistant(campaign: Campaign): Assistant | null;
}

export function createCallers(options: CallersOptions): Callers {
  const { findAssistant, findNumber } = options;
  const numberOf = (accountId: number, id: number | null): string[] => {
    const number = id === null ? null : findNumber(accountId, id);
    return number ? [number.phoneNumber] : [];
  };
  const numbersOf: Callers["numbersOf"] = (
    { accountId, phoneNumberIds }, { phoneNumberId },
  ) => {
    const own = phoneNumberIds.flatMap((id) => numberOf(accountId, id));
    return own.length > 0 ? own : numberOf(accountId, phoneNumberId);
  };
  const whyCannotCall: Callers["whyCannotCall"] = (assistant, campaign) =>
    options.whyCannotCall(assistant, numbersOf(campaign, assistant)[0] ?? null);
  return {
    findAssistant,
    ownsNumber: (accountId, id) => findNumber(accountId, id) !== null,
    numbersOf,
    whyCannotCall,
    readyAssistant: (campaign) => {
      const assistant = findAssistant(campaign.accountId, campaign.assistantId);
      return assistant?.status === "active" && whyCannotCall(assistant, campaign) === null
        ? assistant
        : null;
    },
  };
}
