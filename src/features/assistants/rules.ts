// Rules of an assistant that need more than one field, a catalog or rows of the account. All of
// them run in addition to the schema's, so that one refusal names every invalid field. A rule
// applies only when a field it reads was sent: stored values were valid when they were stored.
import type { FieldErrors } from "#core/faults.ts";
import { microsFromDecimal } from "#core/money.ts";
import { takesInboundCalls, type PhoneNumber } from "#features/phone-numbers/phone-numbers.ts";
import { toolErrors } from "./built-in-tools.ts";
import type { Catalogs, SpeechProvider } from "./catalogs.ts";
import type { Field, Mode, Profile } from "./settings.ts";

export type ModelType = "llm" | "multimodal" | "dualplex";

/** Lookups in other features and in the operator's model list. */
export interface References {
  model(id: number, type: ModelType): boolean;
  /** The model that an assistant gets when it switches to a mode; null: none is offered. */
  defaultModel(type: ModelType): number | null;
  tool(accountId: number, id: number): Promise<boolean>;
  knowledgebase(accountId: number, id: number): Promise<boolean>;
}

/** Rows of the account; another account's ids count as missing. */
interface Owned {
  folder(id: number): Promise<boolean>;
  label(id: number): Promise<boolean>;
  assistant(id: number): Promise<boolean>;
  phoneNumber(id: number): Promise<PhoneNumber | null>;
  /** The inbound assistant that answers the number. */
  inboundAssistantOn(phoneNumberId: number): Promise<number | null>;
}

interface Case {
  accountId: number;
  /** Null while the assistant is being created. */
  assistantId: number | null;
  /** True when any of the fields was sent; always true on create. */
  sent(...fields: Field[]): boolean;
  /** The assistant after the change, without fields that are missing or already invalid. */
  next: Partial<Profile>;
  catalogs: Catalogs;
  references: References;
  owned: Owned;
}

type Rule = (
  judged: Case, fault: (field: string, message: string) => void,
) => void | Promise<void>;

export const NUMBER_TAKEN =
  "The selected phone number is already assigned to another inbound assistant.";

const spoken = (field: string): string => field.replaceAll("_", " ");
export const invalid = (field: string): string => `The selected ${spoken(field)} is invalid.`;
const requiredWhen = (field: string, other: string, value: string): string =>
  `The ${spoken(field)} field is required when ${spoken(other)} is ${value}.`;

/** Defaults for the fields that depend on the mode, where the client did not send them. */
export function modeDefaults(
  mode: Mode,
  current: Profile,
  references: References,
): Partial<Profile> {
  const speech = { synthesizer_provider_id: null, transcriber_provider_id: null };
  if (mode === "pipeline") {
    return {
      ...speech,
      llm_model_id: references.defaultModel("llm"),
      multimodal_model_id: null,
      chat_llm_fallback_id: null,
      turn_detection_threshold: null,
    };
  }
  return {
    ...speech,
    llm_model_id: null,
    multimodal_model_id: references.defaultModel(mode),
    fillers: false,
    allow_interruptions: true,
    knowledgebase_mode: current.knowledgebase_mode === null ? null : "function_call",
  };
}

/**
 * What a new assistant gets where its creator did not choose: inbound, in the first language of the
 * catalog, with the first voice that fits and the operator's default model.
 */
export function firstChoices(
  { mode = "pipeline", language_id: language }: Partial<Profile>,
  catalogs: Catalogs, references: References,
): Partial<Profile> {
  const languageId = language ?? catalogs.languages()[0]?.id;
  // A language that does not exist is the only thing at fault: some voice is chosen all the same.
  const known = languageId === undefined ? null : catalogs.findLanguage(languageId);
  const [voice] = catalogs.voices({ mode, ...known && { language_id: known.id } });
  return {
    type: "inbound", mode, timezone: "UTC",
    ...languageId && { language_id: languageId },
    ...voice && { voice_id: voice.id },
    ...mode === "pipeline"
      ? { llm_model_id: references.defaultModel("llm") }
      : { multimodal_model_id: references.defaultModel(mode) },
  };
}

const requiredOnCreate: Rule = ({ assistantId, next }, fault) => {
  if (assistantId !== null) return;
  const fields = ["name", "system_prompt", "voice_id"] as const;
  for (const field of fields) {
    if (next[field] === undefined) fault(field, `The ${spoken(field)} field is required.`);
  }
};

