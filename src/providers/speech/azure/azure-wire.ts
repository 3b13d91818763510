// The messages of Azure's recognisers: headers like those of HTTP, then a body. Audio messages are
// binary and begin with the length of their headers. Used by azure-ears.ts.
import { Type, type Static } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { jsonOf, recordOf } from "#core/values.ts";

const LINE = "\r\n";
const HEADERS_CHARS_MAX = 4096;

const headersText = (headers: Record<string, string>): string =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}${LINE}`).join("");

export const textMessage = (headers: Record<string, string>, body: object): string =>
  `${headersText({ ...headers, "Content-Type": "application/json" })}${LINE}${JSON.stringify(body)}`;

export function soundMessage(headers: Record<string, string>, body: Uint8Array): Uint8Array {
  const head = Buffer.from(headersText(headers), "latin1");
  const length = Buffer.alloc(2);
  length.writeUInt16BE(head.length);
  return Buffer.concat([length, head, body]);
}

const Heard = Type.Object({
  path: Type.String(),
  turn: Type.String(),
  body: Type.Object({
    /** The text so far, and the final text. */
    Text: Type.Optional(Type.String()),
    DisplayText: Type.Optional(Type.String()),
    RecognitionStatus: Type.Optional(Type.String()),
  }),
});
export type AzureMessage = Static<typeof Heard>;
export const messageCheck = TypeCompiler.Compile(Heard);

/** The message as one object; `path` and `turn` are from the headers. */
export function messageOf(text: string): unknown {
  const end = text.slice(0, HEADERS_CHARS_MAX).indexOf(`${LINE}${LINE}`);
  const headers = new Map(text.slice(0, Math.max(0, end)).split(LINE).map((line) => {
    const [name = "", ...value] = line.split(":");
    return [name.trim().toLowerCase(), value.join(":").trim()];
  }));
  const body = recordOf(jsonOf(text.slice(end + 2 * LINE.length))) ?? {};
  return {
    path: headers.get("path")?.toLowerCase(), turn: headers.get("x-requestid")?.toLowerCase(), body,
  };
}
