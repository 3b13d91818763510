// Mail to the people of an assistant's desk: a visitor waits, or asks to be called back.
import type { CallbackBody } from "#events/events.ts";
import type { Mail, Mailer } from "#providers/mail/port.ts";
import { reportWaiting, visitorOf, type Report, type ReportOptions } from "./who-waits.ts";

interface NotificationOptions extends ReportOptions {
  mailer: Mailer;
  /** Null: the address at which people reach the server is not known. */
  publicUrl: string | null;
}

const MAILS_PER_HOUR = 30;

function callbackLines({ name, phone, email, wish, time }: CallbackBody): string[] {
  const lines = [
    ["Name", name], ["Phone", phone], ["E-mail", email], ["Wish", wish], ["Time", time],
  ] as const;
  return lines.flatMap(([label, value]) => (value === null ? [] : [`${label}: ${value}`]));
}

function mailOf(
  { data, assistant: { name }, conversation }: Report, publicUrl: string | null,
): Omit<Mail, "accountId" | "to"> {
  const who = visitorOf(conversation);
  const link = publicUrl === null
    ? []
    : ["", `${publicUrl}/#/inbox/${data.conversation_id}`];
  if (data.type === "callback_requested") {
    const { email } = data.callback;
    return {
      subject: `${data.callback.name} wants to be reached (${name})`,
      text: [...callbackLines(data.callback), ...link].join("\n"),
      ...email === null ? {} : { replyTo: email },
    };
  }
  return {
    subject: `${who} waits for a person (${name})`,
    text: [`${who} waits for a person, in a conversation with ${name}.`, ...link].join("\n"),
  };
}

export function createNotifications(options: NotificationOptions): { close(): void } {
  const { mailer, publicUrl, log } = options;
  if (!mailer.isSetUp) return { close: () => undefined };
  const close = reportWaiting(options, {
    name: "mails",
    perHour: MAILS_PER_HOUR,
    recipients: ({ assistant }) => Promise.resolve(assistant.settings.desk.notify_emails ?? []),
    send: async (report, addresses) => {
      const mail = { ...mailOf(report, publicUrl), accountId: report.accountId };
      const sent = await Promise.allSettled(addresses.map((to) => mailer.send({ ...mail, to })));
      for (const one of sent) {
        if (one.status === "rejected") {
          log.warn({ err: one.reason as unknown }, "could not send a mail");
        }
      }
    },
  });
  return { close };
}
