// What the page that embeds the widget says in its script tag. Attributes win over the assistant's
// own settings; invalid values are ignored, since a typo must not cost the widget.

import type { Settings } from "./api.ts";

export interface Field {
  name: string;
  label: string;
  type?: "text" | "email" | "tel" | "textarea";
  required?: boolean;
}

export interface Visitor {
  id: string;
  hash?: string;
  name?: string;
  email?: string;
}

export interface Options {
  assistant: string;
  origin: string;
  position?: string;
  color?: string;
  theme?: string;
  language?: string;
  title?: string;
  subtitle?: string;
  launcherText?: string;
  launcherSubtext?: string;
  callText?: string;
  formTitle?: string;
  formText?: string;
  opensItself: boolean;
  variables: Record<string, string>;
  /** The visitor who has signed in at the page, whose server signs the id (`hash`). */
  visitor?: Visitor;
  /** Asked before the conversation begins. */
  fields: Field[];
}

function parse(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "null") as unknown;
  } catch {
    return null;
  }
}

const TYPES = { text: "text", email: "email", phone: "tel", tel: "tel", textarea: "textarea" } as const;

function readFields(value: unknown): Field[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry: unknown): Field[] => {
    const { name, label, type, required } = (entry ?? {}) as Record<string, unknown>;
    if (typeof name !== "string") return [];
    return [{
      name,
      label: typeof label === "string" ? label : name.replaceAll("_", " "),
      type: TYPES[String(type) as keyof typeof TYPES] ?? "text",
      required: required === true,
    }];
  });
}

function readVariables(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([name, given]) => [name, String(given)]));
}

const present = <Texts extends Record<string, string | undefined>>(texts: Texts) =>
  Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== undefined && text !== "")) as
    { [Name in keyof Texts]?: string };

export function readOptions(script: HTMLScriptElement): Options | null {
  const given = script.dataset;
  const assistant = given.assistant ?? given.assistantId;
  if (assistant === undefined || assistant === "") return null;
  const texts = {
    position: given.position,
    color: given.color,
    theme: given.theme,
    language: given.language,
    title: given.headerTitle,
    subtitle: given.headerSubtitle,
    launcherText: given.buttonMainText,
    launcherSubtext: given.buttonSubText,
    callText: given.startButtonText,
    formTitle: given.modalTitle,
    formText: given.modalDescription,
  };
  const visitor = present({
    id: given.userId, hash: given.userHash, name: given.userName, email: given.userEmail,
  });
  return {
    ...present(texts),
    ...(visitor.id === undefined ? {} : { visitor: { ...visitor, id: visitor.id } }),
    assistant,
    origin: new URL(script.src).origin,
    opensItself: given.open === "true" || given.open === "",
    variables: readVariables(parse(given.variables)),
    fields: readFields(parse(given.fields)),
  };
}

/** The tag's fields, else the assistant's own. */
export const fieldsOf = ({ fields }: Options, settings: Settings | null): Field[] =>
  fields.length > 0 ? fields : settings?.widget_settings.form?.fields ?? [];

const POSITION = /^(bottom|middle|top)-(left|center|right)$/;

/** The first valid text wins; `bottom-right` and `right-bottom` are both valid. */
export function readPosition(...texts: (string | undefined)[]): { x: string; y: string } {
  for (const text of texts) {
    for (const spelled of [text ?? "", (text ?? "").split("-").reverse().join("-")]) {
      const match = POSITION.exec(spelled);
      if (match && spelled !== "middle-center") return { y: match[1] ?? "", x: match[2] ?? "" };
    }
  }
  return { x: "right", y: "bottom" };
}
