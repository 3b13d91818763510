// Telephone numbers in readable form. Only pages of the second script import this; those of the
// first, which must not include the library, call usePhone of later.tsx.
import { parsePhoneNumberFromString } from "libphonenumber-js/min";

/** `+4930123456` in its country's format; extensions and anything else stay as they are. */
export const formatPhone = (text: string): string =>
  (text.startsWith("+") ? parsePhoneNumberFromString(text)?.formatInternational() ?? text : text);
