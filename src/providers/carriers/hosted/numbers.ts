// Converts numbers for carriers that write them without the plus.

/** Text that is not an international number (anonymous, a name) stays as it is. */
export const withPlus = (number: string | null): string | null =>
  number !== null && /^[1-9]\d{4,14}$/.test(number) ? `+${number}` : number;

export const withoutPlus = (number: string): string =>
  /^\+\d+$/.test(number) ? number.slice(1) : number;
