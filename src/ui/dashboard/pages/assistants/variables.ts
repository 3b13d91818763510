// Placeholders such as {{customer_name}} in what an assistant says and is told.

/** Filled in by the server itself. */
export const SYSTEM_VARIABLES = [
  "customer_phone", "assistant_phone", "assistant_id", "assistant_name", "current_date",
  "current_time",
] as const;

const SYSTEM: ReadonlySet<string> = new Set(SYSTEM_VARIABLES);

/** Each once, in the order of the texts; without the server's own. */
export function variablesIn(...texts: (string | null | undefined)[]): string[] {
  const names = texts.flatMap((text) =>
    [...(text ?? "").matchAll(/\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}/g)]
      .map((match) => match[1] ?? ""));
  return [...new Set(names)].filter((name) => !SYSTEM.has(name));
}
