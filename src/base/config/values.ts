// How the text of an environment variable becomes a value, or a sentence about what is wrong with
// it. Used by the tables of settings and by config.ts.
import { existsSync } from "node:fs";
import { isIP } from "node:net";
import { HOSTED_ACCOUNTS } from "#core/hosted-accounts.ts";
import { rsaKeyProblem } from "#core/keys.ts";
import { microsFromDecimal } from "#core/money.ts";
import { parseNetwork } from "#core/networks.ts";
import {
  readCarrierRates, readNumberPrices, readPlans, type CarrierRates, type NumberPrices, type Plans,
} from "#core/price-lists.ts";
import { isUuid, parseHttpUrl } from "#core/values.ts";
import { isCountry } from "#core/numbering-plans.ts";
import { findSherpaModel, type SherpaModel } from "./sherpa-model.ts";

export interface Parse<T> {
  (text: string): T | { problem: string };
  /** What else than the kind of value is checked, as the table of settings says it. */
  bounds?: string;
}

export const problem = (text: string): { problem: string } => ({ problem: text });

const bounded = <T>(bounds: string, parse: Parse<T>): Parse<T> => Object.assign(parse, { bounds });

export const text: Parse<string> = (value) => value;
export function integer(minimum: number, maximum: number): Parse<number> {
  const range = `from ${minimum} to ${maximum}`;
  return bounded(range, (value) => {
    const number = Number(value);
    return /^\d{1,12}$/.test(value) && number >= minimum && number <= maximum
      ? number
      : problem(`must be a whole number ${range}`);
  });
}
export const onOff: Parse<boolean> = (value) => {
  if (/^(on|1|true|yes)$/i.test(value)) return true;
  return /^(off|0|false|no)$/i.test(value) ? false : problem("must be on or off");
};
export const oneOf = <T extends string>(values: readonly T[]): Parse<T> => (value) =>
  values.find((candidate) => candidate === value) ?? problem(`must be one of ${values.join(", ")}`);
export const url: Parse<string | null> = (value) =>
  parseHttpUrl(value) ? value.replace(/\/+$/, "") : problem("must be an absolute http(s) URL");
