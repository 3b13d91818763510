// What an entry's reference stands for, in words, and a link to it where there is one.
import { moneyExactly } from "#ui/dashboard/kit/format.ts";

interface Named {
  name: string;
  href: string | null;
}

export function nameOf(reference: string): Named {
  const colon = reference.indexOf(":");
  const kind = reference.slice(0, Math.max(0, colon));
  const rest = reference.slice(colon + 1);
  if (kind === "call" && /^\d+$/.test(rest)) return { name: `Call ${rest}`, href: `#/calls/${rest}` };
  if (kind === "number") {
    const [, id, date] = /^(\d+):(\d{4}-\d\d-\d\d)$/.exec(rest) ?? [];
    if (id) return { name: `Number ${id}, month from ${date}`, href: "#/numbers" };
  }
  if (kind === "number-purchase") return { name: "A number’s first month", href: "#/numbers" };
  if (kind === "turn") {
    const [, talk, message] = /^(\d+)\.(\d+)$/.exec(rest) ?? [];
    if (talk) return { name: `Conversation ${talk}, message ${message}`, href: null };
  }
  if (reference.startsWith("credit:stripe:")) return { name: "Paid at Stripe", href: null };
  if (kind === "credit") return { name: `Credit ${rest}`, href: null };
  return { name: reference, href: null };
}

/** To the micro, as entries are exact; with a sign for money in as well as out. */
export const signed = (amount: number): string => {
  const text = moneyExactly(Math.abs(amount));
  return amount > 0 ? `+${text}` : amount < 0 ? `−${text}` : text;
};
