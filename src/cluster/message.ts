// The format of messages on the wire: JSON with the protocol's version. A message of another
// protocol version is ignored.
import type { Static, TSchema } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { PROTOCOL } from "./wire.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const encode = (members: object): Uint8Array =>
  encoder.encode(JSON.stringify({ v: PROTOCOL, ...members }));

/** Reads what `encode` wrote; null for anything else. */
export function decoderOf<Schema extends TSchema>(
  schema: Schema,
): (data: Uint8Array) => Static<Schema> | null {
  const check = TypeCompiler.Compile(schema);
  return (data) => {
    try {
      const message = JSON.parse(decoder.decode(data)) as { v?: unknown } | null;
      return message?.v === PROTOCOL && check.Check(message) ? message : null;
    } catch (error) {
      if (error instanceof SyntaxError) return null;
      throw error;
    }
  };
}
