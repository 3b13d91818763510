// Sends a file as a reply, as fast as its reader takes it. Used by routes that serve files.
import type { Readable } from "node:stream";
import type { ByteStream } from "./exchange.ts";

export const pouring = (body: Readable) => (stream: ByteStream): void => {
  body.on("data", (chunk: Buffer) => {
    if (!stream.write(chunk)) body.pause();
  });
  body.on("end", () => stream.end());
  // The head is sent: only a dropped connection can tell that the rest is missing.
  body.on("error", () => stream.abort());
  stream.onDrain(() => body.resume());
  stream.onClose(() => body.destroy());
};
