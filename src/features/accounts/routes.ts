// The account's own routes: profile, API keys, and the account's event stream for dashboards.
import { Type } from "@sinclair/typebox";
import { msOfMoment } from "#core/days.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { about, Nullable, OneOf } from "#core/schema.ts";
import { dollarsFromMicros } from "#core/money.ts";
import { isoMicros, isoOrNull, type Instant, type System } from "#core/system.ts";
import { accountTopic, type Author } from "#events/events.ts";
import type { EventLog } from "#events/log.ts";
import { IdOf, listOf, MessageSchema, Moment, POSITION, TICKET } from "#http/answers.ts";
import { API_ROOT } from "#http/api.ts";
import { json, type HttpRequest, type SocketRoute } from "#http/exchange.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import { compileValidation, parseQuery } from "#http/validation.ts";
import { obey, resume } from "#realtime/commands.ts";
import { sseRoute } from "#realtime/sse-route.ts";
import { readPosition, type StreamRequest, type Streams } from "#realtime/streams.ts";
import type { Accounts } from "./accounts.ts";
import type { By } from "./audit.ts";
import type { Balance } from "./money/balance.ts";
import { wireOutlook } from "./money/balance-routes.ts";
import { ledgerRoutes } from "./money/ledger-routes.ts";
import type { ReadOverview } from "./overview/overview.ts";
import { nodesRoutes, type NodesOptions } from "./nodes-routes.ts";
import type { FirstStepCases } from "./overview/first-steps.ts";
import { overviewRoutes } from "./overview/routes.ts";
import { ROLE_RIGHTS, type Role } from "./people/roles.ts";
import { settingsRoutes } from "./settings-routes.ts";
import type { Sessions } from "./people/sessions.ts";
import type { Statements } from "./money/statements.ts";
import type { Tickets } from "./people/tickets.ts";
import type { Users } from "./people/users.ts";

interface AccountRouteOptions {
  balance: Pick<Balance, "outlook">;
  accounts: Accounts;
  tickets: Pick<
    Tickets<Pick<Caller, "accountId" | "keyId" | "member" | "session">>, "issue"
  >;
  people: {
    isInForce(caller: Pick<Caller, "keyId" | "member">): Promise<boolean>;
    authorOf(caller: Caller): Promise<Author>;
  };
  users: Pick<Users, "find">;
  byOf(caller: Caller, http: HttpRequest): Promise<By>;
  sessions: Sessions;
  events: EventLog;
  streams: Streams;
  overview: ReadOverview;
  firstSteps: FirstStepCases;
  system: Pick<System, "now">;
  statements: Statements;
  server: NodesOptions;
  /** Most streams that may be open on one account at a time. */
  streamsMax: number;
  log: Logger;
  /** Authenticates a request by its bearer key or ticket; throws Fault 401. */
  identify(http: HttpRequest): Promise<Caller>;
}

const KEY = {
  id: Type.Integer(about("The key's id, which is also the part of the key before the `|`.", 3)),
  name: Type.String({
    maxLength: 255, ...about("What the key is for, in your words.", "Import from the shop"),
  }),
  created_at: Moment("When the key was created, in UTC."),
};
const EXPIRES = about(
  "When the key expires, ISO 8601; null if it never does.",
  "2027-01-01T00:00:00.000000Z");
const NewKey = Type.Object({
  name: KEY.name,
  scopes: Type.Optional(
    Type.Array(OneOf(["read", "write"]), {
      minItems: 1, uniqueItems: true,
      ...about("The key's scopes. Defaults to both.", ["read"]),
    })),
  expires_at: Type.Optional(Nullable(Type.String(EXPIRES))),
});
const Key = Type.Object({
  ...KEY,
  scopes: Type.Array(Type.String(), about(
    "`read` allows every request that only reads; `write` allows all others.", ["read", "write"])),
  made_by: Nullable(Type.Object({
    id: Type.String(about("The member or key that created it.", "user:5")),
    name: Type.String(about("The name at that time.", "Ana")),
  }, about("Who created it; null if the command line did."))),
  expires_at: Nullable(Type.String(EXPIRES)),
  last_used_at: Nullable(Moment("When it was last used, within a minute; null: never.")),
});

