// URIs of SIP written out, so that tests can read them back.
import { formatHostPort, type SipUri } from "#providers/carriers/sip/grammar/uri.ts";

/** Reserved characters of that place are written as %XX; lone surrogates as U+FFFD. */
function encode(text: string, reserved: RegExp): string {
  return text.toWellFormed().replace(reserved, (character) =>
    [...Buffer.from(character)]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
      .join(""));
}

const NOT_USER = /[^A-Za-z0-9\-_.!~*'()&=+$,;?/]/gu;
const NOT_PARAM = /[^A-Za-z0-9\-_.!~*'()[\]/:&+$]/gu;
/** Without the @, which would make a user of all that is before it. */
const NOT_HEADERS = /[^A-Za-z0-9\-_.!~*'()[\]/:&+$?=%;,]/gu;
const NOT_PASSWORD = /[^A-Za-z0-9\-_.!~*'()&=+$,%]/gu;

export function formatUri(uri: SipUri): string {
  let text = `${uri.scheme}:`;
  if (uri.user !== null) text += encode(uri.user, uri.scheme === "tel" ? /[^0-9A-Fa-f*#+]/gu : NOT_USER);
  if (uri.scheme !== "tel") {
    if (uri.password !== undefined) text += `:${encode(uri.password, NOT_PASSWORD)}`;
    text += `${uri.user === null ? "" : "@"}${formatHostPort(uri.host, uri.port)}`;
  }
  for (const [name, value] of uri.params) {
    text += `;${encode(name, NOT_PARAM)}`;
    if (value !== null) text += `=${encode(value, NOT_PARAM)}`;
  }
  return uri.headers === null ? text : `${text}?${encode(uri.headers, NOT_HEADERS)}`;
}
