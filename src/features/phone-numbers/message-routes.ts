// SMS and WhatsApp: this server cannot send them. The operations exist, so that clients of this API
// family receive an explanation instead of a 404, but they are not documented.
import { Fault } from "#core/faults.ts";
import { keyRoute, type Route } from "#http/route.ts";

const SMS = "This server cannot send SMS. Send it through your carrier's own API.";
const WHATSAPP = "This server cannot use WhatsApp. Use the API of your WhatsApp provider.";

const ALL_PATHS = [
  ["GET", "/user/whatsapp/senders", "List WhatsApp senders"],
  ["GET", "/user/whatsapp/senders/{id}/templates", "List a sender's templates"],
  ["POST", "/user/whatsapp/send", "Send a WhatsApp template"],
  ["POST", "/user/whatsapp/send-freeform", "Send a WhatsApp message"],
  ["GET", "/user/whatsapp/session-status", "Ask whether a WhatsApp window is open"],
] as const;

export function messageRoutes(): Route[] {
  const refuse = (text: string, code?: string) => (): never => {
    throw new Fault(501, text, code === undefined ? {} : { code, extra: { message: text } });
  };
  const answers = { 501: { description: "This server cannot do it" } };
  return [
    keyRoute({
      method: "POST",
      path: "/user/sms",
      tag: "Phone numbers",
      isUndocumented: true,
      summary: "Send an SMS",
      errorShape: "message",
      responses: answers,
      handle: refuse(SMS),
    }),
    ...ALL_PATHS.map(([method, path, summary]) => keyRoute({
      method,
      path,
      tag: "Phone numbers",
      isUndocumented: true,
      summary,
      errorShape: "success",
      responses: answers,
      handle: refuse(WHATSAPP, "NOT_SUPPORTED"),
    })),
  ];
}
