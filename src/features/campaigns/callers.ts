// The numbers a campaign calls from, and whether its assistant may call. Used by campaigns.ts when
// one is started, by dialler.ts before each call, and by routes.ts for what an owner chooses.
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Lines } from "#features/calls/lines.ts";
import type { Campaign } from "./campaigns.ts";

interface CallersOptions {
  findAssistant(accountId: number, assistantId: number): Promise<Assistant | null>;
  findNumber(accountId: number, phoneNumberId: number): Promise<{ phoneNumber: string } | null>;
  whyCannotCall: Lines["whyCannotCall"];
}

export interface Callers {
  findAssistant(accountId: number, assistantId: number): Promise<Assistant | null>;
  ownsNumber(accountId: number, phoneNumberId: number): Promise<boolean>;
  /** The campaign's numbers that the account still has, or else the assistant's own. */
  numbersOf(campaign: Campaign, assistant: Assistant): Promise<string[]>;
  /** A sentence; null: the assistant can call. Only the first of the numbers is checked. */
  whyCannotCall(assistant: Assistant, campaign: Campaign): Promise<string | null>;
  /** The assistant of the campaign; null: it was deleted, or may not call. */
  readyAssistant(campaign: Campaign): Promise<Assistant | null>;
}

export function createCallers(options: CallersOptions): Callers {
  const { findAssistant, findNumber } = options;
  const numberOf = async (accountId: number, id: number | null): Promise<string[]> => {
    const number = id === null ? null : await findNumber(accountId, id);
    return number ? [number.phoneNumber] : [];
  };
  const numbersOf: Callers["numbersOf"] = async (
    { accountId, phoneNumberIds }, { phoneNumberId },
  ) => {
    const own = await Promise.all(phoneNumberIds.map((id) => numberOf(accountId, id)));
    return own.flat().length > 0 ? own.flat() : numberOf(accountId, phoneNumberId);
  };
  const whyCannotCall: Callers["whyCannotCall"] = async (assistant, campaign) =>
    options.whyCannotCall(assistant, (await numbersOf(campaign, assistant))[0] ?? null);
  return {
    findAssistant,
    ownsNumber: async (accountId, id) => await findNumber(accountId, id) !== null,
    numbersOf,
    whyCannotCall,
    readyAssistant: async (campaign) => {
      const assistant = await findAssistant(campaign.accountId, campaign.assistantId);
      return assistant?.status === "active" && await whyCannotCall(assistant, campaign) === null
        ? assistant
        : null;
    },
  };
}