function readExpiry(text: string | null | undefined, now: Instant): Instant | null {
  if (text === null || text === undefined) return null;
  const ms = msOfMoment(text);
  if (ms === null) throw fieldFault("expires_at", "The expires at is not a valid date.");
  if (ms * 1000 > now) return ms * 1000;
  throw fieldFault("expires_at", "The expires at must be a date after now.");
}

export function accountRoutes(options: AccountRouteOptions): Route[] {
  return [
    meRoute(options), ...settingsRoutes(options),
    ...overviewRoutes(options),
    ...ledgerRoutes(options.statements), ...nodesRoutes(options.server),
    ...keyRoutes(options), sessionRoute(options), ...streamRoutes(options),
  ];
}

const TROUBLE = Type.Object({
  reason: Type.String({
    description: "balance_too_low, daily_cap_reached, or reply_failed: the model or a tool failed",
    examples: ["balance_too_low"],
  }),
  conversation_id: Type.Union([Type.String(), Type.Null()], {
    description: "The conversation; null if none could be started",
    examples: ["9b2f6c1e-5d0a-4c1b-8f0e-2a7d3c4b5e6f"],
  }),
  at: Type.String({ description: "When it happened", examples: ["2026-05-04T12:30:00.000000Z"] }),
}, about("The last time a visitor got no answer; null if never."));

const ME = {
  role: Type.String(about(
    "The caller's role: owner, admin, builder, operator or viewer.", "owner")),
  rights: Type.Array(Type.String(), about(
    "The rights of that role. A key without the scope `write` can only read, whatever its role.",
    ["view"])),
  user: Nullable(Type.Object({
    id: Type.Integer(about("The member's number.", 5)),
    name: Type.String(about("The member's name, which visitors see too.", "Ana")),
    email: Type.String(about("The member's e-mail address, used to sign in.", "ana@example.org")),
    has_password: Type.Boolean(about("Whether the member has a password.")),
  }, about("The signed-in member; null if the caller is an API key."))),
};

async function callerItem({ users }: AccountRouteOptions, { accountId, role, member }: Caller) {
  const user = member ? await users.find(accountId, member.userId) : null;
  return {
    role, rights: ROLE_RIGHTS[role as Role],
    user: user && {
      id: user.id, name: user.name, email: user.email, has_password: user.hasPassword,
    },
  };
}

function meRoute(options: AccountRouteOptions): Route {
  const { accounts, balance } = options;
  return keyRoute({
    method: "GET",
    path: "/user/me",
    tag: "Account",
    summary: "Get the account and its balance",
    errorShape: "message",
    responses: {
      200: {
        description: "The account",
        schema: Type.Object({
          name: Type.String(about("Whose account it is.", "Ada's Flower Shop")),
          email: Type.String(about("The owner's e-mail address.", "ada@example.org")),
          total_balance: Type.Number(about(
            "The balance in USD, including what is reserved for running calls.", 4.97)),
          balance_state: Type.String(about(
            "ok; low: lasts three days at most; empty: not enough for anything.", "ok")),
          balance_lasts_until: Nullable(Moment(
            "When it runs out at the pace of the last seven days; null if not for years.")),
          time_zone: Nullable(Type.String(about(
            "The account's IANA time zone; null if not set, which means UTC.",
            "Europe/Berlin"))),
          trouble: Nullable(TROUBLE),
          ...ME,
        }),
      },
    },
    handle: async ({ caller }) => {
      const account = await accounts.find(caller.accountId);
      const outlook = account && await balance.outlook(caller.accountId);
      if (!account || !outlook) throw new Fault(404, "Account not found.");
      const { state, lasts_until: lastsUntil } = wireOutlook(outlook);
      const { name, email, timeZone, balanceMicros, trouble } = account;
      return json(200, {
        name,
        email,
        total_balance: dollarsFromMicros(balanceMicros),
        balance_state: state,
        balance_lasts_until: lastsUntil,
        time_zone: timeZone,
        trouble: trouble && {
          reason: trouble.reason, conversation_id: trouble.conversationUuid,
          at: isoMicros(trouble.at),
        },
        ...await callerItem(options, caller),
      });
    },
  });
}

