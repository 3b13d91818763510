// The list of hosted carriers.

/** An operator may have one account at each; settings, paths and numbers use these names. */
export const HOSTED_ACCOUNTS = ["twilio", "telnyx", "plivo", "vonage", "asterisk"] as const;
export type HostedAccount = (typeof HOSTED_ACCOUNTS)[number];
