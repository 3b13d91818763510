// Composition root, admission: limits, tickets, sessions and origins, combined into what every API
// route checks before it runs. Used by mount.ts.
import type { Cluster } from "#cluster/cluster.ts";
import { shareLimits } from "#cluster/limits.ts";
import type { Wire } from "#cluster/wire.ts";
import type { Accounts } from "#features/accounts/accounts.ts";
import { SESSION_COOKIE } from "#features/accounts/people/auth-routes.ts";
import type { Tickets } from "#features/accounts/people/tickets.ts";
import { createAccess, type Access } from "#features/conversations/access.ts";
import { createFailedAuthentications } from "#core/failed-authentications.ts";
import { LIMITS } from "#core/limits.ts";
import {
  createRateLimiter, type RateLimit, type RateLimiter, type SharedRateLimiter,
} from "#core/rate-limit.ts";
import type { AppOptions, Features } from "./features.ts";
import { tlsFilesOf } from "#config/config.ts";
import { API_ROOT, type ApiOptions } from "#http/api.ts";
import { readCookie } from "#http/cookies.ts";
import { createOrigins } from "#http/origins.ts";
import type { Caller } from "#http/route.ts";
import type { HttpServer } from "#http/server.ts";
import type { Storage } from "#storage/storage.ts";
import type { People } from "./people.ts";
import { assertMay } from "./rights.ts";

function createLimiters({ config, system, log, nodes, wire }: AdmissionOptions) {
  if (!config.PARLEY_RATE_LIMITS) return null;
  const limiter = (...limits: [RateLimit, ...RateLimit[]]): RateLimiter =>
    createRateLimiter(limits, { system, keysMax: LIMITS.rateLimiterKeysMax });
  const minute = 60_000;
  const limiters = {
    key: limiter(
      { count: config.PARLEY_RATE_KEY_PER_MINUTE, windowMs: minute },
      { count: config.PARLEY_RATE_KEY_BURST, windowMs: 10_000 },
    ),
    dashboard: limiter(
      { count: LIMITS.dashboardPerMinuteMax, windowMs: minute },
      { count: LIMITS.dashboardBurstMax, windowMs: 10_000 },
    ),
    generateReply: limiter({ count: 5, windowMs: minute }),
    create: limiter(
      { count: config.PARLEY_RATE_ADDRESS_PER_MINUTE, windowMs: minute },
      { count: config.PARLEY_RATE_ADDRESS_PER_HOUR, windowMs: 60 * minute },
    ),
    send: limiter({ count: config.PARLEY_RATE_CONVERSATION_PER_MINUTE, windowMs: minute }),
  };
  return {
    ...wire ? shareLimits({ cluster: nodes, wire, log }, limiters) : limiters,
    // Not shared between nodes: asking another node would cost more than the frame.
    voiceSample: limiter({ count: LIMITS.voiceSamplesPerMinuteMax, windowMs: minute }),
    typing: limiter({ count: LIMITS.typingPerMinuteMax, windowMs: minute }),
  };
}

/** The caller that a ticket was issued to. */
type Issued = Pick<Caller, "accountId" | "keyId" | "session" | "member">;

/** The caller with its key's present rights: a ticket dies with its key. A session's only reads. */
async function callerOfTicket(
  accounts: Accounts, people: People, issued: Issued | null,
): Promise<Caller | null> {
  if (issued?.member) return people.callerOf(issued.member.sessionId);
  const identity = await accounts.identityOf(issued?.keyId ?? 0);
  return identity && issued?.session
    ? { ...identity, scopes: identity.scopes.filter((scope) => scope === "read"), session: true }
    : identity;
}

export interface Admission {
  api: ApiOptions;
  access: Access;
  tickets: Pick<Tickets<Issued>, "issue">;
  origins: ReturnType<typeof createOrigins>;
  /** Limits the replies suggested to operators; null where limits are off. */
  generateReply: SharedRateLimiter | null;
  voiceSample: SharedRateLimiter | null;
}

interface AdmissionOptions extends Omit<AppOptions, "models"> {
  storage: Pick<Storage, "events">;
  nodes: Pick<Cluster, "nodeId" | "alive">;
  /** Null: there are no other nodes. */
  wire: Wire | null;
  features: Pick<
    Features,
    "accounts" | "people" | "sessions" | "assistants" | "conversations" | "metrics" | "newTickets"
  >;
  server: HttpServer;
  draining(): boolean;
}

export function createAdmission(options: AdmissionOptions): Admission {
  const { config, log, system, storage, server, draining } = options;
  const {
    accounts, people, sessions, assistants, conversations, metrics, newTickets,
  } = options.features;
  const limiters = createLimiters(options);
  const tickets = newTickets<Issued>("streams");
  const origins = createOrigins(config.PARLEY_PUBLIC_URL, tlsFilesOf(config) !== null);
  const access = createAccess({
    conversations,
    findAssistant: assistants.findById,
    findAssistantByUuid: assistants.findByUuid,
    ownOriginLists: assistants.ownOriginLists,
    events: storage.events,
    limiters,
    defaultOrigins: config.PARLEY_ALLOWED_ORIGINS,
    ownOrigin: origins.of,
    streamsMax: config.PARLEY_STREAMS_PER_CONVERSATION_MAX,
  });
  const api: ApiOptions = {
    server,
    log,
    system,
    authenticate: (token) => accounts.authenticate(token),
    redeemTicket: async (ticket) => callerOfTicket(accounts, people, await tickets.redeem(ticket)),
    findMember: async (http) => {
      const token = readCookie(http, SESSION_COOKIE, origins.isSecure(http));
      return token === null ? null : people.memberOf(token);
    },
    isOwnPage: origins.isOwnPage,
    assertMay,
    findSession: (token) => sessions.find(token),
    failures: createFailedAuthentications({ log, system, slows: config.PARLEY_RATE_LIMITS }),
    takeRate: limiters && (({ keyId, member, session }) =>
      (session ? limiters.dashboard : limiters.key)
        .take(member ? `user ${member.userId}` : String(keyId))),
    zoneOf: accounts.zoneOf,
    baseUrlOf: (http) => origins.of(http) + API_ROOT,
    observe: (method, route, status, seconds) => {
      metrics.request.observe({ method, route }, seconds);
      metrics.requests.inc({ method, route, status: `${Math.trunc(status / 100)}xx` });
    },
    expect: (method, route) => {
      metrics.request.zero({ method, route });
      for (const status of ["2xx", "4xx", "5xx"]) metrics.requests.inc({ method, route, status }, 0);
    },
    allowsOrigin: (_origin, uuid, http) => access.originAllowedFor(uuid, http),
    allowsPreflight: access.preflightAllowed,
    draining,
  };
  return {
    api, access, tickets, origins, generateReply: limiters?.generateReply ?? null,
    voiceSample: limiters?.voiceSample ?? null,
  };
}
