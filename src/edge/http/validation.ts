// Turns untrusted JSON and query strings into typed values, or into one 422 that names every field
// at fault in the contract's words. The schemas are the same ones the OpenAPI document prints.
import {
  Kind,
  type Static,
  type TObject,
  type TProperties,
  type TSchema,
} from "@sinclair/typebox";
import {
  TypeCompiler, ValueErrorType, type TypeCheck, type ValueError,
} from "@sinclair/typebox/compiler";
import { Value } from "@sinclair/typebox/value";
import { isUtf8 } from "node:buffer";
import { Fault, fieldFault, type FieldErrors } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { isCollecting, prepareOf, WITH_MESSAGE, withErrors } from "#core/schema.ts";
import { isLonger, isRecord, isUnsafeKey, parsedJson, UNSAFE_KEY } from "#core/values.ts";

export type Validate<T> = (value: unknown) => T;

/** `label_ids.0` → `label ids.0`, as the contract's messages spell field names. */
const spoken = (field: string): string => field.replaceAll("_", " ");

function sizeMessage(field: string, kind: "most" | "least", schema: TSchema, bound: number): string {
  const unit = schema.type === "string" ? " characters" : schema.type === "array" ? " items" : "";
  if (kind === "least") {
    const verb = schema.type === "array" ? "must have at least" : "must be at least";
    return `The ${spoken(field)} ${verb} ${bound}${unit}.`;
  }
  const verb = schema.type === "array" ? "may not have more than" : "may not be greater than";
  return `The ${spoken(field)} ${verb} ${bound}${unit}.`;
}

const TYPE_WORDS: Record<string, string> = {
  string: "must be a string",
  integer: "must be an integer",
  number: "must be a number",
  boolean: "field must be true or false",
  array: "must be an array",
  object: "must be an object",
};

const CHOICES_NAMED_MAX = 24;

/** The constants a union allows, as the end of a sentence. */
function choicesOf(schema: TSchema): string {
  const constants = ((schema.anyOf ?? []) as TSchema[]).filter((member) => member[Kind] !== "Null")
    .map((member) => member.const as unknown);
  const isList = constants.length > 0 && constants.length <= CHOICES_NAMED_MAX
    && constants.every((constant) => typeof constant === "string");
  return isList ? `: it is one of ${constants.join(", ")}.` : ".";
}

function typeMessage(field: string, schema: TSchema): string {
  const words = typeof schema.type === "string" ? TYPE_WORDS[schema.type] : undefined;
  return words
    ? `The ${spoken(field)} ${words}.`
    : `The selected ${spoken(field)} is invalid${choicesOf(schema)}`;
}

const isMissing = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === "string" && value.trim() === "");

/** URLs are shown and logged, so they must not contain secrets. */
function hasCredentials(text: string): boolean {
  const { username = "", password = "" } = URL.parse(text) ?? {};
  return username + password !== "";
}

/** `error`: of an object whose schema names all that it may have. */
function unknownMessage(field: string, { schema }: ValueError): string {
  const known = Object.keys((schema.properties ?? {}) as TProperties).slice(0, CHOICES_NAMED_MAX);
  return `The field ${field} does not exist${known.length > 0 ? `: use ${known.join(", ")}` : ""}.`;
}

function messageFor(field: string, error: ValueError): string {
  const { schema, value } = error;
  if (error.type === ValueErrorType.ObjectAdditionalProperties) return unknownMessage(field, error);
  if (error.type === ValueErrorType.ObjectRequiredProperty || isMissing(value)) {
    return `The ${spoken(field)} field is required.`;
  }
  const own = (schema as Record<string, unknown>)[WITH_MESSAGE];
  if (typeof own === "string") {
    return error.type === ValueErrorType.StringFormat && hasCredentials(String(value))
      ? own.replace(/valid URL\.$/, "valid URL, without a user name or password.") : own;
  }
  switch (error.type) {
    case ValueErrorType.StringMaxLength:
      return sizeMessage(field, "most", schema, Number(schema.maxLength));
    case ValueErrorType.StringMinLength:
      return sizeMessage(field, "least", schema, Number(schema.minLength));
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.NumberMaximum:
      return sizeMessage(field, "most", schema, Number(schema.maximum));
    case ValueErrorType.Integer:
      if (!isUnsafe(value)) return typeMessage(field, schema);
      return Number(value) > 0
        ? sizeMessage(field, "most", schema, schema.maximum ?? Number.MAX_SAFE_INTEGER)
        : sizeMessage(field, "least", schema, schema.minimum ?? Number.MIN_SAFE_INTEGER);
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.NumberMinimum:
      return sizeMessage(field, "least", schema, Number(schema.minimum));
    case ValueErrorType.ArrayMaxItems:
      return sizeMessage(field, "most", schema, Number(schema.maxItems));
    case ValueErrorType.ArrayMinItems:
      return sizeMessage(field, "least", schema, Number(schema.minItems));
    case ValueErrorType.ArrayUniqueItems:
      return `The ${spoken(field)} field has a duplicate value.`;
    case ValueErrorType.StringPattern:
      return `The ${spoken(field)} format is invalid.`;
    default:
      return typeMessage(field, schema);
  }
}

