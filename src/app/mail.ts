// Composition root, the part about mail: the mail server the settings name. Called by features.ts.
import type { Config } from "#config/config.ts";
import { ProviderError } from "#core/faults.ts";
import type { System } from "#core/system.ts";
import type { Mailer } from "#providers/mail/port.ts";
import { createSmtpMailer } from "#providers/mail/smtp.ts";

const NOBODY: Mailer = {
  isSetUp: false,
  send: () => Promise.reject(new ProviderError(
    "no mail server is set up: PARLEY_SMTP_URL", { retryable: false })),
  close: () => Promise.resolve(),
};

export function createMailer({ config, system }: { config: Config; system: System }): Mailer {
  const { PARLEY_SMTP_URL: url, PARLEY_SMTP_FROM: from } = config;
  return url === null || from === null ? NOBODY : createSmtpMailer({ url, from, system });
}
