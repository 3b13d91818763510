// Placeholders such as {{customer_name}} in what an assistant says and in its instructions.

/** Filled in by the server itself. */
export const SYSTEM_VARIABLES = [
  "customer_phone", "assistant_phone", "assistant_id", "assistant_name", "current_date",
  "current_time",
] as const;

const SYSTEM: ReadonlySet<string> = new Set(SYSTEM_VARIABLES);

/** Each once, in the order of the texts; without the server's own. */
export function variablesIn(...texts: (string | null | undefined)[]): string[] {
  const names = texts.flatMap((text) =>
    [...(text ?? "").matchAll(/\{\{([^{}\r\n]{1,160})\}\}/g)]
      .map((match) => (match[1] ?? "").trim()));
  return [...new Set(names)].filter((name) => name !== "" && !SYSTEM.has(name));
}
