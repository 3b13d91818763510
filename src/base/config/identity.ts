// The settings of signing in at an OpenID provider, and of the log of who did what. Part of
// settings.ts.
import { integer, listOf, oneOf, problem, text, type Parse } from "./values.ts";
import { setting } from "./setting.ts";

const ROLES = ["owner", "admin", "builder", "operator", "viewer"] as const;
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Without TLS only on this machine: altering the provider's answers would let anybody sign in. */
const issuer: Parse<string | null> = (value) => {
  const url = URL.canParse(value) ? new URL(value) : null;
  const isSafe = url?.protocol === "https:"
    || (url?.protocol === "http:" && LOOPBACK.has(url.hostname));
  return isSafe ? value : problem("must be an https URL");
};

/** Domains as they stand after the @ of an address. */
const domains = listOf(
  "domain such as example.com", (name) => !/[\s/:@*]/.test(name),
  (name) => name.toLowerCase().replace(/^@/, ""));

export const IDENTITY_SETTINGS = {
  PARLEY_OIDC_ISSUER: setting<string | null>({
    default: null, description: "OpenID provider where members can sign in, e.g. https://accounts.example.com; its redirect URL is /api/auth/oidc/callback",
    parse: issuer,
  }),
  PARLEY_OIDC_CLIENT_ID: setting<string | null>({
    default: null, description: "Client id of this server at PARLEY_OIDC_ISSUER", parse: text,
  }),
  PARLEY_OIDC_CLIENT_SECRET: setting<string | null>({
    default: null, description: "Secret of PARLEY_OIDC_CLIENT_ID", parse: text, secret: true,
  }),
  PARLEY_OIDC_NAME: setting({
    default: "your organisation", description: "Name of PARLEY_OIDC_ISSUER on the sign-in page: \"Sign in with …\"",
    parse: text,
  }),
  PARLEY_OIDC_DOMAINS: setting<string[]>({
    default: [], description: "Domains of e-mail addresses that may sign in at PARLEY_OIDC_ISSUER, separated by commas; absent: all",
    parse: domains,
  }),
  PARLEY_OIDC_DEFAULT_ROLE: setting<(typeof ROLES)[number] | null>({
    default: null, description: "Role of people who sign in at PARLEY_OIDC_ISSUER without an invitation: admin, builder, operator or viewer; absent: they cannot sign in. Needs PARLEY_OIDC_DOMAINS",
    parse: oneOf(ROLES.filter((role) => role !== "owner")),
  }),
  PARLEY_OIDC_ACCOUNT: setting<number | null>({
    default: null, description: "Account they join, if there is more than one",
    parse: integer(1, 1e12),
  }),
  PARLEY_AUDIT_DAYS: setting({
    default: 365, description: "Days that the audit log is kept", parse: integer(1, 36_500),
  }),
};
