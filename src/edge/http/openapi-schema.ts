// Prints this program's TypeBox schemas as the JSON Schemas of the OpenAPI document: named ones
// once as components, literals as enums, nulls as types, and every field with an example.
import type { TSchema } from "@sinclair/typebox";
import { nameOf, shownFor, WITH_MESSAGE } from "#core/schema.ts";

export type Printed = Record<string, unknown>;

/** Formats only this program knows, as standard ones; "": none, as URLs may have placeholders. */
const FORMATS: Record<string, string> = { "http-url": "", "https-url": "uri", origin: "" };
const COMPONENT = "#/components/schemas/";

export interface Printer {
  /** `isUpdate`: for the body of an update, in which nothing has a default. */
  print(schema: TSchema, isUpdate?: boolean): Printed;
  exampleOf(printed: Printed): unknown;
  components: Record<string, Printed>;
}

const membersOf = (schema: Printed): Printed[] => (schema.anyOf ?? []) as Printed[];
const isNull = (schema: Printed): boolean => schema.type === "null";

/** Prints constants of one type as an enum, and null beside one type as two types. */
function simplified(union: Printed): Printed {
  const { anyOf, ...rest } = union;
  const members = membersOf({ anyOf });
  const others = members.filter((member) => !isNull(member));
  const nulls = others.length < members.length;
  const [first] = others;
  if (first && others.every((member) => member.const !== undefined && member.type === first.type)) {
    const values = others.map((member) => member.const);
    return withNull({ ...rest, type: first.type, enum: values }, nulls);
  }
  if (others.length !== 1 || !first) return union;
  const { description, examples, ...bare } = first;
  const described = {
    ...(description === undefined ? {} : { description }),
    ...(examples === undefined ? {} : { examples }),
  };
  if (first.$ref !== undefined) return { ...described, ...rest, anyOf: [bare, { type: "null" }] };
  if (typeof first.type !== "string") return { ...described, ...union };
  return withNull({ ...bare, ...described, ...rest }, nulls);
}

function withNull(schema: Printed, nulls: boolean): Printed {
  if (!nulls) return schema;
  const values = schema.enum as unknown[] | undefined;
  return {
    ...schema,
    type: [schema.type, "null"],
    ...(values ? { enum: [...values, null] } : {}),
  };
}

/** Prints a map: with arbitrary keys, or with a pattern for its keys. */
function mapOf({ patternProperties, ...rest }: Printed): Printed {
  const [[pattern, value] = []] = Object.entries(patternProperties as Record<string, Printed>);
  return {
    ...rest,
    additionalProperties: value,
    ...(pattern === "^(.*)$" ? {} : { propertyNames: { pattern } }),
  };
}

const composed = (
  entries: Record<string, Printed>, exampleOf: (schema: Printed) => unknown,
): object => Object.fromEntries(
  Object.entries(entries)
    .map(([name, schema]) => [name, exampleOf(schema)])
    .filter(([, value]) => value !== undefined));

function exampleFor(schema: Printed, components: Record<string, Printed>): unknown {
  const inner = (other: Printed): unknown => exampleFor(other, components);
  if (typeof schema.$ref === "string") {
    return inner(components[schema.$ref.slice(COMPONENT.length)] ?? {});
  }
  const [given] = (schema.examples ?? []) as unknown[];
  if (given !== undefined) return given;
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (schema.enum !== undefined) return (schema.enum as unknown[])[0];
  if (schema.properties !== undefined) {
    return composed(schema.properties as Record<string, Printed>, inner);
  }
  const types = [schema.type].flat();
  if (types.includes("array")) {
    const item = inner((schema.items ?? {}) as Printed);
    return item === undefined ? undefined : [item];
  }
  const member = membersOf(schema).find((one) => !isNull(one));
  if (member) return inner(member);
  return types.includes("boolean") ? true : isNull(schema) ? null : undefined;
}

/** `isMap`: the keys are field names, and a field may be called default. */
function withoutDefaults(value: unknown, isMap = false): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => withoutDefaults(item));
  return Object.fromEntries(Object.entries(value)
    .filter(([name]) => isMap || name !== "default")
    .map(([name, item]) =>
      [name, name === "examples" ? item : withoutDefaults(item, name === "properties")]));
}

/** Refers an update's components to versions without defaults, where they have defaults. */
function forUpdate(value: unknown, components: Record<string, Printed>): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => forUpdate(item, components));
  const { $ref } = value as Printed;
  if (typeof $ref !== "string") {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, forUpdate(item, components)]));
  }
  const name = $ref.slice(COMPONENT.length);
  const bare = forUpdate(withoutDefaults(components[name]), components) as Printed;
  if (JSON.stringify(bare) === JSON.stringify(components[name])) return value;
  components[`${name}Update`] = bare;
  return { ...value, $ref: `${COMPONENT}${name}Update` };
}

export function createPrinter(): Printer {
  const components: Record<string, Printed> = {};
  const exampleOf = (schema: Printed): unknown => exampleFor(schema, components);

  const bodyOf = (schema: TSchema): Printed => {
    const printed: Printed = {};
    for (const [name, value] of Object.entries(schema) as [string, unknown][]) {
      if (name === WITH_MESSAGE) continue;
      printed[name] = memberOf(name, value);
    }
    const format = FORMATS[String(printed.format)];
    if (format === "") delete printed.format;
    else if (format !== undefined) printed.format = format;
    if (printed.patternProperties !== undefined) return mapOf(printed);
    return printed.anyOf === undefined ? printed : simplified(printed);
  };
  const memberOf = (name: string, value: unknown): unknown => {
    switch (name) {
      case "properties":
      case "patternProperties":
        return Object.fromEntries(Object.entries(value as Record<string, TSchema>)
          .map(([key, member]) => [key, withExample(print(member))]));
      case "anyOf":
      case "allOf":
        return (value as TSchema[]).map(print);
      case "items":
      case "additionalProperties":
        return typeof value === "object" ? print(value as TSchema) : value;
      default:
        return value;
    }
  };
  const withExample = (printed: Printed): Printed => {
    if (printed.$ref !== undefined || printed.examples !== undefined) return printed;
    const example = exampleOf(printed);
    return example === undefined ? printed : { ...printed, examples: [example] };
  };
  const print = (schema: TSchema): Printed => {
    const shown = shownFor(schema) ?? schema;
    const name = nameOf(shown);
    if (name === undefined) return bodyOf(shown);
    const printed = withExample(bodyOf(shown));
    const known = components[name];
    if (known && JSON.stringify(known) !== JSON.stringify(printed)) {
      throw new Error(`two schemas have the name ${name}`);
    }
    components[name] = printed;
    return { $ref: COMPONENT + name };
  };
  return {
    components,
    exampleOf,
    print: (schema, isUpdate = false) => {
      const printed = print(schema);
      return isUpdate ? forUpdate(withoutDefaults(printed), components) as Printed : printed;
    },
  };
}