const languages: Rule = ({ sent, next, catalogs }, fault) => {
  if (sent("language_id") && next.language_id !== undefined
    && !catalogs.findLanguage(next.language_id)) {
    fault("language_id", invalid("language_id"));
  }
  if (!sent("secondary_language_ids")) return;
  next.secondary_language_ids?.forEach((id, index) => {
    const field = `secondary_language_ids.${index}`;
    if (!catalogs.findLanguage(id)) fault(field, invalid(field));
  });
};

const voice: Rule = ({ sent, next, catalogs }, fault) => {
  if (!sent("voice_id", "mode") || next.voice_id === undefined) return;
  const found = catalogs.findVoice(next.voice_id);
  if (!found) fault("voice_id", invalid("voice_id"));
  else if (next.mode !== undefined && !found.modes.includes(next.mode)) {
    fault("voice_id", "The selected voice is not compatible with the chosen engine type.");
  }
};

const models: Rule = ({ sent, next, references }, fault) => {
  const { mode, llm_model_id: llm, multimodal_model_id: multimodal } = next;
  if (sent("llm_model_id", "mode")) {
    if (typeof llm === "number") {
      if (!references.model(llm, "llm")) fault("llm_model_id", invalid("llm_model_id"));
    } else if (mode === "pipeline" && llm === null) {
      fault("llm_model_id", requiredWhen("llm_model_id", "mode", mode));
    }
  }
  if (sent("multimodal_model_id", "mode")) {
    const types: ModelType[] = mode === "multimodal" || mode === "dualplex"
      ? [mode]
      : ["multimodal", "dualplex"];
    if (typeof multimodal === "number") {
      const known = types.some((type) => references.model(multimodal, type));
      if (!known) fault("multimodal_model_id", invalid("multimodal_model_id"));
    } else if (mode !== undefined && mode !== "pipeline" && multimodal === null) {
      fault("multimodal_model_id", requiredWhen("multimodal_model_id", "mode", mode));
    }
  }
  const fallback = next.chat_llm_fallback_id;
  if (sent("chat_llm_fallback_id") && typeof fallback === "number"
    && !references.model(fallback, "llm")) {
    fault("chat_llm_fallback_id", invalid("chat_llm_fallback_id"));
  }
};

function providerRule(
  field: "synthesizer_provider_id" | "transcriber_provider_id",
  modes: readonly Mode[],
  lookup: (catalogs: Catalogs) => {
    find(id: number): SpeechProvider | null;
    supporting(languageId: number): SpeechProvider[];
  },
): Rule {
  const noun = spoken(field).replace(" id", "");
  return ({ sent, next, catalogs }, fault) => {
    const id = next[field];
    if (!sent(field, "mode", "language_id") || typeof id !== "number") return;
    const { find, supporting } = lookup(catalogs);
    const { mode, language_id: language } = next;
    const provider = find(id);
    if (!provider) fault(field, invalid(field));
    else if (mode !== undefined && !modes.includes(mode)) {
      fault(field, `The ${noun} can only be chosen in ${modes.join(" or ")} mode.`);
    } else if (language !== undefined && catalogs.findLanguage(language)
      && !supporting(language).includes(provider)) {
      fault(field, `The selected ${noun} does not support the language.`);
    }
  };
}

const synthesizer = providerRule(
  "synthesizer_provider_id", ["pipeline", "dualplex"],
  (catalogs) => ({ find: catalogs.findSynthesizer, supporting: catalogs.synthesizers }));
const transcriber = providerRule(
  "transcriber_provider_id", ["pipeline"],
  (catalogs) => ({ find: catalogs.findTranscriber, supporting: catalogs.transcribers }));

const modeBound: Rule = ({ sent, next }, fault) => {
  if (next.mode === undefined || next.mode === "pipeline") return;
  if (sent("allow_interruptions", "mode") && next.allow_interruptions === false) {
    fault(
      "allow_interruptions", "Interruptions cannot be disabled in multimodal or dualplex mode.");
  }
  if (sent("fillers", "mode") && next.fillers === true) {
    fault("fillers", "Fillers are only available in pipeline mode.");
  }
  if (sent("knowledgebase_mode", "mode") && next.knowledgebase_mode === "prompt") {
    fault(
      "knowledgebase_mode", "Only function_call mode is available for multimodal assistants.");
  }
};

