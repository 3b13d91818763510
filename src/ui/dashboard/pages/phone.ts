// Telephone numbers as people write them. Only pages of the second script import this; those of the
// first, which is not to carry the library, ask usePhone of later.tsx.
import { parsePhoneNumberFromString } from "libphonenumber-js/min";

/** `+4930123456` as people there write it; what is no number, or an extension, stays as it is. */
export const formatPhone = (text: string): string =>
  (text.startsWith("+") ? parsePhoneNumberFromString(text)?.formatInternational() ?? text : text);
