// Why a document was not read: a sentence for its owner and, where a reader itself may be wrong,
// what its maintainer needs to find the place. Used by extract.ts and, for a thread that failed as
// a whole, by extractor.ts.
import type { Failed } from "#features/knowledgebases/extraction.ts";
import { Unreadable } from "./blocks.ts";

/** Documents that a library cannot take apart fail in these ways too. */
const isMistake = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof ReferenceError;

/** Without the message, which may quote the document. */
function traceOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { name, message, stack = "", code } = error as Error & { code?: string };
  const frames = stack.replace(message, () => "").split("\n")
    .filter((line) => line.startsWith("    at "));
  return [code === undefined ? name : `${name} ${code}`, ...frames].join("\n");
}

export function failureOf(error: unknown): Failed {
  if (error instanceof Unreadable) {
    const { message: reason, cause } = error;
    return { kind: "failed", reason, ...(isMistake(cause) ? { trace: traceOf(cause) } : {}) };
  }
  const reason = error instanceof RangeError
    ? "The document is too large to read."
    : "The document could not be read.";
  return { kind: "failed", reason, trace: traceOf(error) };
}
