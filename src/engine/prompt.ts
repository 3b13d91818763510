// Builds what a model is asked: system prompt with variables filled in, then the trimmed history.
import type { Instant } from "#core/system.ts";
import { localDateTime } from "#core/zones.ts";
import { REFERENCE_HEAD, type ModelMessage } from "#providers/models/port.ts";
import { trimHistory, type HistoryMessage } from "./history.ts";
import { fillTemplate } from "./template.ts";

/** What the engine needs to know of an assistant. */
export interface Persona {
  uuid: string;
  name: string;
  systemPrompt: string;
  /** Defaults of the assistant's own variables. */
  variables: Record<string, string>;
  /** IANA name. */
  timezone: string;
}

interface Parties {
  customerPhone: string;
  assistantPhone: string;
}

/** The languages of a conversation, by their English names. */
export interface Languages {
  main: string;
  /** Those it may change into; the main one is not among them. */
  others: string[];
  /** The one spoken at the moment, if known. */
  current?: string;
}

/** What the model is told about the language, after the assistant's own prompt. */
export function languageNote({ main, others, current }: Languages): string {
  const note = `The language of this conversation is ${main}, unless these instructions say otherwise.`;
  if (others.length === 0) return note;
  const follow = ` When the person uses ${others.join(" or ")}, answer in the language they use,`
    + ` and in ${main} again when they do.`;
  return current === undefined || current === main
    ? note + follow
    : `${note}${follow} They speak ${current} now: answer in ${current}.`;
}

const NO_PHONES: Parties = { customerPhone: "", assistantPhone: "" };

/**
 * Later sources win: the assistant's defaults, then what the conversation was given, then what the
 * system knows better than anybody.
 */
export function allVariables(
  persona: Persona,
  given: Record<string, string>,
  now: Instant,
  parties: Parties = NO_PHONES,
): Record<string, string> {
  const { date, time } = localDateTime(now, persona.timezone);
  return {
    ...persona.variables,
    ...given,
    customer_phone: parties.customerPhone,
    assistant_phone: parties.assistantPhone,
    assistant_id: persona.uuid,
    assistant_name: persona.name,
    current_date: date,
    current_time: time,
  };
}

export function buildMessages(args: {
  persona: Persona;
  /** As `allVariables` gives them. */
  variables: Record<string, string>;
  /** Appended to the prompt verbatim, since some models take no second system message. */
  instructions?: string;
  historyNewestFirst: HistoryMessage[];
  historyTokensMax: number;
  /** Text of documents; placed before the question as data, never in the instructions. */
  reference: string | null;
  languages: Languages;
}): ModelMessage[] {
  const prompt = fillTemplate(args.persona.systemPrompt, args.variables);
  const own = `${prompt}\n\n${languageNote(args.languages)}`.trim();
  const system = args.instructions ? `${own}\n\n${args.instructions}` : own;
  const history = trimHistory(args.historyNewestFirst, args.historyTokensMax);
  if (args.reference !== null) {
    const content = `${REFERENCE_HEAD}\n<reference>\n${args.reference}\n</reference>`;
    history.splice(-1, 0, { role: "user", content });
  }
  return [{ role: "system", content: system }, ...history];
}