const KEYS = { tag: "API keys", errorShape: "message" } as const;

function keyRoutes(options: AccountRouteOptions): Route[] {
  return [createKeyRoute(options), listKeysRoute(options), revokeKeyRoute(options)];
}

function createKeyRoute({ accounts, byOf, system }: AccountRouteOptions): Route {
  return keyRoute({
    ...KEYS,
    method: "POST",
    path: "/user/api-keys",
    summary: "Create an API key",
    description: "The response is the only place the token is shown.",
    body: NewKey,
    responses: {
      201: {
        description: "The key",
        schema: Type.Object({
          message: MessageSchema.properties.message,
          api_key: Type.Object({
            ...KEY,
            token: Type.String(about(
              "The key itself, shown only once.", "3|q8Zr1x0V5mB2nK7c")),
          }, about("The new key.")),
        }),
      },
    },
    handle: async ({ caller, body, http }) => {
      const { key, token } = await accounts.createKey(caller.accountId, body.name, {
        role: caller.role as Role,
        by: await byOf(caller, http),
        ...(body.scopes ? { scopes: body.scopes } : {}),
        expiresAt: readExpiry(body.expires_at, system.now()),
      });
      const { id, name, createdAt } = key;
      return json(201, {
        message: "API key created successfully.",
        api_key: { id, name, token, created_at: isoMicros(createdAt) },
      });
    },
  });
}

function listKeysRoute({ accounts }: AccountRouteOptions): Route {
  return keyRoute({
    ...KEYS,
    method: "GET",
    path: "/user/api-keys",
    summary: "List API keys",
    description: "Lists keys that are not revoked. An expired key no longer works but stays "
      + "listed.",
    responses: {
      200: { description: "The keys", schema: Type.Object({ api_keys: listOf(Key, "Every key that is not revoked.") }) },
    },
    handle: async ({ caller }) =>
      json(200, {
        api_keys: (await accounts.listKeys(caller.accountId)).map((key) => ({
          id: key.id,
          name: key.name,
          scopes: key.scopes,
          made_by: key.madeBy,
          expires_at: isoOrNull(key.expiresAt),
          last_used_at: isoOrNull(key.lastUsedAt),
          created_at: isoMicros(key.createdAt),
        })),
      }),
  });
}

function revokeKeyRoute({ accounts, byOf }: AccountRouteOptions): Route {
  return keyRoute({
    ...KEYS,
    method: "DELETE",
    path: "/user/api-keys/{id}",
    summary: "Revoke an API key",
    description: "Takes effect at once: requests with the key are refused and its streams end.",
    params: { id: IdOf("API key", "GET /user/api-keys") },
    notFound: "API key not found.",
    responses: { 200: { description: "Revoked", schema: MessageSchema } },
    handle: async ({ caller, id, http }) => {
      const revoked = await accounts.revokeKey(caller.accountId, id, await byOf(caller, http));
      if (!revoked) throw new Fault(404, "API key not found.");
      return json(200, { message: "API key deleted successfully." });
    },
  });
}

