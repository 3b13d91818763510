// Compares what was heard with what was said, word by word.

export const wordsOf = (text: string): string[] => text.toLowerCase().match(/[a-z']+/g) ?? [];

/** Words that have to be changed, added or left out to make the one text of the other. */
export function wordErrors(said: string[], heard: string[]): number {
  let row = [...heard.keys(), heard.length];
  for (const [at, word] of said.entries()) {
    const next = [at + 1];
    for (const [index, other] of heard.entries()) {
      next.push(Math.min(
        row[index + 1]! + 1, next[index]! + 1, row[index]! + (word === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1)!;
}
