// The output of every document reader: readable text in order, with the headings above it; and the
// chunks it is cut into: whole paragraphs under the same headings, long ones cut at a sentence's
// end.
import type { Chunk } from "#features/knowledgebases/extraction.ts";

/** As a reader finds it, of any size. */
type Block = Chunk;

/** Its message tells the document's owner why it cannot be read. */
export class Unreadable extends Error {}

const CHUNK_CHARS_MAX = 1200;
const DOCUMENT_CHARS_MAX = 2_000_000;
const HEADINGS_MAX = 6;
const HEADING_CHARS_MAX = 200;

/** No space follows a sentence in Chinese or Japanese. */
const SENTENCE_END = /[.!?]["'”’)]?\s|[。！？]["'”’)」』）]?|\n/gu;

type Place = { page?: number; url?: string };

/** Collects blocks, tracks the path of headings, stops at the size limit. */
export class BlockList {
  readonly blocks: Block[] = [];
  truncated = false;
  #chars = 0;
  #headings: { level: number; text: string }[] = [];
  /** The place of the last heading, while there is no text below it. */
  #bare: Place | null = null;

  /** Level 0 is a title: it is above everything, and is dropped if no text follows it. */
  heading(level: number, text: string, place: Place = {}): void {
    const clean = text.replaceAll(/\s+/g, " ").trim();
    if (clean === "") return;
    // Prose that was set as a heading, or a heading that was never closed.
    if (clean.length > HEADING_CHARS_MAX) return this.text(text, place);
    const last = this.#headings.at(-1);
    if (last && last.level >= level) this.#keepBare();
    const above = this.#headings.filter((heading) => heading.level < level);
    this.#headings = above.slice(0, HEADINGS_MAX);
    this.#headings.push({ level, text: clean });
    this.#bare = level > 0 ? place : null;
  }

  /** Counts text that was read earlier and is stored elsewhere towards the limit. */
  count(characters: number): void {
    this.truncated ||= characters > DOCUMENT_CHARS_MAX - this.#chars;
    this.#chars += characters;
  }

  /** Drops the blocks after the first `count`: they are stored elsewhere, and still count. */
  keepFirst(count: number): void {
    this.blocks.length = count;
  }

  /** The end of the document, or of one of its pages. */
  forgetHeadings(): void {
    this.#keepBare();
    this.#headings = [];
  }

  /** A heading without text below it is worth keeping, too: it becomes text. */
  #keepBare(): void {
    const place = this.#bare;
    this.#bare = null;
    const last = place && this.#headings.pop();
    if (last) this.text(last.text, place);
  }

  text(text: string, place: Place = {}): void {
    this.under(this.#headings.map((heading) => heading.text), text, place);
  }

  /** Adds text below given headings of any length, ignoring those of the document. */
  under(headings: string[], text: string, place: Place = {}): void {
    const clean = text.replaceAll("\0", "").trim();
    if (clean === "" || this.truncated) return;
    this.#bare = null;
    const room = DOCUMENT_CHARS_MAX - this.#chars;
    this.truncated = clean.length > room;
    this.#chars += Math.min(clean.length, room);
    this.blocks.push({
      headings,
      text: clean.slice(0, room),
      page: place.page ?? null,
      url: place.url ?? null,
    });
  }
}

/** Cuts text into pieces within the limit, after the last sentence (else word) that fits. */
function pieces(text: string): string[] {
  const parts: string[] = [];
  let rest = text.trim();
  while (rest.length > CHUNK_CHARS_MAX) {
    const head = rest.slice(0, CHUNK_CHARS_MAX);
    const ends = [...head.matchAll(SENTENCE_END)].map((match) => match.index + match[0].length);
    const lastEnd = ends.at(-1) ?? 0;
    const space = head.lastIndexOf(" ");
    let cut = lastEnd > CHUNK_CHARS_MAX / 2 ? lastEnd : space > 0 ? space : CHUNK_CHARS_MAX;
    // Never inside a surrogate pair.
    if (/[\ud800-\udbff]/.test(rest[cut - 1] ?? "")) cut -= 1;
    parts.push(rest.slice(0, cut).trim());
    rest = rest.slice(cut).trim();
  }
  if (rest !== "") parts.push(rest);
  return parts;
}

const belongTogether = (one: Chunk, other: Block): boolean =>
  one.url === other.url && one.page === other.page && one.headings.length === other.headings.length
  && one.headings.every((heading, index) => heading === other.headings[index]);

export function chunksOf(blocks: Block[]): Chunk[] {
  const chunks: Chunk[] = [];
  for (const block of blocks) {
    for (const piece of pieces(block.text)) {
      const last = chunks.at(-1);
      const fits = last !== undefined && belongTogether(last, block)
        && last.text.length + piece.length + 1 <= CHUNK_CHARS_MAX;
      if (fits) last.text += `\n${piece}`;
      else chunks.push({ ...block, text: piece });
    }
  }
  return chunks;
}
