// Composition root, the half at the wire: mounts the features of features.ts, runs the clockwork,
// starts and stops it all.
import { createAdmission } from "./admission.ts";
import { createOverview } from "#features/accounts/overview.ts";
import { accountRoutes, accountSocket } from "#features/accounts/routes.ts";
import { createStatements } from "#features/accounts/statements.ts";
import { ABOUT } from "./api-document.ts";
import { groupRoutes } from "#features/assistants/group-routes.ts";
import { lookupRoutes } from "#features/assistants/lookup-routes.ts";
import { assistantRoutes } from "#features/assistants/routes.ts";
import { calendarRoutes } from "#features/calendar/routes.ts";
import { hostedRoutes } from "#features/calls/hosted/routes.ts";
import { callSocket, listenSocket, liveCallRoutes, type LiveCallOptions } from "#features/calls/live-routes.ts";
import { recordingRoutes } from "#features/calls/recording-routes.ts";
import { callRoutes } from "#features/calls/routes.ts";
import { webCall } from "#features/calls/web-call.ts";
import type { RecordingUrl } from "#features/calls/wire.ts";
import { campaignRoutes } from "#features/campaigns/routes.ts";
import type { Access } from "#features/conversations/access.ts";
import { accountConversationRoutes } from "#features/conversations/account-routes.ts";
import { recordRoutes } from "#features/conversations/record-routes.ts";
import { conversationRoutes } from "#features/conversations/routes.ts";
import { conversationSocket } from "#features/conversations/socket.ts";
import { widgetRoutes } from "#features/conversations/widget-routes.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { DAY_MICROS, wait, type System, type Timer } from "#core/system.ts";
import { createFeatures, type AppOptions, type Features } from "./features.ts";
import { API_ROOT, identify, mountApi, type ApiOptions } from "#http/api.ts";
import { renderFault, toFault } from "#http/errors.ts";
import type { HttpRequest, SocketRoute } from "#http/exchange.ts";
import { buildOpenApi } from "#http/openapi.ts";
import { listeningOrigin } from "#http/origins.ts";
import { mountPages } from "#http/pages.ts";
import type { RateLimiter } from "#core/rate-limit.ts";
import { VERSION } from "#core/version.ts";
import type { Route } from "#http/route.ts";
import { createHttpServer, type HttpServer } from "#http/server.ts";
import { knowledgebaseRoutes } from "#features/knowledgebases/routes.ts";
import { leadRoutes } from "#features/leads/routes.ts";
import { mountMcp } from "#gateways/mcp/routes.ts";
import { phoneNumberRoutes } from "#features/phone-numbers/routes.ts";
import { renderOpenAiFault } from "#gateways/openai/chat-completions.ts";
import { protocolRoutes } from "#gateways/routes.ts";
import { createTurnStreams } from "#gateways/turn-stream.ts";
import { createUiMessages } from "#gateways/ai-sdk/ui-message-stream.ts";
import { watchForeignCommits } from "#realtime/foreign-commits.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import type { Storage } from "#storage/storage.ts";
import { toolRoutes } from "#features/tools/routes.ts";
import { webhookRoutes } from "#features/webhooks/routes.ts";
import { mountBundles } from "#ui/build.ts";
import { mountUi } from "#ui/pages.ts";

export interface App {
  features: Features;
  openApi(): object;
  /** Resolves to the real ports. */
  listen(): Promise<{ port: number; sipPort: number | null }>;
  /** Refuses new work, finishes what is under way, asks clients to come back. Idempotent. */
  close(): Promise<void>;
}

