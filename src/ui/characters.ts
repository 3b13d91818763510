// What people write, in characters: fields of pages count UTF-16 units, the server counts code
// points.

/** What a field with so many characters may hold in its own units. */
export const unitsOf = (charsMax: number): number => 2 * charsMax;

export const charsOf = (text: string): number => Array.from(text).length;

export function firstChars(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : Array.from(text).slice(0, charsMax).join("");
}

const TURNING = /[\u202A-\u202E\u2066-\u2069]/g;

/** Without what would turn the order of the words of ours that stand behind it in a line. */
export const inOrder = (text: string): string => text.replaceAll(TURNING, "");

const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC]/;

/** For a place in a text of ours: what is written from right to left takes no sign of it along. */
export function amongOurs(text: string): string {
  const plain = inOrder(text);
  return RIGHT_TO_LEFT.test(plain) ? `\u2068${plain}\u2069` : plain;
}
