// What Cartesia's two interfaces have in common. Used by cartesia-ears.ts and cartesia-voice.ts.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProviderError } from "#core/faults.ts";
import { errorText } from "#providers/error-text.ts";

export const CARTESIA = "Cartesia";

/** The error message, which ends a stream of either kind. */
export const cartesiaErrorCheck = TypeCompiler.Compile(Type.Object({
  type: Type.Literal("error"),
  message: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  status_code: Type.Optional(Type.Number()),
}));

/** Headers with the version of the interface that the adaptors are written for. */
export const cartesiaHeaders = (key: string | null): Record<string, string> => ({
  "cartesia-version": "2026-03-01", ...(key === null ? {} : { "x-api-key": key }),
});

export function cartesiaFault(
  { error, message, status_code: status = 500 }:
  { error?: string; message?: string; status_code?: number },
  key: string | null,
): ProviderError {
  const why = errorText(message ?? error ?? String(status), key);
  const retryable = status === 429 || status >= 500;
  return new ProviderError(`${CARTESIA} reported an error: ${why}`, { retryable });
}
