// The lines to a telephone, and which of them a call takes: the one that its own number belongs to.
import type { Assistant } from "#features/assistants/assistants.ts";
import { formatForTrunk } from "#features/phone-numbers/dialled.ts";
import type { InboundStore } from "#features/phone-numbers/inbound-routing.ts";
import type { SipTrunkRecord, SipTrunks } from "#features/phone-numbers/sip-trunks.ts";
import { rateOfCodec } from "#providers/carriers/sip/trunks/trunk.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { Logger } from "#core/logger.ts";
import type { DialRequest } from "#providers/carriers/port.ts";
import type { WarmTool } from "./functions.ts";
import type { Hosted } from "./hosted/hosted.ts";
import type { Call } from "./records/records.ts";
import type { VoiceChoice } from "./voice-choice.ts";

/** `to` is in the format the carrier wants. */
export type Line =
  | { carrier: "loopback"; rate: 16_000 }
  /** Over the operator's account at a hosted carrier. */
  | { carrier: "hosted"; hosted: Hosted }
  | { carrier: "sip"; trunkId: number; to: string; rate: 8000 | 16_000 };

export const LOOPBACK_LINE = { carrier: "loopback", rate: 16_000 } as const;

/** The line to a colleague, for a leg of the media thread. */
export type ColleagueLine = Exclude<Line, { carrier: "hosted" }>
  & Pick<DialRequest, "to" | "from">;

interface LinesOptions {
  trunks: Pick<SipTrunks, "all">;
  hosted: ReadonlyMap<HostedAccount, Hosted>;
  findHosted: InboundStore["findHosted"];
  whyCannotTalk: VoiceChoice["whyCannotTalk"];
  findNumber(accountId: number, phoneNumberId: number): Promise<{ phoneNumber: string } | null>;
  /** Whether this server takes part in SIP at all. */
  hasSip: boolean;
  log: Logger;
}

export interface Lines {
  /** Resolves to a sentence when there is no line for the number the call is made from. */
  lineOf(call: Call, assistant: Assistant): Promise<Line | string>;
  /** Resolves to a sentence when a colleague cannot be called from the wanted number. */
  colleagueLineOf(
    call: Call, assistant: Assistant, tool: WarmTool,
  ): Promise<ColleagueLine | string>;
  /** Whether the far end of a call from that number is the loopback carrier's script. */
  isScript(accountId: number, phoneNumber: string | null): Promise<boolean>;
  /** Why a call could not be placed, or not be talked in, before it begins; null: it can be. */
  whyCannotCall(assistant: Assistant, phoneNumber: string | null): Promise<string | null>;
}

const whyNoLine = (carrier: HostedAccount): string =>
  `The number belongs to ${carrier}: calls need the settings PARLEY_${carrier.toUpperCase()}_…`
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
  const colleagueLineOf = createColleagueLine(options, { trunksOf, carrierOf });
  return {
    colleagueLineOf,
    lineOf: async ({ id, accountId, assistantPhone, customerPhone }, { phoneNumberId }) => {
      const known = await trunksOf(accountId, assistantPhone);
      // A number may have several trunks: the assistant's own is preferred.
      const trunk = known.find((one) => one.id === phoneNumberId) ?? known[0];
      if (!trunk) {
        const carrier = await carrierOf(accountId, assistantPhone);
        if (carrier === null) return LOOPBACK_LINE;
        const line = hosted.get(carrier);
        if (!line) log.warn({ call_id: id }, whyNoLine(carrier));
        return line ? { carrier: "hosted", hosted: line } : whyNoLine(carrier);
      }
      if (!hasSip) {
        log.warn({ call_id: id }, "PARLEY_SIP_PORT is not set: SIP trunks cannot be used for calls");
        return "the setting PARLEY_SIP_PORT is missing";
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

/** Allows more than digits and a plus, because telephone systems name their own lines so. */
const SHOWN = /^\+?[\w.-]{1,64}$/;

function createColleagueLine(
  { hasSip, trunks, findNumber }: LinesOptions,
  { trunksOf, carrierOf }: {
    trunksOf(accountId: number, phoneNumber: string | null): Promise<SipTrunkRecord[]>;
    carrierOf(accountId: number, phoneNumber: string | null): Promise<HostedAccount | null>;
  },
): Lines["colleagueLineOf"] {
  return async ({ accountId, assistantPhone, customerPhone }, assistant, tool) => {
    const ownId = assistantPhone === null ? assistant.phoneNumberId : null;
    const id = tool.phoneNumberId ?? ownId;
    const number = id === null
      ? assistantPhone : (await findNumber(accountId, id))?.phoneNumber ?? null;
    if (number === null) return "There is no number to call the colleague from.";
    const wanted = tool.shown?.mode === "custom" ? tool.shown.number
      : tool.shown?.mode === "customer_number" ? customerPhone : number;
    const from = wanted !== null && SHOWN.test(wanted) ? wanted : number;
    const own = id === null ? null
      : (await trunks.all()).find((one) => one.id === id && one.accountId === accountId);
    const trunk = own ?? (await trunksOf(accountId, number))[0];
    if (trunk) {
      if (!hasSip) return "The setting PARLEY_SIP_PORT is missing.";
      const to = tool.isRaw || !tool.to.startsWith("+") ? tool.to : formatForTrunk(trunk, tool.to);
      return { carrier: "sip", trunkId: trunk.id, to, from, rate: rateOfCodec(trunk.codecs[0]) };
    }
    const hosted = await carrierOf(accountId, number);
    return hosted === null
      ? { ...LOOPBACK_LINE, to: tool.to, from }
      : `The number ${number} belongs to ${hosted}: colleagues can be called and briefed only from a`
        + " number of a SIP trunk.";
  };
}
