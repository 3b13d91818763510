// Imports a tool's fields from what its owner has: a cURL command, or operations of an OpenAPI
// document in JSON. Nothing is called or saved: the form shows the result. What a tool cannot
// express (nested objects, files) is left out and listed. Used by import.tsx.
import {
  EMPTY, EMPTY_PARAMETER, type HeaderField, type ParameterField, type ToolFields,
} from "./tool-fields.ts";
import { asIs } from "#ui/dashboard/kit/texts.ts";

export interface Imported {
  fields: ToolFields;
  /** What could not be imported, one sentence each. */
  notes: string[];
}

const TEXT_CHARS_MAX = 2_000_000;
const OPERATIONS_MAX = 500;
const PARAMETERS_MAX = 30;
const DESCRIPTION_CHARS_MAX = 255;
const NAME_CHARS_MAX = 64;
const REFERENCES_MAX = 20;
const PARAMETER_NAME = /^[A-Za-z][A-Za-z_]{1,31}$/;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** Recognizes the format by the beginning; throws an Error that says what is wrong. */
export function importTools(text: string): Imported[] {
  if (text.length > TEXT_CHARS_MAX) throw new Error("This is too long to be read here.");
  return /^\s*\$?\s*curl\s/.test(text) ? [fromCurl(text)] : fromOpenApi(text);
}

interface McpTool {
  name: string;
  description: string;
  input_schema: Json;
}

/** The tools of an MCP server; parameters that the form can show are there for trying the tool. */
export function fromMcp(
  endpoint: string, headers: HeaderField[], tools: McpTool[],
): Imported[] {
  return tools.map(({ name, description, input_schema: schema }) => {
    const required = Array.isArray(schema.required) ? schema.required as unknown[] : [];
    const drawn = Object.entries(resolved(schema, schema.properties)).flatMap(([field, value]) =>
      parameterOf(schema, field, value, "", required.includes(field)) ?? []);
    return {
      notes: [],
      fields: {
        ...structuredClone(EMPTY), endpoint, headers, name: nameOf(name),
        description: (description || name).slice(0, DESCRIPTION_CHARS_MAX),
        schema: drawn.slice(0, PARAMETERS_MAX), mcp: { tool: name, input_schema: schema },
      },
    };
  });
}

/** Lowercase letters and underscores. */
function nameOf(text: string): string {
  const name = text.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase()
    .replace(/[^a-z]+/g, "_").replace(/^_+|_+$/g, "");
  return name.slice(0, NAME_CHARS_MAX) || "look_up";
}

const SPECIAL: Record<string, string> = { n: "\n", t: "\t", r: "\r" };

/**
 * Splits a shell command into words: quotes, escapes and line continuations as in a POSIX shell.
 */
function wordsOf(command: string): string[] {
  const words: string[] = [];
  const pieces = new RegExp([
    /\\\r?\n|\s+/, /\$'((?:\\[\s\S]|[^'\\])*)'/, /'([^']*)'/, /"((?:\\[\s\S]|[^"\\])*)"/,
    /\\([\s\S])/, /([^\s'"\\$]+|\$)/,
  ].map(({ source }) => source).join("|"), "gy");
  let word: string | null = null;
  let end = 0;
  for (const match of command.matchAll(pieces)) {
    const [whole, ansi, single, double, escaped, plain] = match;
    end = match.index + whole.length;
    if (whole.startsWith("\\") && escaped === undefined) continue;
    if (/^\s/.test(whole)) {
      if (word !== null) words.push(word);
      word = null;
      continue;
    }
    const piece = ansi?.replace(/\\([\s\S])/g, (_, one: string) => SPECIAL[one] ?? one)
      ?? single ?? double?.replace(/\\(["\\$`\n])/g, "$1") ?? escaped ?? plain ?? "";
    word = (word ?? "") + piece;
  }
  if (end < command.length) throw new Error("A quotation mark in the command is not closed.");
  if (word !== null) words.push(word);
  return words;
}

/** Options with a value that say nothing of the request itself. */
const IGNORED = new Set([
  "-o", "--output", "-e", "--referer", "--connect-timeout", "--retry", "-w", "--write-out",
  "-c", "--cookie-jar", "--cacert", "--proxy", "-x",
]);
const SHORT = /^-([XHdmuAb])(.+)$/;

function optionsOf(
  words: string[],
): { pairs: [name: string, value: string][]; flags: Set<string> } {
  const pairs: [string, string][] = [];
  const flags = new Set<string>();
  const takes = new Set([
    "-X", "--request", "-H", "--header", "-d", "--data", "--data-raw", "--data-binary", "--json",
    "--data-urlencode", "-u", "--user", "-m", "--max-time", "-A", "--user-agent", "-b", "--cookie",
    "--url", "-F", "--form",
  ]);
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at] ?? "";
    const [, short, joined] = SHORT.exec(word) ?? [];
    const [, long, value] = /^(--[a-z-]+)=([\s\S]*)$/.exec(word) ?? [];
    if (short !== undefined) pairs.push([`-${short}`, joined ?? ""]);
    else if (long !== undefined) pairs.push([long, value ?? ""]);
    else if (takes.has(word)) pairs.push([word, words[at += 1] ?? ""]);
    else if (IGNORED.has(word)) at += 1;
    else if (word.startsWith("-") && word.length > 1) flags.add(word);
    else pairs.push(["--url", word]);
  }
  return { pairs, flags };
}