/** Work that comes round by the clock. */
function startTimers(
  { config, log, system }: AppOptions,
  storage: Storage,
  { bus, accounts, conversations, calls, delivery, phoneNumbers }: Features,
): Timer[] {
  const quietly = (what: string, run: () => Promise<unknown>) => () => {
    if (storage.failure()) return;
    run().catch((error: unknown) => log.error({ err: error }, `${what} failed`));
  };
  const retentionMicros = config.PARLEY_EVENT_RETENTION_DAYS * DAY_MICROS;
  return [
    system.every(LIMITS.inactivitySweepMs, quietly("inactivity sweep", conversations.sweep)),
    system.every(LIMITS.keyLastUsedFlushMs, quietly("key use flush", accounts.flushKeyUses)),
    system.every(LIMITS.retentionSweepMs, quietly("event retention", () =>
      storage.trimLog(system.now() - retentionMicros, LIMITS.retentionRowsMax))),
    system.every(LIMITS.retentionSweepMs, quietly("recording retention", () =>
      calls.expireRecordings(
        system.now() - config.PARLEY_RECORDING_DAYS * DAY_MICROS, LIMITS.retentionRowsMax))),
    system.every(LIMITS.retentionSweepMs, quietly("webhook retention", () =>
      delivery.webhooks.trim(LIMITS.retentionRowsMax))),
    system.every(LIMITS.numberSweepMs, quietly("phone number sweep", phoneNumbers.sweep)),
    watchForeignCommits({ events: storage.events, bus, system }),
  ];
}

function mountEverything(
  options: AppOptions,
  storage: Storage,
  features: Features,
  server: HttpServer,
  draining: () => boolean,
): { openApi(): object; connectCarriers(): void } {
  const { config, log, system } = options;
  const { accounts, sessions, conversations, streams, metrics } = features;
  const { events } = storage;
  const { api, access, tickets, generateReply } =
    createAdmission(options, storage, features, server, draining);
  const account = {
    accounts, tickets, sessions, events, streams,
    overview: createOverview({ store: storage.overview, system }),
    statements: createStatements({ store: storage.statements, system }),
    identify: (http: HttpRequest) => identify(api, http, true),
  };
  const routes: Route[] = [
    ...accountRoutes(account),
    ...resourceRoutes(features, system),
    ...talkRoutes(options, features, access, api, generateReply),
  ];
  routes.push(...webhookRoutes({ webhooks: features.delivery.webhooks, events }));
  const called = mountCalls(options, storage, features, access, {
    identify: account.identify, baseUrlOf: api.baseUrlOf,
  });
  routes.push(...called.routes);
  mountRoutes(options, features, api, routes);
  for (const socket of called.sockets) server.socket(socket);
  const connectCarriers = mountHosted(options, features, server, draining);
  server.socket(conversationSocket({ conversations, access, streams, log }));
  server.socket(accountSocket(account));
  const openApi = (): object =>
    buildOpenApi(routes, { ...ABOUT, version: VERSION, baseUrl: API_ROOT });
  mountPages({
    server,
    notReady: () => whyNotReady(storage, draining),
    metrics: async () => ({
      contentType: metrics.registry.contentType, text: await metrics.read(system),
    }),
    metricsToken: config.PARLEY_METRICS_TOKEN,
    openApi,
  });
  mountUi(server);
  mountBundles(server);
  mountFallback(server, routes);
  return { openApi, connectCarriers };
}

/** The API, over HTTP and as the tools of MCP clients. */
function mountRoutes(
  { config }: AppOptions, { conversations, knowledge }: Features, api: ApiOptions, routes: Route[],
): void {
  mountApi(api, routes);
  mountMcp({
    api, routes, version: VERSION, publicUrl: config.PARLEY_PUBLIC_URL,
    conversationOf: conversations.get, search: knowledge.search,
  });
}

/** Text conversations, in this API's words and in those of other systems' clients. */
function talkRoutes(
  { system }: AppOptions,
  features: Features,
  access: Access,
  api: ApiOptions,
  replyLimiter: RateLimiter | null,
): Route[] {
  const { assistants, conversations, streams } = features;
  const turnStreams = createTurnStreams({ bus: features.bus, system });
  const uiMessages = createUiMessages(turnStreams);
  const findAssistantByUuid = (uuid: string) => assistants.findByUuid(uuid);
  return [
    ...conversationRoutes({ conversations, access, streams, findAssistantByUuid, uiMessages }),
    ...protocolRoutes({
      conversations, assistants, access, uiMessages,
      streams: turnStreams,
      assertRoom: streams.assertRoom,
      identify: (http) => identify(api, http, false),
      takeRate: api.takeRate,
    }),
    ...widgetRoutes({
      access, system, findAssistantByUuid, whyCannotTalk: features.voice.whyCannotTalk,
      languageOf: ({ settings }) =>
        features.catalogs.findLanguage(settings.language_id)?.iso_2 ?? "en",
    }),
    ...recordRoutes({ conversations }),
    ...accountConversationRoutes({
      conversations, replyLimiter,
      findAssistant: (accountId, id) => assistants.find(accountId, id),
    }),
  ];
}

