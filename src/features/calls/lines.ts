// The ways out to a telephone, and which of them a call takes: the one its own number came by.
import type { Assistant } from "#features/assistants/assistants.ts";
import { formatForTrunk } from "#features/phone-numbers/dialled.ts";
import type { InboundStore } from "#features/phone-numbers/inbound-routing.ts";
import type { SipTrunkRecord, SipTrunks } from "#features/phone-numbers/sip-trunks.ts";
import { rateOfCodec } from "#providers/carriers/sip/trunks/trunk.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { Logger } from "#core/logger.ts";
import type { Hosted } from "./hosted/hosted.ts";
import type { Call } from "./records.ts";
import type { VoiceChoice } from "./voice-choice.ts";

/** `to` is spelt as the carrier wants it. */
export type Line =
  | { carrier: "loopback"; rate: 16_000 }
  /** Over the operator's account at a hosted carrier. */
  | { carrier: "hosted"; hosted: Hosted }
  | { carrier: "sip"; trunkId: number; to: string; rate: 8000 | 16_000 };

export const LOOPBACK_LINE = { carrier: "loopback", rate: 16_000 } as const;

interface LinesOptions {
  trunks: Pick<SipTrunks, "all">;
  hosted: ReadonlyMap<HostedAccount, Hosted>;
  findHosted: InboundStore["findHosted"];
  whyCannotTalk: VoiceChoice["whyCannotTalk"];
  /** Whether this server takes part in SIP at all. */
  hasSip: boolean;
  log: Logger;
}

export interface Lines {
  /** A sentence: why there is no way out for the number the call is made from. */
  lineOf(call: Call, assistant: Assistant): Promise<Line | string>;
  /** Whether the far end of a call from that number is a script of the server's. */
  isScript(accountId: number, phoneNumber: string | null): Promise<boolean>;
  /** The same before there is a call, or why nobody could talk in it; null: it can be placed. */
  whyCannotCall(assistant: Assistant, phoneNumber: string | null): Promise<string | null>;
}

const whyNoLine = (carrier: HostedAccount): string =>
  `The number is at ${carrier}: calls need the settings PARLEY_${carrier.toUpperCase()}_…`
  + (carrier === "asterisk" ? "." : " and PARLEY_PUBLIC_URL.");

export function createLines(options: LinesOptions): Lines {
  const { trunks, hosted, findHosted, whyCannotTalk, hasSip, log } = options;
  const trunksOf = async (
    accountId: number, phoneNumber: string | null,
  ): Promise<SipTrunkRecord[]> =>
    (await trunks.all()).filter((one) =>
      one.accountId === accountId && one.phoneNumber === phoneNumber);
  const carrierOf = async (
    accountId: number, phoneNumber: string | null,
  ): Promise<HostedAccount | null> => {
    const number = phoneNumber === null ? null : await findHosted(phoneNumber);
    return number?.accountId === accountId ? number.carrier : null;
  };
  return {
    lineOf: async ({ id, accountId, assistantPhone, customerPhone }, { phoneNumberId }) => {
      const known = await trunksOf(accountId, assistantPhone);
      // A number may be reached over several trunks: the assistant's own goes before the others.
      const trunk = known.find((one) => one.id === phoneNumberId) ?? known[0];
      if (!trunk) {
        const carrier = await carrierOf(accountId, assistantPhone);
        if (carrier === null) return LOOPBACK_LINE;
        const line = hosted.get(carrier);
        if (!line) log.warn({ call_id: id }, whyNoLine(carrier));
        return line ? { carrier: "hosted", hosted: line } : whyNoLine(carrier);
      }
      if (!hasSip) {
        log.warn({ call_id: id }, "PARLEY_SIP_PORT is not set: no calls over SIP trunks");
        return "the settings PARLEY_SIP_PORT are missing";
      }
      return {
        carrier: "sip", trunkId: trunk.id, to: formatForTrunk(trunk, customerPhone ?? ""),
        rate: rateOfCodec(trunk.codecs[0]),
      };
    },
    isScript: async (accountId, phoneNumber) =>
      (await trunksOf(accountId, phoneNumber)).length === 0
        && await carrierOf(accountId, phoneNumber) === null,
    whyCannotCall: async (assistant, phoneNumber) => {
      const { accountId } = assistant;
      const known = await trunksOf(accountId, phoneNumber);
      if (known.length > 0) return whyCannotTalk(assistant, null);
      const carrier = await carrierOf(accountId, phoneNumber);
      // The far end of the loopback carrier follows a script.
      if (carrier === null) return whyCannotTalk(assistant, "script");
      return hosted.has(carrier) ? whyCannotTalk(assistant, null) : whyNoLine(carrier);
    },
  };
}