function sessionRoute({ sessions, events }: AccountRouteOptions): Route {
  return keyRoute({
    method: "POST",
    path: "/user/dashboard-sessions",
    scope: "read",
    tag: "API keys",
    summary: "Create a read-only dashboard session from a key",
    errorShape: "message",
    responses: {
      201: {
        description: "The session",
        schema: Type.Object({
          token: Type.String({
            description: "Bearer token for requests that read; changes need the key itself",
            examples: ["session.v1.4pQe0l3xVd1zq0aT.0Jx9hQ2b8mUuYw1sE5kR7A.q3Zk"],
          }),
          expires_at: Type.String({
            description: "When the session ends, unless its key is revoked or expires first",
            examples: ["2026-01-01T12:00:00.000000Z"],
          }),
          position: POSITION,
        }),
      },
    },
    handle: async ({ caller }) => {
      if (caller.session) throw new Fault(403, "A session is opened with an API key.");
      const { token, expiresAt } = sessions.open(caller.keyId);
      const position = String(await events.newestOfAccount(caller.accountId));
      return json(201, { token, expires_at: isoMicros(expiresAt), position });
    },
  });
}

function streamOf(
  { events, people, streamsMax }: AccountRouteOptions,
  caller: Caller,
): Pick<StreamRequest, "source" | "sessionsMax"> {
  const { accountId } = caller;
  return {
    sessionsMax: streamsMax,
    source: {
      topic: accountTopic(accountId),
      accountId,
      newest: () => events.newestOfAccount(accountId),
      after: (sequence, rows) => events.ofAccount(accountId, sequence, rows),
      sequenceOf: (event) => event.accountSequence,
      live: () => null,
      // A revoked key sees nothing more, however long its stream has been open.
      allowed: () => people.isInForce(caller),
    },
  };
}

const asked = ({ accountId, keyId, member, session }: Caller) =>
  ({ accountId, keyId, ...member ? { member } : {}, ...session ? { session } : {} });

function streamRoutes(options: AccountRouteOptions): Route[] {
  const { streams, tickets } = options;
  return [
    keyRoute({
      tag: "Streams",
      errorShape: "message",
      method: "POST",
      path: "/user/stream-tickets",
      scope: "read",
      summary: "Get a ticket for streams",
      description: "Returns a short-lived ticket for `?ticket=`, for browsers that cannot send a "
        + "key. Valid for `/user/stream`, `/user/socket`, and the streams and sockets of calls.",
      responses: {
        201: {
          description: "The ticket",
          schema: Type.Object({
            ticket: TICKET, expires_at: Moment("When the ticket expires, in UTC."),
          }),
        },
      },
      handle: async ({ caller }) => {
        const { ticket, expiresAt } = tickets.issue(asked(caller));
        return json(201, { ticket, expires_at: isoMicros(expiresAt) });
      },
    }),
    sseRoute({
      tag: "Streams",
      path: "/user/stream",
      summary: "Stream the account's events",
      description: "Streams every event in the account as it happens. Resumes without gaps or "
        + "repeats.",
    }, streams, ({ caller }) => streamOf(options, caller)),
  ];
}

const validateCommand = compileValidation(Type.Object({
  type: OneOf(["ping", "resume"]),
  after: Type.Optional(Type.String()),
  request_id: Type.Optional(Type.String({ maxLength: LIMITS.requestIdCharsMax })),
}));

/** WS /user/socket: the account's stream; commands: resume, ping. */
export function accountSocket(options: AccountRouteOptions): SocketRoute {
  const { streams, identify, log } = options;
  return {
    pattern: `${API_ROOT}/user/socket`,
    errorShape: "message",
    accept: async (http) => {
      const caller = await identify(http);
      const position = readPosition(parseQuery(http.query).after, http.headers["last-event-id"]);
      const open = await streams.openSocket({ ...streamOf(options, caller), position });
      return (socket) => {
        const session = open(socket);
        // Commands run one after another, so that answers keep their order.
        let last = Promise.resolve();
        return {
          message: (text) => {
            last = last.then(() => obey(session, text, log, async (given) => {
              const { type, after } = validateCommand(given);
              return type === "ping" ? ["pong", {}] : resume(session, after);
            }));
          },
          drained: () => session.drained(),
          closed: () => session.closed(),
        };
      };
    },
  };
}
