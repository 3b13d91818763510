// Plain text files: detects the encoding, keeps paragraphs, uses Markdown's headings as headings.
import { isUtf8 } from "node:buffer";
import { BlockList, Unreadable } from "./blocks.ts";

const SAMPLE_BYTES = 4096;
const PDF = Buffer.from("%PDF-");
const ZIP = Buffer.from("PK\x03\x04");

function startsWith(bytes: Buffer, ...mark: number[]): boolean {
  return mark.every((byte, index) => bytes[index] === byte);
}

/** UTF-16 without a mark: every other byte of Latin text is zero. */
function zeroShares(bytes: Buffer): [even: number, odd: number] {
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  const counts: [number, number] = [0, 0];
  sample.forEach((byte, index) => {
    if (byte === 0) counts[index % 2 === 0 ? 0 : 1] += 1;
  });
  const half = Math.max(1, sample.length / 2);
  return [counts[0] / half, counts[1] / half];
}

/** The encoding that the head of a web page names. */
export const charsetOf = (page: Buffer): string | undefined =>
  /<meta[^>]{0,200}charset=["']?([\w-]+)/i.exec(page.toString("latin1", 0, 2048))?.[1];

export function decoderOf(
  charset: string | undefined, otherwise: string,
): InstanceType<typeof TextDecoder> {
  try {
    return new TextDecoder(charset ?? otherwise);
  } catch (error) {
    if (error instanceof RangeError) return new TextDecoder(otherwise);
    throw error;
  }
}

/** `charset`: the encoding it names; without it, what is not UTF-8 is taken for Windows' own. */
export function decodeText(bytes: Buffer, charset?: string): string {
  // The first bytes of these formats may well look like text.
  if (startsWith(bytes, ...PDF) || startsWith(bytes, ...ZIP)) {
    throw new Unreadable("The file is not a text file.");
  }
  if (startsWith(bytes, 0xef, 0xbb, 0xbf)) return bytes.toString("utf8", 3);
  if (startsWith(bytes, 0xff, 0xfe)) return new TextDecoder("utf-16le").decode(bytes);
  if (startsWith(bytes, 0xfe, 0xff)) return new TextDecoder("utf-16be").decode(bytes);
  const [even, odd] = zeroShares(bytes);
  if (odd > 0.4 && even < 0.1) return new TextDecoder("utf-16le").decode(bytes);
  if (even > 0.4 && odd < 0.1) return new TextDecoder("utf-16be").decode(bytes);
  const controls = bytes.subarray(0, SAMPLE_BYTES)
    .filter((byte) => byte < 32 && byte !== 9 && byte !== 10 && byte !== 13 && byte !== 12).length;
  if (controls > Math.min(bytes.length, SAMPLE_BYTES) * 0.01) {
    throw new Unreadable("The file is not a text file.");
  }
  if (isUtf8(bytes)) return bytes.toString("utf8");
  // The bytes are not Unicode, even if the head claims so.
  const named = /^utf/i.test(charset ?? "") ? undefined : charset;
  return decoderOf(named, "windows-1252").decode(bytes);
}

/**
 * Each question is the heading of its answer, so that it helps to find it and nothing else joins
 * it.
 */
export function readQuestions(questions: { question: string; answer: string }[]): BlockList {
  const list = new BlockList();
  for (const { question, answer } of questions) list.under([question], answer);
  return list;
}

export function readText(text: string): BlockList {
  const list = new BlockList();
  for (const paragraph of text.split(/\r?\n[ \t]*\r?\n|\r\r/)) {
    const lines = paragraph.split(/\r\n|[\r\n]/);
    let rest: string[] = [];
    for (const line of lines) {
      const heading = /^(#{1,6})\s+(.+)$/.exec(line);
      if (!heading) {
        rest.push(line);
        continue;
      }
      list.text(rest.join("\n"));
      rest = [];
      list.heading(heading[1]?.length ?? 1, heading[2] ?? "");
    }
    list.text(rest.join("\n"));
  }
  return list;
}