const ownedRows: Rule = async ({ accountId, sent, next, references, owned }, fault) => {
  type Known = (id: number) => Promise<boolean>;
  const check = async (field: Field, id: number | null | undefined, known: Known) => {
    if (sent(field) && typeof id === "number" && !await known(id)) fault(field, invalid(field));
  };
  await check("folder_id", next.folder_id, owned.folder);
  await check(
    "knowledgebase_id", next.knowledgebase_id, (id) => references.knowledgebase(accountId, id));
  const checkAll = async (field: Field, ids: number[] = [], known: Known): Promise<void> => {
    if (!sent(field)) return;
    for (const [index, id] of ids.entries()) {
      if (!await known(id)) fault(`${field}.${index}`, invalid(`${field}.${index}`));
    }
  };
  await checkAll("label_ids", next.label_ids, owned.label);
  await checkAll("tool_ids", next.tool_ids, (id) => references.tool(accountId, id));
};

const phoneNumber: Rule = async ({ assistantId, sent, next, owned }, fault) => {
  const id = next.phone_number_id;
  if (!sent("phone_number_id", "type") || typeof id !== "number") return;
  const number = await owned.phoneNumber(id);
  if (!number) return fault("phone_number_id", invalid("phone_number_id"));
  if (next.type !== "inbound") return;
  const holder = await owned.inboundAssistantOn(id);
  if (!takesInboundCalls(number.type)) {
    fault("phone_number_id", "A caller ID number cannot be assigned to an inbound assistant.");
  } else if (holder !== null && holder !== assistantId) fault("phone_number_id", NUMBER_TAKEN);
};

const webhook: Rule = ({ sent, next }, fault) => {
  if (!sent("is_webhook_active", "webhook_url")) return;
  if (next.is_webhook_active === true && next.webhook_url === null) {
    fault("webhook_url", requiredWhen("webhook_url", "is_webhook_active", "true"));
  }
};

const spendCap: Rule = ({ next }, fault) => {
  const cap = next.daily_spend_cap;
  if (typeof cap === "number" && microsFromDecimal(String(cap)) === null) {
    fault("daily_spend_cap", "The daily spend cap may not have more than 6 decimals.");
  }
};

const namedOnce: Rule = ({ sent, next }, fault) => {
  const lists: [Field, string, { name: string }[] | undefined][] = [
    ["post_call_schema", "post_call_schema", next.post_call_schema],
    ["widget_settings", "widget_settings.form.fields", next.widget_settings?.form?.fields],
  ];
  for (const [field, path, list = []] of lists) {
    const names = sent(field) ? list.map(({ name }) => name) : [];
    names.forEach((name, index) => {
      const at = `${path}.${index}.name`;
      if (names.indexOf(name) < index) fault(at, `The ${spoken(at)} has a duplicate value.`);
    });
  }
};

const builtInTools: Rule = async ({ assistantId, sent, next, owned }, fault) => {
  if (!sent("tools")) return;
  for (const [index, item] of (next.tools ?? []).entries()) {
    for (const [member, message] of Object.entries(toolErrors(item))) {
      fault(`tools.${index}.${member}`, message);
    }
    if (item.type === "assistant_transfer") {
      const field = `tools.${index}.assistant_id`;
      if (item.assistant_id === assistantId) {
        fault(field, "An assistant cannot be transferred to itself.");
      } else if (!await owned.assistant(item.assistant_id)) fault(field, invalid(field));
    }
    if (item.type === "warm_call_transfer" && item.outbound_phone_id !== null
      && !await owned.phoneNumber(item.outbound_phone_id)) {
      const field = `tools.${index}.outbound_phone_id`;
      fault(field, invalid(field));
    }
  }
};

const RULES: readonly Rule[] = [
  requiredOnCreate, languages, voice, models, synthesizer, transcriber, modeBound, ownedRows,
  phoneNumber, webhook, spendCap, namedOnce, builtInTools,
];

/** Errors of the schema and of the rules, by field; empty when everything is valid. */
export async function findErrors(
  judged: Case, schemaErrors: FieldErrors,
): Promise<FieldErrors> {
  const errors: FieldErrors = { ...schemaErrors };
  const faulty = new Set(Object.keys(schemaErrors).map((field) => field.split(".")[0]));
  const fault = (field: string, message: string): void => {
    // A field that failed the schema is reported only once.
    if (!faulty.has(field.split(".")[0])) errors[field] = [...(errors[field] ?? []), message];
  };
  for (const rule of RULES) await rule(judged, fault);
  return errors;
}
