// What a setting is. Used by settings.ts and bounds.ts, which hold them all, and by config.ts.
import type { Parse } from "./values.ts";

export interface Setting<T> {
  default: T;
  description: string;
  parse: Parse<T>;
  /** May come from a file and is never printed. */
  secret?: boolean;
  /** How the default is written, where that differs from the parsed value. */
  spell?: (value: NonNullable<T>) => string;
}

export const setting = <T>(value: Setting<T>): Setting<T> => value;