/** Derives parameters and fixed fields from the values of one sample request. */
function readValues(values: Json, fields: ToolFields, notes: string[]): void {
  for (const [name, value] of Object.entries(values)) {
    const item = Array.isArray(value) ? (value[0] as unknown) : value;
    const type = typeof item;
    if (type !== "string" && type !== "number" && type !== "boolean") {
      notes.push(`"${name}" is a list or an object, which a tool cannot fill in.`);
    } else if (!PARAMETER_NAME.test(name) || fields.schema.length === PARAMETERS_MAX) {
      fields.static_fields.push({ key: name, value: String(value) });
      notes.push(`"${name}" is no name for a parameter, so it is a fixed field.`);
    } else {
      fields.schema.push({
        ...EMPTY_PARAMETER, name,
        type: (Array.isArray(value) ? `list of ${type}s` : type) as ParameterField["type"],
        description: `Such as ${String(item)}`.slice(0, DESCRIPTION_CHARS_MAX),
      });
    }
  }
}

function fromCurl(text: string): Imported {
  const { pairs, flags } = optionsOf(wordsOf(text.trim().replace(/^\$\s*/, "")));
  const all = (...names: string[]) => pairs.filter(([name]) => names.includes(name))
    .map(([, value]) => value);
  const [address] = all("--url");
  if (address === undefined) throw new Error("The command names no address.");
  const url = new URL(/^https?:/i.test(address) ? address : `https://${address}`);
  const notes: string[] = [];
  const fields = structuredClone(EMPTY);
  const json = all("--json");
  const data = [...all("-d", "--data", "--data-raw", "--data-binary", "--data-urlencode"), ...json];
  if (all("-F", "--form").length > 0) notes.push("A tool cannot send files or multipart forms.");
  for (const header of all("-H", "--header")) {
    const [, name = "", value = ""] = /^([^:]+):\s*([\s\S]*)$/.exec(header) ?? [];
    if (name !== "" && !/^(?:content-type|content-length|host|accept)$/i.test(name)) {
      fields.headers.push({ name, value, stored: "" });
    }
  }
  const [user] = all("-u", "--user");
  if (user !== undefined) {
    fields.headers.push({ name: asIs("Authorization"), value: `${asIs("Basic")} ${btoa(user)}`, stored: "" });
  }
  const asQuery = flags.has("-G") || flags.has("--get");
  const [asked] = all("-X", "--request");
  const method = (asked ?? (data.length > 0 && !asQuery ? "POST" : "GET")).toUpperCase();
  const known = METHODS.find((one) => one === method);
  if (!known) throw new Error(`A tool cannot send ${method}.`);
  const seconds = Number(all("-m", "--max-time")[0]);
  if (seconds >= 1) fields.timeout = Math.min(30, Math.round(seconds));
  const isForm = data.length > 0 && json.length === 0 && !isObject(parsed(data.join("&")));
  readValues(Object.fromEntries(url.searchParams), fields, notes);
  const body = isForm ? Object.fromEntries(new URLSearchParams(data.join("&"))) : parsed(data.join("&"));
  if (isObject(body)) readValues(body, fields, notes);
  const where = `${url.origin}${decodeURI(url.pathname)}`;
  return {
    notes,
    fields: {
      ...fields, method: known, endpoint: where, body_format: isForm ? "form" : "json",
      name: nameOf(url.pathname.split("/").filter((part) => /[a-z]/i.test(part)).at(-1) ?? url.hostname),
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Resolves a reference within the document. */
function resolved(document: Json, value: unknown): Json {
  let at = value;
  for (let hops = 0; isObject(at) && typeof at.$ref === "string" && hops < REFERENCES_MAX; hops += 1) {
    at = at.$ref.replace(/^#\//, "").split("/").reduce<unknown>((into, part) =>
      isObject(into) ? into[part.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined, document);
  }
  return isObject(at) ? at : {};
}

const TYPES: Record<string, ParameterField["type"]> = {
  string: "string", number: "number", integer: "number", boolean: "boolean",
};

function parameterOf(
  document: Json, name: string, given: unknown, description: string, isRequired: boolean,
): ParameterField | null {
  const schema = resolved(document, given);
  const kind = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  const items = resolved(document, schema.items);
  const type = kind === "array"
    ? `list of ${TYPES[textOf(items.type)] ?? "string"}s` as ParameterField["type"]
    : TYPES[textOf(kind)];
  if (type === undefined || !PARAMETER_NAME.test(name)) return null;
  const said = description || textOf(schema.description) || name.replaceAll("_", " ");
  const choices = Array.isArray(schema.enum) ? schema.enum.filter((one) => one !== null) : [];
  return {
    name, type, isRequired, choices: choices.join(", "),
    description: said.slice(0, DESCRIPTION_CHARS_MAX).padEnd(3, "."),
  };
}

function fromOpenApi(text: string): Imported[] {
  const document = parsed(text);
  if (!isObject(document) || !isObject(document.paths)) {
    throw new Error("This is neither a cURL command nor an OpenAPI document in JSON.");
  }
  const [server] = Array.isArray(document.servers) ? document.servers as unknown[] : [];
  const base = textOf(isObject(server) ? server.url : "").replace(/\/$/, "");
  const found: Imported[] = [];
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of METHODS) {
      const shared = resolved(document, item);
      const operation = shared[method.toLowerCase()];
      if (!isObject(operation)) continue;
      const given = [shared.parameters, operation.parameters].flat().filter(isObject);
      found.push(operationOf(document, { path: base + path, method, operation, given }));
      if (found.length === OPERATIONS_MAX) return found;
    }
  }
  if (found.length === 0) throw new Error("The document has no operation that a tool could call.");
  return found;
}

function operationOf(
  document: Json,
  { path, method, operation, given }: {
    path: string; method: ToolFields["method"]; operation: Json; given: Json[];
  },
): Imported {
  const notes: string[] = [];
  const fields = { ...structuredClone(EMPTY), method, endpoint: path };
  const add = (name: string, schema: unknown, said: string, isRequired: boolean): void => {
    const parameter = parameterOf(document, name, schema, said, isRequired);
    if (parameter && fields.schema.length < PARAMETERS_MAX) fields.schema.push(parameter);
    else notes.push(`"${name}" cannot be filled in by a tool.`);
  };
  for (const one of given.map((parameter) => resolved(document, parameter))) {
    const place = textOf(one.in);
    if (place === "path" || place === "query") {
      add(textOf(one.name), one.schema, textOf(one.description), place === "path" || one.required === true);
    } else if (place === "header") {
      fields.headers.push({ name: textOf(one.name), value: "", stored: "" });
    }
  }
  const content = resolved(document, resolved(document, operation.requestBody).content);
  const form = content["application/x-www-form-urlencoded"];
  const media = content["application/json"] ?? form;
  const schema = resolved(document, isObject(media) ? media.schema : null);
  const required = Array.isArray(schema.required) ? schema.required as unknown[] : [];
  for (const [name, property] of Object.entries(resolved(document, schema.properties))) {
    add(name, property, "", required.includes(name));
  }
  const security = operation.security ?? document.security;
  if (Array.isArray(security) && security.length > 0) {
    fields.headers.push({ name: asIs("Authorization"), value: "", stored: "" });
    notes.push("It asks for credentials: fill in the header.");
  }
  if (!/^https?:/.test(path)) notes.push("The document names no server: complete the address.");
  return {
    notes,
    fields: {
      ...fields, name: nameOf(textOf(operation.operationId) || `${method} ${path}`),
      description: (textOf(operation.summary) || textOf(operation.description))
        .slice(0, DESCRIPTION_CHARS_MAX),
      body_format: content["application/json"] === undefined && form !== undefined ? "form" : "json",
    },
  };
}