const recordingUrlOf = ({ recordings }: Features): RecordingUrl =>
  ({ recordingFile, endedAt }, baseUrl) => recordingFile === null || endedAt === null
    ? null
    : `${baseUrl}${recordings.linkOf(recordingFile)}`;

/** Routes and sockets of calls. */
function mountCalls(
  options: AppOptions,
  storage: Storage,
  features: Features,
  access: Access,
  asking: Pick<LiveCallOptions, "identify" | "baseUrlOf">,
): { routes: Route[]; sockets: SocketRoute[] } {
  const { assistants, conversations, voice } = features;
  const web = webCall({
    conversations,
    access,
    system: options.system,
    log: options.log,
    calling: voice.calling,
    findAssistant: (id) => assistants.findById(id),
    whyCannotTalk: voice.whyCannotTalk,
    observePlayout: (seconds) => features.metrics.playout.observe(seconds),
  });
  const live = liveCallOptions(options, storage, features, asking);
  return {
    routes: [
      ...web.routes, ...liveCallRoutes(live), ...placedCallRoutes(options, storage, features),
    ],
    sockets: [web.socket, callSocket(live), listenSocket(live)],
  };
}

/** Mounts the hosted carriers' doors; the result connects those that wait until they are asked. */
function mountHosted(
  { log }: AppOptions, { voice }: Features, server: HttpServer, draining: () => boolean,
): () => void {
  const mounted = [...voice.hosted.values()].map((hosted) =>
    hostedRoutes({ hosted, calling: voice.calling, draining, log }));
  for (const { routes, socket } of mounted) {
    for (const route of routes) server.route(route);
    server.socket(socket);
  }
  return () => {
    for (const { connect } of mounted) connect();
  };
}

function liveCallOptions(
  options: AppOptions,
  { events }: Storage,
  features: Features,
  asking: Pick<LiveCallOptions, "identify" | "baseUrlOf">,
): LiveCallOptions {
  const { calls, voice, streams, accounts } = features;
  return {
    calls, streams, events, ...asking,
    calling: voice.calling,
    recordingUrl: recordingUrlOf(features),
    isInForce: (keyId) => accounts.isInForce(keyId),
    log: options.log,
  };
}

function placedCallRoutes(options: AppOptions, storage: Storage, features: Features): Route[] {
  const { calls, voice, assistants, recordings } = features;
  const { calling, whyCannotCall, whyCannotTalk } = voice;
  return [
    ...recordingRoutes(recordings),
    ...callRoutes({
      calls, calling, whyCannotCall, whyCannotTalk, log: options.log,
      recordingUrl: recordingUrlOf(features),
      findAssistant: (accountId, id) => assistants.find(accountId, id),
      findAssistantByUuid: (uuid) => assistants.findByUuid(uuid),
      numberOf: ({ accountId, phoneNumberId }) => phoneNumberId === null
        ? null
        : storage.phoneNumbers.find(accountId, phoneNumberId)?.phoneNumber ?? null,
    }),
  ];
}

/** What an account makes and looks up. */
function resourceRoutes(features: Features, system: System): Route[] {
  const { catalogs, assistants, modelCatalog, capabilities } = features;
  return [
    ...lookupRoutes({
      catalogs, assistants, capabilities, models: (type) => modelCatalog.list(type),
    }),
    ...assistantRoutes({ assistants, catalogs, capabilities }),
    ...groupRoutes(features.groups),
    ...toolRoutes(features.tools, features.tryTool),
    ...phoneNumberRoutes(features.phoneNumbers),
    ...knowledgebaseRoutes(features.knowledge),
    ...leadRoutes({ leads: features.leads, uploadsDir: features.knowledge.uploadsDir }),
    ...campaignRoutes({
      campaigns: features.campaigns, callers: features.callers,
      parallelMax: (accountId) => features.planOf(accountId).parallel_calls,
    }),
    ...calendarRoutes({
      calendars: features.calendars,
      findAssistant: (accountId, id) => assistants.find(accountId, id),
      system,
    }),
  ];
}