/** True when the object has every constant the schema asks for, and there is one. */
function hasConstantsOf(schema: TSchema, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const constants = Object.entries((schema.properties ?? {}) as TProperties)
    .filter(([, property]) => property.const !== undefined);
  return constants.length > 0 && constants.every(
    ([name, property]) => (value as Record<string, unknown>)[name] === property.const);
}

/** The union member the value is meant for: the only non-null one, or the one it names. */
function meantMember(union: TSchema, value: unknown): TSchema | undefined {
  const members = ((union.anyOf ?? []) as TSchema[]).filter((member) => member[Kind] !== "Null");
  return members.length === 1
    ? members[0]
    : members.find((member) => hasConstantsOf(member, value));
}

/** The errors worth reporting: for a union, those of the member the value is meant for. */
function* tellingErrors(errors: Iterable<ValueError>): Iterable<ValueError> {
  for (const error of errors) {
    const members = (error.schema.anyOf ?? []) as TSchema[];
    const meant = error.type === ValueErrorType.Union && meantMember(error.schema, error.value);
    const inner = meant ? error.errors[members.indexOf(meant)] : undefined;
    if (inner) yield* tellingErrors(inner);
    else yield error;
  }
}

/** The compiled check counts UTF-16 units; JSON Schema, as clients apply it, counts characters. */
const isExcused = ({ type, schema, value }: ValueError): boolean =>
  type === ValueErrorType.StringMaxLength && !isLonger(String(value), Number(schema.maxLength));

function collectErrors(errors: Iterable<ValueError>): FieldErrors {
  const found: FieldErrors = {};
  for (const error of tellingErrors(errors)) {
    if (isExcused(error)) continue;
    const field = error.path.slice(1).replaceAll("/", ".") || "body";
    // A field's first error is enough: the others that a missing value causes are noise.
    found[field] ??= [messageFor(field, error)];
  }
  return found;
}

const BOOLEANS = new Map<unknown, boolean>([
  [1, true], [0, false], ["1", true], ["0", false], ["true", true], ["false", false],
]);

const readNumber = (value: unknown): unknown =>
  typeof value === "string" && /^\s*-?\d{1,16}(\.\d{1,15})?\s*$/.test(value) ? Number(value) : value;

/** Larger integers are not exact in JavaScript, and fit no database column. */
const isUnsafe = (value: unknown): boolean =>
  Number.isInteger(Number(value)) && !Number.isSafeInteger(Number(value));

/**
 * Accepts what clients of this API family send: numbers as text, booleans as 0 and 1. `isNew`: the
 * body creates something, so blank optional fields count as left out.
 */
function coerce(schema: TSchema, given: unknown, isNew: boolean): unknown {
  const prepare = prepareOf(schema);
  const value = prepare ? prepare(given) : given;
  switch (schema.type) {
    case "integer": {
      const read = readNumber(value);
      return typeof read === "number" && !Number.isSafeInteger(read) ? String(read) : read;
    }
    case "number":
      return readNumber(value);
    case "boolean":
      return BOOLEANS.get(value) ?? value;
    case "array":
      return Array.isArray(value)
        ? value.map((item) => coerce(schema.items as TSchema, item, isNew))
        : value;
    case "object":
      return coerceObject(schema, value, isNew);
    default: {
      const meant = meantMember(schema, value);
      return meant && value !== null ? coerce(meant, value, isNew) : value;
    }
  }
}

/** Blank text counts as left out for a number or a text; for a list or an object it is an error. */
const isLeftOut = (property: TSchema, given: unknown): boolean =>
  given === null || (isMissing(given) && property.type !== "object" && property.type !== "array");

function coerceObject(schema: TSchema, value: unknown, isNew: boolean): unknown {
  if (!isRecord(value)) return value;
  const properties = (schema.properties ?? {}) as TProperties;
  const required = new Set((schema.required ?? []) as string[]);
  const result: Record<string, unknown> = {};
  for (const [key, given] of Object.entries(value)) {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    // A blank required field counts as missing, as in the API family Parley is compatible with.
    if (property && required.has(key) && isMissing(given)) continue;
    const read = property ? coerce(property, given, isNew) : given;
    if (isNew && property && isLeftOut(property, given) && !Value.Check(property, read)) continue;
    result[key] = read;
  }
  return result;
}

