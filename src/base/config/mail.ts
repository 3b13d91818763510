// The settings of mail that the program sends. Part of settings.ts.
import { setting } from "./setting.ts";
import { BARE_PERCENT, loginOf, problem, type Parse } from "./values.ts";

const smtpUrl: Parse<string | null> = (value) => {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !/^smtps?:$/.test(url.protocol) || url.hostname === "" || url.search !== "") {
    return problem("must be a URL such as smtps://user:password@mail.example.com");
  }
  return loginOf(url) === null ? BARE_PERCENT : value;
};

const ADDRESS = /^[^\s@<>"]+@[^\s@<>"]+$/;
const NAMED = /^[^<>\r\n]*<([^<>]+)>$/;
const sender: Parse<string | null> = (value) =>
  ADDRESS.test(NAMED.exec(value)?.[1] ?? value)
    ? value
    : problem("must be an address, or a name and an address in < >");

export const MAIL_SETTINGS = {
  PARLEY_SMTP_URL: setting<string | null>({
    default: null, description: "Mail server for the program's e-mail, e.g. smtps://user:password@mail.example.com (port 465) or smtp:// (587, encrypted before a password is sent); absent: no e-mail is sent",
    parse: smtpUrl, secret: true,
  }),
  PARLEY_SMTP_FROM: setting<string | null>({
    default: null, description: "Sender of that e-mail, e.g. Support <support@example.com>", parse: sender,
  }),
};
