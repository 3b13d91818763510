// TwiML documents, which tell Twilio and SignalWire what to do with a call. Plivo's XML is built
// with the same functions. Every value is escaped here and nowhere else.
import assert from "node:assert/strict";

type Attributes = Record<string, string | null>;

/** Characters that an XML document cannot contain, not even escaped. */
const FORBIDDEN = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g;
const ENTITIES: Record<string, string> = {
  "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;",
  // Unescaped in an attribute, a parser would turn these into spaces.
  "\t": "&#9;", "\n": "&#10;", "\r": "&#13;",
};

/** Escapes text for an element or an attribute; characters that XML forbids are dropped. */
export const escapeXml = (text: string): string =>
  text.toWellFormed().replace(FORBIDDEN, "").replace(/[&<>"'\t\n\r]/g, (one) => ENTITIES[one] ?? "");

/** Attributes of null are left out; `content` is markup. */
export function element(name: string, attributes: Attributes, content = ""): string {
  const written = Object.entries(attributes)
    .map(([key, value]) => (value === null ? "" : ` ${key}="${escapeXml(value)}"`))
    .join("");
  return content === "" ? `<${name}${written}/>` : `<${name}${written}>${content}</${name}>`;
}

export const responseOf = (content: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?><Response>${content}</Response>`;

/** Twilio's limit for the name and the value of a parameter together. */
export const PARAMETER_CHARS_MAX = 500;

/**
 * Connects the audio of the call, both ways, to a WebSocket. Twilio drops the query of `url`, so
 * the call is identified by the parameters, which come back in the `start` message.
 */
export function connectTwiml(url: string, parameters: Record<string, string>): string {
  const children = Object.entries(parameters).map(([name, value]) => {
    assert(name.length + value.length <= PARAMETER_CHARS_MAX, "a stream parameter is too long");
    return element("Parameter", { name, value });
  });
  return responseOf(element("Connect", {}, element("Stream", { url }, children.join(""))));
}

/** Refuses the call without answering it, so that it is not charged. */
export const rejectTwiml = (reason: "busy" | "rejected"): string =>
  responseOf(element("Reject", { reason }));

/** Connects the caller to a number or a SIP address; the call ends when the dialled one does. */
export function dialTwiml(to: string, callerId: string | null, ringingS: number): string {
  const noun = /^sips?:/i.test(to) ? "Sip" : "Number";
  const attributes = { callerId, timeout: String(ringingS), answerOnBridge: "true" };
  return responseOf(element("Dial", attributes, element(noun, {}, escapeXml(to))));
}
