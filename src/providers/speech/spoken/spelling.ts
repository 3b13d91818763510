// A text on its way from the written to the spoken form, which remembers where in the written text
// each of its characters stands. Used by the passes of this folder.

export interface Edit {
  from: number;
  to: number;
  by: string;
}

export class Spelling {
  text: string;
  /** How much of the written text the first n units of `text` say; one longer than `text`. */
  #written: number[];

  constructor(written: string) {
    this.text = written;
    this.#written = Array.from({ length: written.length + 1 }, (_, index) => index);
  }

  /** How much of the written text the first `chars` units say; a part of a word says none of it. */
  writtenAt(chars: number): number {
    return this.#written[Math.max(0, Math.min(chars, this.text.length))] ?? 0;
  }

  /** Replaces what a global pattern finds; null leaves it. */
  replace(pattern: RegExp, by: string | ((match: RegExpExecArray) => string | null)): void {
    const edits: Edit[] = [];
    for (const match of this.text.matchAll(pattern)) {
      const said = typeof by === "string" ? by : by(match);
      if (said === null || said === match[0]) continue;
      edits.push({ from: match.index, to: match.index + match[0].length, by: said });
    }
    this.edit(edits);
  }

  /** Replaces every match of a global pattern with indices by its first group. */
  unwrap(pattern: RegExp): void {
    this.edit([...this.text.matchAll(pattern)].flatMap((match) => {
      const [from, to] = match.indices?.[1] ?? [match.index, match.index];
      return [
        { from: match.index, to: from, by: "" },
        { from: to, to: match.index + match[0].length, by: "" },
      ];
    }));
  }

  /** Applies edits that are in order and do not overlap. */
  edit(edits: Edit[]): void {
    if (edits.length === 0) return;
    const pieces: string[] = [];
    const written: number[] = [];
    let at = 0;
    const keep = (to: number): void => {
      pieces.push(this.text.slice(at, to));
      for (; at < to; at += 1) written.push(this.#written[at] ?? 0);
    };
    for (const { from, to, by } of edits) {
      keep(from);
      pieces.push(by);
      const begin = this.#written[from] ?? 0;
      for (let unit = 0; unit < by.length; unit += 1) written.push(begin);
      at = to;
    }
    keep(this.text.length);
    written.push(this.#written[this.text.length] ?? 0);
    this.text = pieces.join("");
    this.#written = written;
  }
}