interface ValidationOptions {
  /** The body creates something; otherwise it is an update, in which null has a meaning. */
  isNew?: boolean;
  /** Top-level message of the 422; absent: the first field's message. */
  message?: string;
}

/**
 * Compiles the schema once, on first use; the returned function throws a Fault 422 that lists every
 * invalid field, unless the schema is `collectingErrors`.
 */
export function compileValidation<T extends TObject>(
  schema: T,
  options: ValidationOptions = {},
): Validate<Static<T>> {
  let compiled: TypeCheck<T> | null = null;
  return (value) => {
    compiled ??= TypeCompiler.Compile(schema);
    const coerced = coerceObject(schema, value, options.isNew ?? false);
    if (compiled.Check(coerced)) return coerced as Static<T>;
    const errors = collectErrors(compiled.Errors(coerced));
    if (Object.keys(errors).length === 0) return coerced as Static<T>;
    if (!isCollecting(schema)) throw validationFault(errors, options.message);
    return withErrors(coerced as Record<string, unknown>, errors) as Static<T>;
  };
}

function validationFault(errors: FieldErrors, message?: string): Fault {
  const first = Object.values(errors)[0]?.[0] ?? "The given data was invalid.";
  return new Fault(422, message ?? first, { errors });
}

function assertDepth(text: string): void {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === 0x5c) index += 1;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      if (depth > LIMITS.jsonDepthMax) throw new Fault(400, "The request body is nested too deeply.");
    } else if (code === 0x7d || code === 0x5d) depth -= 1;
  }
}

function assertSafeKeys(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    if (!Array.isArray(value) && isUnsafeKey(key)) {
      throw new Fault(400, `The request body may not have the key ${key}.`);
    }
    assertSafeKeys(member);
  }
}

/**
 * An empty body is an empty object: some clients send none where every field is optional. `sentAs`:
 * the Content-Type. JSON is accepted under any, because curl sends it as a form.
 */
export function parseJsonObject(body: Buffer, sentAs = ""): Record<string, unknown> {
  const value = body.length === 0 ? {} : parseJson(body, sentAs);
  if (!isRecord(value)) throw new Fault(400, "The request body must be a JSON object.");
  return value;
}

const MAY_BE_UNSAFE = new RegExp(`${UNSAFE_KEY}|\\\\u`);

const NO_JSON = "The request body is not valid JSON";
const MEDIA_TYPE = /^[\w.+-]{1,50}\/[\w.+-]{1,100}/;

/** Throws a Fault that says what was sent, if it was sent as something else than JSON. */
function refuseAs(contentType: string): void {
  const [type] = MEDIA_TYPE.exec(contentType.toLowerCase()) ?? [];
  if (type === undefined || type.endsWith("json")) return;
  throw new Fault(400, `${NO_JSON}: it was sent as ${type}. `
    + "Send a JSON object, with Content-Type: application/json.");
}

/** Any JSON value; throws a Fault for invalid JSON, deep nesting or unsafe keys. */
export function parseJson(body: Buffer, sentAs = ""): unknown {
  if (!isUtf8(body)) {
    refuseAs(sentAs);
    throw new Fault(400, "The request body is not valid UTF-8: send it as UTF-8, not compressed.");
  }
  // Windows programs put a byte order mark before their texts.
  const text = body.toString("utf8").replace(/^\ufeff/, "");
  assertDepth(text);
  let value: unknown;
  try {
    value = parsedJson(text);
  } catch (error) {
    refuseAs(sentAs);
    throw new Fault(400, `${NO_JSON}.`, { cause: error });
  }
  // Scanning the text is cheap; the value is walked only when it may contain such a key.
  if (MAY_BE_UNSAFE.test(text)) assertSafeKeys(value);
  return value;
}

/** The query as an object; of a repeated name the last value counts, blank values are left out. */
export function parseQuery(query: string): Record<string, string> {
  const values: Record<string, string> = {};
  if (query === "") return values;
  for (const [name, value] of new URLSearchParams(query)) {
    if (value !== "" && !isUnsafeKey(name)) values[name] = value;
  }
  return values;
}

/** The header's text, or that of the body's member for it; blank means none. Throws Fault 422. */
export function readIdempotencyKey(text: string | undefined): string | null {
  if (text === undefined || text === "") return null;
  const most = LIMITS.idempotencyKeyCharsMax;
  if (text.length <= most) return text;
  throw fieldFault(
    "idempotency_key", `The Idempotency-Key may not be greater than ${most} characters.`);
}
