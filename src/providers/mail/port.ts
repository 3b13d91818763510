// The mail port: sends mail for the program, whatever service carries it. Called by features that
// write to people outside; opened by app/mail.ts.

export interface Mail {
  /** Its owner: one account's mails do not keep those of others. */
  accountId: number;
  /** Identifies a mail that is sent twice; absent: the mailer makes one. */
  id?: string;
  /** One address. */
  to: string;
  subject: string;
  /** The whole of it; every reader shows it. */
  text: string;
  /** The same for readers that show HTML; its writer has escaped whatever is not its own. */
  html?: string;
  /** Where an answer goes; absent: to the sender of all mail. */
  replyTo?: string;
}

export interface Mailer {
  /** False: no server is set up, and nothing can be sent. */
  readonly isSetUp: boolean;
  /**
   * Resolves once the mail server has taken it, tried again for a while where that may help.
   * Rejects with a ProviderError: nobody has it, or nobody knows.
   */
  send(mail: Mail): Promise<void>;
  /** Abandons mails in flight. Idempotent. */
  close(): Promise<void>;
}
