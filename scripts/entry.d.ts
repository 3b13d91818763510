export function entryOf(name: "main" | "cli"): string;
