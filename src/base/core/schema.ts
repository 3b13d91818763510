// What this program's TypeBox schemas say beyond JSON Schema: messages of their own, formats, how
// to read the spellings clients send, and bodies to whose errors a feature adds its own. Read by
// http/validation.ts and http/openapi-schema.ts.
import { FormatRegistry, Type, type SchemaOptions, type TSchema } from "@sinclair/typebox";
import type { FieldErrors } from "./faults.ts";
import { isTimeZone, parseHttpUrl } from "./values.ts";

/** Schema option: the message for any violation of this field, instead of the general one. */
export const WITH_MESSAGE = "x-message";

export function withMessage(message: string): SchemaOptions {
  return { [WITH_MESSAGE]: message };
}

/** Schema options: what the field means to a stranger, and a value it may have. */
export const about = (description: string, ...examples: unknown[]): SchemaOptions =>
  examples.length === 0 ? { description } : { description, examples };

const NAMED = Symbol("named");
const SHOWN_AS = Symbol("shownAs");

/** Schema options: printed once, among the OpenAPI document's components, and described there. */
export const named = (name: string, description: string, ...examples: unknown[]): SchemaOptions =>
  ({ [NAMED]: name, ...about(description, ...examples) }) as SchemaOptions;

export function nameOf(schema: TSchema): string | undefined {
  return (schema as { [NAMED]?: string })[NAMED];
}

/** Schema option: the document prints another schema, where the validated one says too little. */
export const shownAs = (schema: TSchema): SchemaOptions =>
  ({ [SHOWN_AS]: schema }) as SchemaOptions;

export function shownFor(schema: TSchema): TSchema | undefined {
  return (schema as { [SHOWN_AS]?: TSchema })[SHOWN_AS];
}

export const Nullable = <T extends TSchema>(schema: T, options: SchemaOptions = {}) =>
  Type.Union([schema, Type.Null()], options);

export const OneOf = <const T extends string>(
  values: readonly T[], options: SchemaOptions = {},
) => Type.Union(values.map((value) => Type.Literal(value)), options);

/** Turns a spelling clients use into the one the schema describes; must not throw on anything. */
type Prepare = (value: unknown) => unknown;

const PREPARE = Symbol("prepare");

/** Schema option: the value is passed through `prepare` before it is checked. */
export function prepared(prepare: Prepare): SchemaOptions {
  return { [PREPARE]: prepare } as SchemaOptions;
}

export function prepareOf(schema: TSchema): Prepare | undefined {
  return (schema as { [PREPARE]?: Prepare })[PREPARE];
}

const COLLECTING = Symbol("collecting");
const ERRORS = Symbol("errors");

/**
 * Option of a body's schema: an invalid field does not end the request. It is left out of the body
 * and reported by `errorsOf`, so that a handler can add the errors that it finds itself.
 */
export const collectingErrors = { [COLLECTING]: true } as SchemaOptions;

export function isCollecting(schema: TSchema): boolean {
  return (schema as { [COLLECTING]?: boolean })[COLLECTING] === true;
}

/** The body without the fields at fault; a field named in the errors is never in it. */
export function withErrors(body: Record<string, unknown>, errors: FieldErrors): object {
  const faulty = new Set(Object.keys(errors).map((field) => field.split(".")[0]));
  const kept = Object.fromEntries(Object.entries(body).filter(([name]) => !faulty.has(name)));
  return Object.defineProperty(kept, ERRORS, { value: errors });
}

/** What validation found in a body whose schema is `collectingErrors`; empty when all was right. */
export function errorsOf(body: object): FieldErrors {
  return (body as { [ERRORS]?: FieldErrors })[ERRORS] ?? {};
}

FormatRegistry.Set("http-url", (text) => parseHttpUrl(text) !== null);
FormatRegistry.Set("https-url", (text) => parseHttpUrl(text)?.protocol === "https:");
// Intl also takes offsets such as +01:00, which are no IANA names.
FormatRegistry.Set("time-zone", (text) => /^[A-Za-z]/.test(text) && isTimeZone(text));

export const NonBlank = (charsMax: number, options: SchemaOptions = {}) =>
  Type.String({ pattern: "\\S", maxLength: charsMax, ...options });

export const HttpUrl = (message: string) =>
  Type.String({ format: "http-url", maxLength: 2048, ...withMessage(message) });

export const HttpsUrl = (message: string) =>
  Type.String({ format: "https-url", maxLength: 2048, ...withMessage(message) });

/** 24:00 is the end of the day. */
export const TimeOfDay = (description: string, example: string) => Type.String({
  pattern: "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$",
  ...about(description, example), ...withMessage("The time must be HH:MM."),
});

export const TimeZone = (message: string) =>
  Type.String({ format: "time-zone", maxLength: 64, ...withMessage(message) });