/** A URL to which paths are appended. */
export const baseUrl: Parse<string | null> = (value) => (/[?#]/.test(value)
  ? problem("must be a URL without ? and #, because paths are appended to it")
  : url(value));
/** The same, with its origin as browsers write it: `https://EXAMPLE.org:443` is without the port. */
export const publicUrl: Parse<string | null> = (value) => {
  const parsed = baseUrl(value);
  if (typeof parsed !== "string") return parsed;
  const { origin, pathname } = new URL(parsed);
  return `${origin}${pathname.replace(/\/+$/, "")}`;
};
/** Pages link to each other, and cookies are bound to the host, as if nothing else were there. */
export function pathWarnings(url: unknown): string[] {
  const path = typeof url === "string" ? new URL(url).pathname : "/";
  return path === "/"
    ? []
    : [`PARLEY_PUBLIC_URL has the path ${path}, below which only the API works: the dashboard, the`
      + " widget and the other pages need a host name or a port of their own, see docs/proxy.md"];
}
/** Null: its user or password has a % that is not written as %25. */
export function loginOf({ username, password }: URL): string | null {
  try {
    return decodeURIComponent(`${username}:${password}`);
  } catch {
    return null;
  }
}
export const BARE_PERCENT = problem("has a % in its user or password; write it as %25");
const NATS_ADDRESS = /^(?:nats|tls):\/\/[^/\s]+$/;
/** The servers of a cluster are given one login, that of the first address. */
export const natsUrl: Parse<string | null> = (value) => {
  const addresses = list(value);
  const areRead = addresses.every((one) => NATS_ADDRESS.test(one) && URL.canParse(one));
  if (!areRead || addresses.length === 0) {
    return problem("must be one or more nats:// or tls:// URLs, separated by commas");
  }
  const logins = addresses.map((one) => loginOf(new URL(one)));
  if (logins.includes(null)) return BARE_PERCENT;
  return logins.every((login) => login === ":" || login === logins[0])
    ? addresses.join(",")
    : problem("has different users or passwords; every server is given those of the first address");
};
/** A database on a server, or behind a socket whose folder is named (`?host=/run/postgresql`). */
export const databaseUrl: Parse<string | null> = (value) => {
  // A user without a host means a socket, which URL.canParse refuses.
  const spelt = value.replace("@/", "@socket/");
  const parsed = URL.canParse(spelt) ? new URL(spelt) : null;
  return parsed && /^postgres(?:ql)?:$/.test(parsed.protocol) && parsed.pathname.length > 1
    ? value
    : problem("must be a URL such as postgres://user:password@host:5432/database");
};
export const region: Parse<string | null> = (value) =>
  /^[a-z0-9-]{1,63}$/i.test(value) ? value : problem("must be the name of a region");
export const file: Parse<string | null> = (value) =>
  existsSync(value) ? value : problem(`names a file that does not exist: ${value}`);
/** The contents of the file, read and validated at once. */
const listFile = <T>(read: (file: string) => T): Parse<T | null> => (value) => {
  try {
    return read(value);
  } catch (error) {
    return problem(`names a file that cannot be used: ${(error as Error).message}`);
  }
};
export const plans: Parse<Plans | null> = listFile(readPlans);
export const numberPrices: Parse<NumberPrices | null> = listFile(readNumberPrices);
export const carrierRates: Parse<CarrierRates | null> = listFile((file) =>
  readCarrierRates(file, ["sip", ...HOSTED_ACCOUNTS]));
export const sherpaModel: Parse<SherpaModel | null> = (value) => {
  if (!existsSync(value)) return problem(`names a folder that does not exist: ${value}`);
  const found = findSherpaModel(value);
  return typeof found === "string" ? problem(found) : found;
};
export const list = (value: string): string[] =>
  value.split(",").map((item) => item.trim()).filter((item) => item !== "");
/** The error names the first entry that is wrong. */
export const listOf = (
  what: string, isOne: (item: string) => boolean, spelt = (item: string): string => item,
): Parse<string[]> => (value) => {
  const items = list(value).map(spelt);
  const bad = items.find((item) => !isOne(item));
  return bad === undefined ? items : problem(`has an entry that is no ${what}: ${bad}`);
};
export const countries = listOf("country", isCountry, (code) => code.toUpperCase());
export const languages: Parse<string[]> = (value) => {
  // Not kept: the names of all languages take memory, and only this check needs them.
  const names = new Intl.DisplayNames("en", { type: "language", fallback: "none" });
  return listOf(
    "language of ISO 639-1", (code) => /^[a-z]{2}$/.test(code) && names.of(code) !== undefined,
    (code) => code.toLowerCase())(value);
};
const RETRIES_MAX = 100;
const RETRY_SECONDS_MAX = 604_800;
const RETRIES = `1 to ${RETRIES_MAX} numbers from 0 to ${RETRY_SECONDS_MAX}`;
export const secondsList: Parse<number[]> = bounded(RETRIES, (value) => {
  const seconds = list(value).map(Number);
  const isRight = seconds.length > 0 && seconds.length <= RETRIES_MAX
    && seconds.every((one) => one >= 0 && one <= RETRY_SECONDS_MAX);
  return isRight
    ? seconds
    : problem(`must be seconds separated by commas, such as 5,300,1800: ${RETRIES}`);
});
export const networks = listOf("network", (item) => parseNetwork(item) !== null);
export const address: Parse<string | null> = (value) =>
  isIP(value) === 0 ? problem("must be an address such as 203.0.113.5") : value;
export const addressOrName: Parse<string> = (value) =>
  isIP(value) !== 0 || /^(?=.*[a-z])[\w-]+(?:\.[\w-]+)*\.?$/i.test(value)
    ? value
    : problem("must be an address or a name such as sip.example.com");
export const addresses = listOf("address", (item) => isIP(item) !== 0);
/** RFC 7064 and 7065: a name or address, with a port or without. */
const ICE_URL = /^(?:stuns?|turns?):(?:\[[0-9a-f:]+\]|[\w.-]+)(?::\d{1,5})?(?:\?transport=(?:udp|tcp))?$/i;
export const iceUrls = listOf("STUN or TURN server", (item) => ICE_URL.test(item));
export const origins = listOf("origin", (item) =>
  item === "*" || (URL.canParse(item) && new URL(item).origin === item));
export const dollars: Parse<number | null> = (value) => {
  const micros = microsFromDecimal(value);
  return micros !== null && micros >= 0 ? micros : problem("must be an amount such as 5.00");
};
const SECRET_CHARS_MIN = 16;
const SECRET = `at least ${SECRET_CHARS_MIN} characters`;
export const secret: Parse<string | null> = bounded(SECRET, (value) =>
  value.length >= SECRET_CHARS_MIN ? value : problem(`must have ${SECRET}`));

const RTP_PORTS_MIN = 20;
const RTP_PORTS = `at least ${RTP_PORTS_MIN} ports from 1024 to 65535`;
export const portRange: Parse<{ min: number; max: number } | null> = bounded(RTP_PORTS, (value) => {
  const [, low, high] = /^(\d{4,5})-(\d{4,5})$/.exec(value) ?? [];
  const [min, max] = [Number(low), Number(high)];
  return min >= 1024 && max <= 65_535 && max - min + 1 >= RTP_PORTS_MIN
    ? { min, max }
    : problem(`must be a range of ${RTP_PORTS}, such as 10000-10999`);
});

export const uuid: Parse<string | null> = (value) =>
  isUuid(value) ? value : problem("must be a UUID");

const ED25519_KEY_BYTES = 32;
export const ed25519Key: Parse<string | null> = (value) =>
  Buffer.from(value, "base64").length === ED25519_KEY_BYTES
    ? value
    : problem(`must be the base64 of ${ED25519_KEY_BYTES} bytes`);

/** Environment files may have to write a line feed as \n. */
export const rsaKey: Parse<string | null> = (value) => {
  const pem = value.replaceAll("\\n", "\n");
  const why = rsaKeyProblem(pem);
  return why === null ? pem : problem(why);
};

/** SignalWire, which speaks Twilio's interface, names its projects by UUID. */
export const twilioSid: Parse<string | null> = (value) =>
  /^AC[0-9a-fA-F]{32}$/.test(value) || isUuid(value)
    ? value
    : problem("must be AC and 32 hexadecimal digits, or a SignalWire project id");

export const asteriskEndpoint: Parse<string | null> = (value) =>
  /^[\w.-]+\/\S*\{number\}\S*$/.test(value)
    ? value
    : problem("must be an Asterisk dial string such as PJSIP/{number}@trunk");

/** It becomes part of names at Asterisk. */
const PLAIN_NAME = "at most 40 letters, digits, - and _";
export const plainName: Parse<string> = bounded(PLAIN_NAME, (value) =>
  /^[A-Za-z0-9][\w-]{0,39}$/.test(value) ? value : problem(`must be ${PLAIN_NAME}`));