function whyNotReady(storage: Storage, draining: () => boolean): string | null {
  if (storage.failure()) return "the database cannot be written";
  return draining() ? "the server is stopping" : null;
}

/** 405 where the path exists with another method, else 404. */
function mountFallback(server: HttpServer, routes: Route[]): void {
  const patterns = routes.flatMap((route) =>
    [route.path, ...(route.aliases ?? [])].map((path) => ({
      method: route.method,
      expression: new RegExp(`^${API_ROOT}${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    })));
  server.fallback((http) => {
    const allowed = patterns
      .filter(({ expression }) => expression.test(http.path))
      .map(({ method }) => method);
    const fault = allowed.length > 0
      ? new Fault(405, `The ${http.method} method is not supported for this route.`)
      : new Fault(404, "Not found.");
    const headers = allowed.length > 0 ? { Allow: allowed.join(", ") } : {};
    return /^(\/api)?\/v1\//.test(http.path)
      ? renderOpenAiFault(fault, headers)
      : renderFault(fault, "message", headers);
  });
}

export async function createApp(options: AppOptions): Promise<App> {
  const { config, log, system } = options;
  const storage = await openStorage(config.PARLEY_DATA_DIR, "thread");
  const features = createFeatures(options, storage);
  await features.conversations.recover();
  const lateCalls = await features.calls.recover();
  let isDraining = false;
  const { PARLEY_TLS_KEY_FILE: keyFile, PARLEY_TLS_CERT_FILE: certFile } = config;
  const server = createHttpServer({
    tls: keyFile !== null && certFile !== null ? { keyFile, certFile } : null,
    trustedProxies: config.PARLEY_TRUSTED_PROXIES,
    log,
    newRequestId: () => system.uuid(),
    renderError: (error, request) => renderFault(toFault(error, log, request), "message"),
  });
  const { openApi, connectCarriers } = mountEverything(
    options, storage, features, server, () => isDraining);
  const timers = startTimers(options, storage, features);

  const stop = async (): Promise<void> => {
    isDraining = true;
    server.stopListening();
    for (const timer of timers) timer.cancel();
    await features.dialler.close();
    await Promise.all([
      features.conversations.drain(LIMITS.drainRepliesMs), features.voice.close(),
    ]);
    await Promise.race([server.answered(), wait(system, LIMITS.answersMs)]);
    // What the last of them committed is published by the next tick; watchers leave after it.
    await new Promise(setImmediate);
    features.streams.closeAll();
    // One turn of the event loop lets the last frames leave before the sockets are dropped.
    await new Promise((resolve) => setImmediate(resolve));
    if (!storage.failure()) await features.accounts.flushKeyUses();
    server.close();
    await Promise.all([
      features.toolThreads.close(), features.knowledge.close(), features.delivery.close(),
      features.phoneNumbers.close(),
    ]);
    await features.modelCatalog.close();
    await storage.close();
  };
  let stopping: Promise<void> | null = null;
  return {
    features,
    openApi,
    listen: async () => {
      await features.assistants.sealKeys();
      const port = await server.listen(config.PARLEY_HOST, config.PARLEY_PORT);
      const sip = await features.voice.listen();
      connectCarriers();
      features.knowledge.processor.start();
      features.dialler.start();
      features.delivery.start(
        listeningOrigin(config.PARLEY_TLS_KEY_FILE !== null, config.PARLEY_HOST, port));
      features.phoneNumbers.sweep().catch((error: unknown) =>
        log.error({ err: error }, "phone numbers could not be looked after"));
      features.voice.calling.finishLate(lateCalls).catch((error: unknown) =>
        log.error({ err: error }, "calls could not be finished"));
      return { port, sipPort: sip?.port ?? null };
    },
    close: () => (stopping ??= stop()),
  };
}

export type { Features };
