// Events of the account in words. Frequent ones, such as every message and every charge, are left
// out: the figures show them.
import type { Frame } from "#client/client.ts";
import { money, words } from "#ui/dashboard/kit/format.ts";
import type { IconName } from "#ui/dashboard/kit/icons.tsx";
import { LANGUAGE, t } from "#ui/dashboard/kit/texts.ts";

export interface Happening {
  icon: IconName;
  text: string;
  href: string;
  /** The right to open what it leads to, where not everybody has it. */
  needs?: string;
  isBad?: boolean;
}

const textOf = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";
/** In lower case within a sentence, but only in English: other languages' rules are not known. */
const lower = (code: unknown): string => {
  const said = words(textOf(code));
  return LANGUAGE === "en" ? said.toLowerCase() : said;
};
/** `: reason`, where there is one. */
const because = (reason: unknown): string => reason ? `: ${lower(reason)}` : "";

type Tell = (frame: Frame) => Happening | null;

const callOf = (frame: Frame) => ({ icon: "calls", href: `#/calls/${textOf(frame.call_id)}` }) as const;
const talkOf = (frame: Frame) =>
  ({ icon: "conversations", href: `#/conversations/${textOf(frame.conversation_id)}` }) as const;
const LEDGER = { href: "#/ledger", needs: "money" } as const;
const NUMBERS = { icon: "numbers", href: "#/numbers" } as const;
const number = (frame: Frame): string => textOf(frame.phone_number);

const FINISHED = new Set(["completed", "ended_by_customer", "ended_by_assistant"]);
const LEAD_NEWS = new Set(["completed", "failed", "reached-max-retries", "blacklisted"]);

const TELL: Record<string, Tell> = {
  conversation_created: (frame) =>
    ({ ...talkOf(frame), text: `A ${lower(frame.conversation_type)} conversation started` }),
  conversation_ended: (frame) =>
    ({ ...talkOf(frame), text: `A conversation ended${because(frame.reason)}` }),
  conversation_evaluated: (frame) => frame.evaluation_error
    ? {
        ...talkOf(frame), isBad: true,
        text: `A conversation could not be evaluated: ${textOf(frame.evaluation_error)}`,
      }
    : { ...talkOf(frame), text: "A conversation was evaluated" },
  conversation_failed: (frame) => ({
    icon: "conversations", isBad: true, text: textOf(frame.error),
    ...frame.conversation_id ? { href: talkOf(frame).href } : LEDGER,
  }),
  // An outright failure is shown by its explanation, which follows at once.
  reply_failed: (frame) => frame.reason === "interrupted"
    ? { ...talkOf(frame), text: `A reply failed: ${textOf(frame.error)}`, isBad: true }
    : null,
  reply_failure_explained: (frame) =>
    ({ ...talkOf(frame), text: `A reply failed: ${textOf(frame.error)}`, isBad: true }),
  desk_changed: (frame) => {
    const { name } = (frame.holder ?? {}) as { name?: string };
    if (frame.call_id !== undefined) {
      const of = t(`call ${textOf(frame.call_id)}`);
      return {
        ...callOf(frame), text: frame.desk === "person"
          ? `${name ?? "A person"} took over ${of}` : `The assistant has ${of} again`,
      };
    }
    const text = {
      waiting: frame.reason === "lost"
        ? "A conversation waits for a person again" : "Somebody asked for a person",
      person: t(`${name ?? "A person"} took over a conversation`),
      assistant: "A conversation was handed back to the assistant",
    }[textOf(frame.desk)];
    const { href } = talkOf(frame);
    return text === undefined
      ? null : { icon: "inbox", text, href: href.replace("#/conversations/", "#/inbox/") };
  },
  call_created: (frame) => ({
    ...callOf(frame),
    text: `${words(textOf((frame.call as { type?: string } | undefined)?.type))} call ${textOf(frame.call_id)} started`,
  }),
  call_ended: (frame) => {
    const isFine = FINISHED.has(textOf(frame.status));
    const cost = Number(frame.total_cost);
    const how = isFine ? because(frame.end_reason) : `: ${lower(frame.status)}`;
    return {
      ...callOf(frame), isBad: frame.status === "failed",
      text: `Call ${textOf(frame.call_id)} ended${how}${cost > 0 ? ` (${money(cost)})` : ""}`,
    };
  },
  call_deleted: (frame) => ({ icon: "calls", href: "#/calls", text: `Call ${textOf(frame.call_id)} was deleted` }),
  conversation_deleted: () =>
    ({ icon: "conversations", href: "#/conversations", text: "A conversation was deleted" }),
  document_status_changed: (frame) => frame.status === "processing" ? null : {
    icon: "knowledge", href: `#/knowledgebases/${textOf(frame.knowledgebase_id)}`,
    text: frame.status === "failed"
      ? `“${textOf(frame.name)}” could not be read: ${textOf(frame.reason)}`
      : `“${textOf(frame.name)}” is ready`,
    isBad: frame.status === "failed",
  },
  lead_status_changed: (frame) => LEAD_NEWS.has(textOf(frame.status)) ? {
    icon: "leads", href: `#/leads/${textOf(frame.lead_id)}`,
    text: `Lead ${number(frame)}: ${lower(frame.status)}`,
  } : null,
  campaign_status_changed: (frame) => ({
    icon: "campaigns",
    href: frame.reason === "deleted" ? "#/campaigns" : `#/campaigns/${textOf(frame.campaign_id)}`,
    text: `Campaign “${textOf(frame.name)}” is ${lower(frame.status)}`
      + (frame.reason === "requested" ? "" : because(frame.reason)),
    isBad: frame.reason === "balance_too_low" || frame.reason === "carrier_failures",
  }),
  phone_number_purchased: (frame) => ({ ...NUMBERS, text: `${number(frame)} was bought` }),
  phone_number_renewed: (frame) => ({ ...NUMBERS, text: `${number(frame)} was renewed` }),
  phone_number_grace: (frame) =>
    ({ ...NUMBERS, text: `${number(frame)} could not be paid for`, isBad: true }),
  phone_number_suspended: (frame) =>
    ({ ...NUMBERS, text: `${number(frame)} is suspended`, isBad: true }),
  phone_number_released: (frame) => ({ ...NUMBERS, text: `${number(frame)} was released` }),
  balance_changed: (frame) => frame.kind === "credit" ? {
    icon: "ledger", ...LEDGER,
    text: Number(frame.change) < 0
      ? `${money(-Number(frame.change))} was taken from the balance`
      : `${money(Number(frame.change))} was added to the balance`,
  } : null,
  balance_low: (frame) => ({
    icon: "money", href: "#/money", needs: "money", text: `The balance has fallen to ${money(Number(frame.balance))}`,
    isBad: true,
  }),
};

/** The types of events that may be shown. */
export const NEWS = Object.keys(TELL);

/** Null: it is not shown. */
export const happeningOf = (frame: Frame): Happening | null =>
  Object.hasOwn(TELL, frame.type) ? TELL[frame.type]?.(frame) ?? null : null;
