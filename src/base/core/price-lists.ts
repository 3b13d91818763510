// Plans of accounts and monthly prices of numbers: the lists under data/, or the operator's own
// files in their place (PARLEY_PLANS_FILE, PARLEY_NUMBER_PRICES_FILE); and the rates of carriers,
// where the operator gives them (PARLEY_CARRIER_RATES_FILE).
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { readText, whyUnread } from "./disk.ts";
import { microsFromDecimal, type Micros } from "./money.ts";
import { programFile } from "./program.ts";
import { isCountry } from "./numbering-plans.ts";
import { OneOf } from "./schema.ts";

/** The plan of accounts that were given none, and of those whose plan is not in the list. */
export const DEFAULT_PLAN = "self-hosted";

const PlanRow = Type.Object({
  tools: Type.Integer({ minimum: 0 }),
  campaigns: Type.Integer({ minimum: 0 }),
  parallel_calls: Type.Integer({ minimum: 0 }),
}, { additionalProperties: false });
const PlanRows = Type.Record(
  Type.String({ pattern: "^[\\w-]{1,40}$" }), PlanRow, { additionalProperties: false });
const PriceRows = Type.Record(
  Type.String({ pattern: "^[A-Z]{2}$" }), Type.Number({ minimum: 0, maximum: 10_000 }),
  { additionalProperties: false });

const CarrierRateRows = Type.Array(Type.Object({
  carrier: Type.Optional(Type.String()),
  direction: Type.Optional(OneOf(["inbound", "outbound"])),
  prefix: Type.Optional(Type.String({ pattern: "^\\+[0-9]{0,15}$" })),
  per_minute: Type.Number({ minimum: 0, maximum: 1000 }),
}, { additionalProperties: false }));

export type Plan = Static<typeof PlanRow>;

export interface Plans {
  names(): string[];
  /** The plan's caps; an unknown plan has those of the default one. */
  of(name: string): Plan;
}

export interface NumberPrices {
  /** The price of a month; null: numbers of the country are not sold. */
  of(countryCode: string): Micros | null;
  countries(): string[];
}

export interface CarrierLeg {
  carrier: string;
  direction: "inbound" | "outbound";
  /** The number that was called; null: not known. */
  called: string | null;
}

export interface CarrierRates {
  /** The price of a minute; 0: the list says nothing of it. */
  of(leg: CarrierLeg): Micros;
}

const shipped = (name: string): string => programFile(`data/${name}`);

/** Throws a sentence that names the file, and the place in it that is wrong. */
function readList<T extends TSchema>(file: string, schema: T): Static<T> {
  let value: unknown;
  try {
    value = JSON.parse(readText(file));
  } catch (error) {
    throw new Error(`${file} cannot be read: ${whyUnread(error)}`, { cause: error });
  }
  const error = Value.Errors(schema, value).First();
  if (error) throw new Error(`${file} is wrong at ${error.path || "/"}: ${error.message}`);
  return value as Static<T>;
}

/** `file`: the operator's own. */
export function readPlans(file = shipped("plans.json")): Plans {
  const plans = new Map(Object.entries(readList(file, PlanRows)));
  const fallback = plans.get(DEFAULT_PLAN);
  if (!fallback) throw new Error(`${file} is wrong at /: it has no plan ${DEFAULT_PLAN}`);
  return { names: () => [...plans.keys()], of: (name) => plans.get(name) ?? fallback };
}

/** `file`: the operator's own. */
export function readNumberPrices(file = shipped("number-prices.json")): NumberPrices {
  const rows: Record<string, number> = readList(file, PriceRows);
  const prices = new Map<string, Micros>(Object.entries(rows).map(([code, dollars]) => {
    const micros = microsFromDecimal(String(dollars));
    if (micros === null) throw new Error(`${file} is wrong at /${code}: finer than a micro-dollar`);
    if (!isCountry(code)) throw new Error(`${file} is wrong at /${code}: no such country`);
    return [code, micros] as const;
  }));
  return { of: (code) => prices.get(code) ?? null, countries: () => [...prices.keys()] };
}

/**
 * The longest prefix of the number that was called decides; among equals, a row that names the
 * carrier, then one that names the direction.
 */
export function readCarrierRates(file: string, carriers: readonly string[]): CarrierRates {
  const rows = readList(file, CarrierRateRows).map((row, at) => {
    const { carrier, direction, prefix = "+", per_minute: dollars } = row;
    const micros = microsFromDecimal(String(dollars));
    if (micros === null) {
      throw new Error(`${file} is wrong at /${at}/per_minute: finer than a micro-dollar`);
    }
    if (carrier !== undefined && !carriers.includes(carrier)) {
      throw new Error(`${file} is wrong at /${at}/carrier: must be one of ${carriers.join(", ")}`);
    }
    const weight = prefix.length * 4 + (carrier === undefined ? 0 : 2)
      + (direction === undefined ? 0 : 1);
    return { carrier, direction, prefix, micros, weight };
  }).sort((one, other) => other.weight - one.weight);
  return {
    of: (leg) => rows.find(({ carrier = leg.carrier, direction = leg.direction, prefix }) =>
      carrier === leg.carrier && direction === leg.direction
      && (leg.called ?? "+").startsWith(prefix))?.micros ?? 0,
  };
}
