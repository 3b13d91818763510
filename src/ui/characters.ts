// What people write, in characters: fields of pages count UTF-16 units, the server counts code
// points.

/** The UTF-16 units that a field must allow for so many characters. */
export const unitsOf = (charsMax: number): number => 2 * charsMax;

export const charsOf = (text: string): number => Array.from(text).length;

export function firstChars(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : Array.from(text).slice(0, charsMax).join("");
}

const TURNING = /[\u202A-\u202E\u2066-\u2069]/g;

/** Removes the bidi controls, which would reorder our own words behind it on the line. */
export const inOrder = (text: string): string => text.replaceAll(TURNING, "");

const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC]/;

/** For a place in one of our texts: isolates right-to-left text from the punctuation around it. */
export function amongOurs(text: string): string {
  const plain = inOrder(text);
  return RIGHT_TO_LEFT.test(plain) ? `\u2068${plain}\u2069` : plain;
}
