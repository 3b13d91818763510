// Signing in and out on the pages of this server: by e-mail and password, by an invitation link or
// at an OpenID provider. The session is in a cookie that no script can read.
import { Type } from "@sinclair/typebox";
import type { FailedAuthentications } from "#core/failed-authentications.ts";
import { Fault, ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { about, named, NonBlank, Nullable } from "#core/schema.ts";
import type { SecretBox } from "#core/secrets.ts";
import { isoMicros, type System } from "#core/system.ts";
import type { EventLog } from "#events/log.ts";
import { MessageSchema, Moment, POSITION } from "#http/answers.ts";
import { API_ROOT } from "#http/api.ts";
import { readCookie, writeCookie } from "#http/cookies.ts";
import { rateLimitFault } from "#http/errors.ts";
import { json, type HeaderMap, type HttpRequest, type Reply } from "#http/exchange.ts";
import { publicRoute, type Route } from "#http/route.ts";
import type { AsksProvider, PendingSignIn } from "#providers/identity/port.ts";
import type { Accounts } from "#features/accounts/accounts.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "./passwords.ts";
import type { From, OpenedSession, SignIn } from "./sign-in.ts";
import { EMAIL_FORM } from "./users.ts";

interface AuthRouteOptions {
  signIn: SignIn;
  accounts: Pick<Accounts, "find">;
  events: Pick<EventLog, "newestOfAccount">;
  origins: { of(http: HttpRequest): string; isSecure(http: HttpRequest): boolean };
  failures: FailedAuthentications;
  /** Null: no OpenID provider is set up. */
  oidc: AsksProvider | null;
  box: SecretBox;
  system: System;
  log: Logger;
}

/** Holds the session's token; also read by app/admission.ts. */
export const SESSION_COOKIE = "parley";
/** Holds the sign-ins at the OpenID provider that are under way, one for each tab. */
const PENDING_COOKIE = "parley-oidc";
const PENDING_PLACE = "oidc-tabs";
const PENDING_S = 10 * 60;
/** Browsers keep 4 kB in a cookie. */
const PENDING_MAX = 5;
const NAME_CHARS_MAX = 100;
const TOKEN_CHARS_MAX = 100;

export const EMAIL = Type.String({
  ...EMAIL_FORM, ...about("The member's e-mail address.", "ana@example.org"),
});
export const NAME = NonBlank(NAME_CHARS_MAX, about("The name, which visitors see too.", "Ana"));
/** No minimum length when signing in: a password that is too short is simply wrong. */
export const PASSWORD = Type.String({
  maxLength: PASSWORD_CHARS_MAX, ...about("The password.", "correct horse battery"),
});
export const NEW_PASSWORD = Type.String({
  minLength: PASSWORD_CHARS_MIN, maxLength: PASSWORD_CHARS_MAX,
  ...about("The new password.", "correct horse battery"),
});
const TOKEN = Type.String({
  maxLength: TOKEN_CHARS_MAX, ...about("The token at the end of the link.", "q8Zr1x0V5mB2nK7c"),
});
export const SIGNED_IN = Type.Object({
  user: Type.Object({
    id: Type.Integer(about("The member's number.", 5)),
    name: Type.String(about("The member's name.", "Ana")),
    email: Type.String(about("The member's address.", "ana@example.org")),
    role: Type.String(about("The member's role.", "operator")),
  }, about("Who is signed in.")),
  expires_at: Moment("When the session expires, in UTC."),
}, named("SignedIn", "A session, whose token is in the cookie."));

const COMMON = { tag: "Members", errorShape: "message", ownPages: true } as const;
const SIGNED_IN_200 = { description: "Signed in: the cookie is set", schema: SIGNED_IN };

export const fromOf = ({ address, headers }: HttpRequest): From =>
  ({ address, agent: headers["user-agent"] ?? "" });

/** Sets the session's cookie; the handler signs out whoever was signed in there before. */
export function signedIn(
  { token, user, expiresAt, isKept }: OpenedSession, isSecure: boolean, nowMicros: number,
): Reply {
  const { id, name, email, role } = user;
  const maxAge = isKept ? { maxAgeS: (expiresAt - nowMicros) / 1e6 } : {};
  return json(200, { user: { id, name, email, role }, expires_at: isoMicros(expiresAt) }, {
    "Set-Cookie": writeCookie(SESSION_COOKIE, token, { isSecure, sameSite: "Strict", ...maxAge }),
  });
}

export function authRoutes(options: AuthRouteOptions): Route[] {
  return [
    stateRoute(options), loginRoute(options), logoutRoute(options),
    ...invitationRoutes(options), beginRoute(options), finishRoute(options),
  ];
}

const tokenOf = ({ origins }: AuthRouteOptions, http: HttpRequest): string | null =>
  readCookie(http, SESSION_COOKIE, origins.isSecure(http));

/** Ends the browser's previous session when another begins in it. */
async function leave(options: AuthRouteOptions, http: HttpRequest): Promise<void> {
  const token = tokenOf(options, http);
  if (token !== null) await options.signIn.logout(token, fromOf(http));
}

/** Ends the browser's previous session and answers with the new one. */
async function answerSignedIn(
  options: AuthRouteOptions, http: HttpRequest, session: OpenedSession,
): Promise<Reply> {
  await leave(options, http);
  return signedIn(session, options.origins.isSecure(http), options.system.now());
}

/** Records failed attempts, which fail2ban can read, and makes an address that goes on wait. */
async function watched<T>(
  { failures }: AuthRouteOptions, http: HttpRequest, kind: "password" | "invitation",
  work: () => Promise<T>,
): Promise<T> {
  const waitMs = failures.waitMs(http.address);
  if (waitMs > 0) throw rateLimitFault(waitMs, "message");
  try {
    return await work();
  } catch (error) {
    if (error instanceof Fault && (error.status === 401 || error.status === 404)) {
      failures.record(http.address, kind);
    }
    throw error;
  }
}

function stateRoute(options: AuthRouteOptions): Route {
  return publicRoute({
    ...COMMON,
    method: "GET",
    path: "/auth",
    summary: "Get the sign-in options and this browser's session",
    responses: {
      200: {
        description: "The sign-in options",
        schema: Type.Object({
          signed_in: Type.Boolean(about("Whether the browser's cookie belongs to a session.")),
          has_members: Type.Boolean(about(
            "Whether the account has members. If not, sign in with an API key.")),
          oidc: Nullable(Type.Object({
            name: Type.String(about("The provider's display name.", "Example")),
          }, about("The OpenID provider; null if there is none."))),
          position: Nullable(POSITION),
        }),
      },
    },
    handle: async ({ http }) => {
      const token = tokenOf(options, http);
      const member = token === null ? null : await options.signIn.find(token);
      const { oidc, events } = options;
      return json(200, {
        signed_in: member !== null, has_members: await options.signIn.hasMembers(),
        oidc: oidc && { name: oidc.name },
        position: member && String(await events.newestOfAccount(member.user.accountId)),
      });
    },
  });
}

function loginRoute(options: AuthRouteOptions): Route {
  return publicRoute({
    ...COMMON,
    method: "POST",
    path: "/auth/login",
    summary: "Sign in with e-mail and password",
    description: "Sets the session as a cookie that scripts cannot read. A failure does not say "
      + "whether the address or the password is wrong.",
    body: Type.Object({
      email: Type.String({ maxLength: EMAIL_FORM.maxLength, ...about("The address.", "ana@example.org") }),
      password: PASSWORD,
      remember: Type.Optional(Type.Boolean(about(
        "True keeps the session for 30 days, also after the browser is closed; otherwise it lasts "
        + "12 hours."))),
    }),
    responses: {
      200: SIGNED_IN_200,
      401: { description: "The address or the password is wrong" },
      429: { description: "Too many attempts" },
    },
    handle: async ({ body: { email, password, remember = false }, http }) => {
      const session = await watched(options, http, "password", () =>
        options.signIn.login({ email, password, isKept: remember, from: fromOf(http) }));
      return answerSignedIn(options, http, session);
    },
  });
}

function logoutRoute(options: AuthRouteOptions): Route {
  return publicRoute({
    ...COMMON,
    method: "POST",
    path: "/auth/logout",
    summary: "Sign out",
    description: "Ends the session and its open streams at once.",
    responses: { 200: { description: "Signed out", schema: MessageSchema } },
    handle: async ({ http }) => {
      await leave(options, http);
      const isSecure = options.origins.isSecure(http);
      return json(200, { message: "Signed out." }, {
        "Set-Cookie": writeCookie(
          SESSION_COOKIE, "", { isSecure, sameSite: "Strict", maxAgeS: 0 }),
      });
    },
  });
}

function invitationRoutes(options: AuthRouteOptions): Route[] {
  const { signIn, accounts } = options;
  const GONE = { description: "The link was used, withdrawn, or has expired" };
  return [
    publicRoute({
      ...COMMON,
      method: "POST",
      path: "/auth/invitation",
      summary: "Read an invitation",
      body: Type.Object({ token: TOKEN }),
      responses: {
        200: {
          description: "The invitation",
          schema: Type.Object({
            email: Type.String(about("The invited address.", "ana@example.org")),
            role: Type.String(about("The role.", "operator")),
            account: Type.String(about("The account's name.", "Ada's Flower Shop")),
            invited_by: Type.String(about("Who sent the invitation.", "Ben")),
            is_reset: Type.Boolean(about(
              "True if the link sets a new password for an existing member instead of creating "
              + "one.")),
          }),
        },
        404: GONE,
      },
      handle: ({ body, http }) => watched(options, http, "invitation", async () => {
        const { accountId, email, role, invitedBy, userId } = await signIn.invitation(body.token);
        const account = await accounts.find(accountId);
        return json(200, {
          email, role, account: account?.name ?? "", invited_by: invitedBy.name,
          is_reset: userId !== null,
        });
      }),
    }),
    publicRoute({
      ...COMMON,
      method: "POST",
      path: "/auth/join",
      summary: "Accept an invitation",
      description: "Works once and signs in. A link for a new password does not change the name.",
      body: Type.Object({ token: TOKEN, name: NAME, password: NEW_PASSWORD }),
      responses: {
        200: SIGNED_IN_200, 404: GONE,
        409: { description: "There already is a member with this address" },
      },
      handle: async ({ body, http }) => {
        const session = await watched(options, http, "invitation", () =>
          signIn.join({ ...body, name: body.name.trim(), from: fromOf(http) }));
        return answerSignedIn(options, http, session);
      },
    }),
  ];
}

const toPage = (location: string, headers: HeaderMap = {}): Reply => ({
  status: 302, contentType: "text/plain", content: "",
  headers: { Location: location, "Cache-Control": "no-store", ...headers },
});
/** Pages that browsers navigate to; not part of the API. */
const PROVIDER_ROUTE = {
  tag: "Members", errorShape: "message", isUndocumented: true, method: "GET",
  responses: {
    302: { description: "To the next page", contentType: "text/plain" },
    404: { description: "There is none" },
  },
} as const;

/** The sign-in page shows the reason in words. */
const refused = (
  why: "oidc_failed" | "oidc_cancelled" | "oidc_unknown" | "oidc_unverified",
): string => `/#/sign-in/${why}`;

const callbackOf = ({ origins }: AuthRouteOptions, http: HttpRequest): string =>
  `${origins.of(http)}${API_ROOT}/auth/oidc/callback`;

function provider({ oidc }: AuthRouteOptions): AsksProvider {
  if (!oidc) throw new Fault(404, "This server has no OpenID provider: set PARLEY_OIDC_ISSUER.");
  return oidc;
}

/** Logs a provider's failure and rethrows any other error. */
function noteFailure({ log }: AuthRouteOptions, error: unknown): void {
  if (!(error instanceof ProviderError)) throw error;
  log.warn({ err: error }, "sign-in at the OpenID provider failed");
}

interface Pending extends PendingSignIn {
  expiresAt: number;
}

/** The sign-ins that this browser began and that have not expired, newest first. */
function pendingOf(options: AuthRouteOptions, http: HttpRequest): Pending[] {
  const sealed = readCookie(http, PENDING_COOKIE, options.origins.isSecure(http));
  const text = sealed === null ? null : options.box.tryOpen(sealed, PENDING_PLACE);
  if (text === null) return [];
  const all = JSON.parse(text) as Pending[];
  return all.filter(({ expiresAt }) => expiresAt > options.system.now());
}

/** Lax: the browser comes back from another site. */
function pendingCookie(
  { box, origins }: AuthRouteOptions, http: HttpRequest, all: Pending[],
): string {
  const value = all.length === 0 ? "" : box.seal(JSON.stringify(all), PENDING_PLACE);
  return writeCookie(PENDING_COOKIE, value, {
    isSecure: origins.isSecure(http), sameSite: "Lax", maxAgeS: value === "" ? 0 : PENDING_S,
  });
}

function beginRoute(options: AuthRouteOptions): Route {
  return publicRoute({
    ...PROVIDER_ROUTE,
    path: "/auth/oidc",
    summary: "Sign in at the OpenID provider",
    handle: async ({ http }) => {
      try {
        const { url, pending } = await provider(options).begin(callbackOf(options, http));
        const expiresAt = options.system.now() + PENDING_S * 1e6;
        const all = [{ ...pending, expiresAt }, ...pendingOf(options, http)];
        return toPage(url, { "Set-Cookie": pendingCookie(options, http, all.slice(0, PENDING_MAX)) });
      } catch (error) {
        noteFailure(options, error);
        return toPage(refused("oidc_failed"));
      }
    },
  });
}

function finishRoute(options: AuthRouteOptions): Route {
  const { signIn, failures } = options;
  return publicRoute({
    ...PROVIDER_ROUTE,
    path: "/auth/oidc/callback",
    summary: "Where the OpenID provider leads back to",
    handle: async ({ http }) => {
      const oidc = provider(options);
      const all = pendingOf(options, http);
      const state = new URLSearchParams(http.query).get("state");
      const pending = all.find((one) => one.state === state);
      const used = pendingCookie(options, http, all.filter((one) => one !== pending));
      const no = (why: Parameters<typeof refused>[0]): Reply => {
        failures.record(http.address, "oidc");
        return toPage(refused(why), { "Set-Cookie": used });
      };
      if (!pending) return no("oidc_failed");
      try {
        const person = await oidc.finish(`${callbackOf(options, http)}?${http.query}`, pending);
        if (!person) return toPage(refused("oidc_cancelled"), { "Set-Cookie": used });
        const { email, isVerified } = person;
        if (email === null || !isVerified) return no("oidc_unverified");
        const session = await signIn.enter({ ...person, email }, fromOf(http));
        if (!session) return no("oidc_unknown");
        return toPage("/", (await answerSignedIn(options, http, session)).headers);
      } catch (error) {
        noteFailure(options, error);
        return no("oidc_failed");
      }
    },
  });
}
