// The hosted carriers there are.

/** Accounts an operator may have, one of each: what the settings, paths and numbers call them. */
export const HOSTED_ACCOUNTS = ["twilio", "telnyx", "plivo", "vonage", "asterisk"] as const;
export type HostedAccount = (typeof HOSTED_ACCOUNTS)[number];
