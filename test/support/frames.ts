// Frames of a stream as a test compares them.
import { encodeSse, type Frame } from "#realtime/frames.ts";

/** As bytes, with a reply's deltas joined: where they are cut depends on the reader's timing. */
export function bytesOf(frames: Frame[]): string {
  const joined: Frame[] = [];
  for (const frame of frames) {
    const last = joined.at(-1);
    if (frame.type !== "reply_delta" || last?.type !== "reply_delta") joined.push(frame);
    else {
      const [before, after] = [last, frame].map(({ json }) => JSON.parse(json) as { text: string });
      const json = JSON.stringify({ ...after, text: `${before?.text}${after?.text}` });
      joined[joined.length - 1] = { id: frame.id, type: frame.type, json };
    }
  }
  return joined.map(encodeSse).join("");
}
