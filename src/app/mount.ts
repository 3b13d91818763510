// Composition root, the part at HTTP and sockets: which routes, sockets and pages there are, and
// which features they call. Called by app.ts.
import { join } from "node:path";
import type { Nodes } from "#cluster/nodes.ts";
import type { Wire } from "#cluster/wire.ts";
import { balanceRoutes, paymentRoute } from "#features/accounts/money/balance-routes.ts";
import { costRoutes } from "#features/accounts/money/costs-routes.ts";
import { accountRoutes, accountSocket } from "#features/accounts/routes.ts";
import { auditRoutes } from "#features/accounts/audit-routes.ts";
import { firstDayRoutes } from "#features/accounts/overview/first-day-routes.ts";
import { authRoutes } from "#features/accounts/people/auth-routes.ts";
import { memberRoutes } from "#features/accounts/people/member-routes.ts";
import { groupRoutes } from "#features/assistants/group-routes.ts";
import { lookupRoutes } from "#features/assistants/lookup-routes.ts";
import { assistantRoutes } from "#features/assistants/routes.ts";
import { voiceSampleRoutes } from "#features/assistants/voice-sample-routes.ts";
import { calendarRoutes } from "#features/calendar/routes.ts";
import { hostedRoutes } from "#features/calls/hosted/routes.ts";
import { callDeskRoutes, speakSocket } from "#features/calls/desk-routes.ts";
import { callSocket, listenSocket, liveCallRoutes } from "#features/calls/live-routes.ts";
import { personRoutes } from "#features/calls/records/person-routes.ts";
import { recordingRoutes } from "#features/calls/records/recording-routes.ts";
import { callRoutes } from "#features/calls/routes.ts";
import { createTrialCall } from "#features/calls/trial-call.ts";
import { webCall } from "#features/calls/web-call.ts";
import { campaignRoutes } from "#features/campaigns/routes.ts";
import { accountConversationRoutes } from "#features/conversations/account-routes.ts";
import { attachmentRoutes } from "#features/conversations/attachment-routes.ts";
import { bulkRoutes } from "#features/conversations/bulk-routes.ts";
import { callbackRoutes } from "#features/conversations/desk/callback-routes.ts";
import { deskRoutes } from "#features/conversations/desk/routes.ts";
import { deskViewRoutes } from "#features/conversations/desk/view-routes.ts";
import { pushRoutes } from "#features/conversations/desk/push-routes.ts";
import { identityRoutes } from "#features/conversations/visitors/identity-routes.ts";
import { inboxRoutes } from "#features/conversations/desk/inbox-routes.ts";
import { ratingRoutes } from "#features/conversations/visitors/rating-routes.ts";
import { recordRoutes } from "#features/conversations/record-routes.ts";
import { conversationRoutes } from "#features/conversations/routes.ts";
import { conversationSocket } from "#features/conversations/socket.ts";
import { testRoutes } from "#features/conversations/test-routes.ts";
import { transcriptRoutes } from "#features/conversations/visitors/transcript-routes.ts";
import { widgetRoutes } from "#features/conversations/visitors/widget-routes.ts";
import { loadWidgetTexts } from "#features/conversations/visitors/widget-texts.ts";
import { documentRoutes } from "#features/knowledgebases/document-routes.ts";
import { knowledgebaseRoutes } from "#features/knowledgebases/routes.ts";
import { searchRoutes } from "#features/knowledgebases/search-routes.ts";
import { createImportFiles } from "#features/leads/import-file.ts";
import { leadRoutes } from "#features/leads/routes.ts";
import { phoneNumberRoutes } from "#features/phone-numbers/routes.ts";
import { templateRoutes } from "#features/templates/routes.ts";
import { createTemplates } from "#features/templates/templates.ts";
import { mcpRoutes as mcpToolRoutes } from "#features/tools/mcp-routes.ts";
import { toolRoutes } from "#features/tools/routes.ts";
import { webhookRoutes } from "#features/webhooks/routes.ts";
import { createUiMessages } from "#gateways/ai-sdk/ui-message-stream.ts";
import { mountMcp } from "#gateways/mcp/routes.ts";
import { isOpenAiPath, noSuchApi, renderOpenAiFault } from "#gateways/openai/chat-completions.ts";
import { protocolRoutes } from "#gateways/routes.ts";
import { createTurnStreams } from "#gateways/turn-stream.ts";
import { programFile } from "#core/program.ts";
import { VERSION } from "#core/version.ts";
import { API_ROOT, identify, mountApi } from "#http/api.ts";
import { renderFault } from "#http/errors.ts";
import type { HttpRequest, SocketRoute } from "#http/exchange.ts";
import { mountFallback } from "#http/fallback.ts";
import { buildOpenApi } from "#http/openapi.ts";
import { mountHealth, mountPages } from "#http/pages.ts";
import { createRepeatable } from "#http/repeatable.ts";
import type { Caller, Route } from "#http/route.ts";
import type { HttpServer } from "#http/server.ts";
import type { Storage } from "#storage/storage.ts";
import { mountBundles } from "#ui/bundles.ts";
import { mountDashboardTexts } from "#ui/dashboard-texts.ts";
import { mountGuides } from "#ui/guides.ts";
import { mountUi } from "#ui/pages.ts";
import { createAdmission, type Admission } from "./admission.ts";
import { ABOUT } from "./api-document.ts";
import { viewCluster } from "./cluster.ts";
import type { AppOptions, Features } from "./features.ts";
import type { FilePlaces } from "./files.ts";
import { noted } from "./noting.ts";
import { createCallPlacing } from "./placing.ts";
import { assertRightsComplete, mayAnswer } from "./rights.ts";
import { iceServersOf } from "./webrtc.ts";

/** Everything below HTTP and sockets, and the server above it. */
export interface Parts extends AppOptions {
  /** Null: there are no other nodes. */
  wire: Wire | null;
  storage: Storage;
  places: FilePlaces;
  nodes: Nodes;
  features: Features;
  server: HttpServer;
  /** True once the server accepts calls as well as requests. */
  started(): boolean;
  /** True from the announcement of the stop on, before and while draining. */
  stopping(): boolean;
  draining(): boolean;
}

/** Routes and sockets that are mounted together. */
interface Served {
  routes: Route[];
  sockets: SocketRoute[];
}

export interface Mounted {
  openApi(): object;
  /** Connects to carriers that deliver calls only to clients that ask for them. */
  connectCarriers(): void;
}

export function mount(parts: Parts): Mounted {
  const { config, system, storage, features, server } = parts;
  const { box, conversations, knowledge, metrics } = features;
  const admission = createAdmission(parts);
  const { api } = admission;
  const served = [
    serveAccounts(parts, admission), serveResources(parts, admission),
    serveConversations(parts, admission),
    serveWebhooks(parts), serveCalls(parts, admission),
  ];
  const routes = served.flatMap((one) => one.routes)
    .map((route) => noted(route, { people: features.people, system, log: parts.log }))
    .map(createRepeatable({ answers: storage.keptAnswers, box, system, log: parts.log }));
  assertRightsComplete(routes);
  mountApi(api, routes);
  mountMcp({
    api, routes, version: VERSION, publicUrl: config.PARLEY_PUBLIC_URL,
    conversationOf: conversations.get, search: knowledge.retrieval.search,
  });
  for (const socket of served.flatMap((one) => one.sockets)) server.socket(socket);
  server.route(paymentRoute(features.topUps));
  const connectCarriers = mountCarriers(parts);
  const openApi = (): object =>
    buildOpenApi(routes, { ...ABOUT, version: VERSION, baseUrl: API_ROOT });
  mountHealth(server, () => whyNotReady(parts));
  mountPages({
    server,
    openApi,
    metrics: async () => ({
      contentType: metrics.registry.contentType, text: await metrics.read(system),
    }),
    metricsToken: config.PARLEY_METRICS_TOKEN,
  });
  mountUi(server);
  mountGuides(server);
  mountBundles(server);
  mountDashboardTexts(server, [
    programFile("data/dashboard-texts"), join(config.PARLEY_DATA_DIR, "dashboard-texts"),
  ]);
  mountFallback(server, routes, (fault, { path }, headers) => isOpenAiPath(path)
    ? renderOpenAiFault(fault.status === 404 ? noSuchApi() : fault, headers)
    : renderFault(fault, "message", headers));
  return { openApi, connectCarriers };
}

function whyNotReady({ storage, started, stopping }: Parts): string | null {
  if (storage.failure()) return "the database cannot be written";
  if (!storage.canRead()) return "the database cannot be read";
  if (stopping()) return "the server is stopping";
  return started() ? null : "the server is starting";
}

function serverOptions(
  { storage, nodes, features }: Parts,
): Parameters<typeof accountRoutes>[0]["server"] {
  const { accounts, streams, voice } = features;
  const own = {
    calls: voice.calling.live,
    streams: () => streams.counts().sse + streams.counts().websocket,
  };
  return {
    nodeId: nodes.nodeId,
    isAlone: storage.nodes.isAlone,
    view: () => viewCluster(storage, own),
    countAccounts: async () => (await accounts.list()).length,
  };
}

function serveAccounts(parts: Parts, admission: Admission): Served {
  const { config, storage, features, system, log } = parts;
  const { accounts, people, sessions, streams } = features;
  const { api, tickets } = admission;
  const options = {
    accounts, people, tickets, sessions, streams, log, system,
    origins: admission.origins,
    users: people.users, signIn: people.signIn, audit: people.audit, byOf: people.byOf,
    events: storage.events,
    overview: features.overview, firstSteps: features.firstSteps,
    savedViews: features.savedViews, statements: features.statements,
    server: serverOptions(parts),
    balance: features.balance, costs: features.costs, topUps: features.topUps,
    sendsMail: features.mailer.isSetUp,
    identify: (http: HttpRequest) => identify(api, http, true),
    streamsMax: config.PARLEY_STREAMS_PER_ACCOUNT_MAX,
  };
  const routes = [
    ...accountRoutes(options), ...memberRoutes(options), ...auditRoutes(options),
    ...firstDayRoutes(options), ...balanceRoutes(options),
    ...costRoutes({ costs: features.costs, zoneOf: accounts.zoneOf, system }),
    ...authRoutes({ ...options, failures: api.failures, box: features.box, oidc: people.oidc }),
  ];
  return { routes, sockets: [accountSocket(options)] };
}

/** The resources of an account and the catalogs it can look up. */
function serveResources({ features, system, draining }: Parts, { voiceSample }: Admission): Served {
  const { assistants, campaigns, callers, capabilities, catalogs, knowledge, planOf } = features;
  const routes = [
    ...lookupRoutes({
      catalogs, assistants, capabilities, models: (type) => features.modelCatalog.list(type),
    }),
    ...voiceSampleRoutes({ catalogs, previews: capabilities.previews, limiter: voiceSample }),
    ...assistantRoutes({ assistants, catalogs, capabilities }),
    ...groupRoutes(features.groups),
    ...toolRoutes(features.tools, features.tryTool),
    ...mcpToolRoutes(features.mcpServers),
    ...phoneNumberRoutes(features.phoneNumbers),
    ...knowledgebaseRoutes(knowledge),
    ...documentRoutes(knowledge),
    ...searchRoutes(knowledge),
    ...leadRoutes({
      leads: features.leads, files: createImportFiles(knowledge.sheets),
      uploadsDir: knowledge.uploadsDir, draining,
    }),
    ...campaignRoutes({
      campaigns, callers,
      parallelMax: async (accountId) => (await planOf(accountId)).parallel_calls,
    }),
    ...calendarRoutes({ calendars: features.calendars, assistants, system }),
  ];
  return { routes, sockets: [] };
}

/** Text conversations, through this API and through the protocols of other clients. */
function serveConversations(
  { config, features, places, system, log }: Parts,
  { api, access, generateReply }: Admission,
): Served {
  const { assistants, bus, catalogs, conversations, handover, inbox, people, streams, voice } =
    features;
  const turnStreams = createTurnStreams({ bus, system, log });
  const uiMessages = createUiMessages(turnStreams);
  const routes = [
    ...conversationRoutes({
      conversations, access, streams, uiMessages, identity: features.identity,
      attachments: features.attachments, findAssistantByUuid: assistants.findByUuid,
    }),
    ...attachmentRoutes({
      conversations, access, attachments: features.attachments, uploadsDir: places.uploadsDir,
      getAssistant: assistants.getById,
    }),
    ...deskViewRoutes({
      conversations, deskView: features.deskView, authorOf: people.authorOf,
    }),
    ...pushRoutes({ push: features.push, authorOf: people.authorOf }),
    ...transcriptRoutes({
      conversations, transcripts: features.transcripts, getAssistant: assistants.getById,
    }),
    ...protocolRoutes({
      conversations, assistants, access, uiMessages,
      streams: turnStreams,
      assertRoom: streams.assertRoom,
      identify: (http) => identify(api, http, false),
      takeRate: api.takeRate,
    }),
    ...widgetRoutes({
      access, assistants, system, transcripts: features.transcripts,
      whyCannotTalk: voice.whyCannotTalk,
      languageOf: ({ settings }) => catalogs.findLanguage(settings.language_id)?.iso_2 ?? "en",
      texts: loadWidgetTexts([
        programFile("data/widget-texts"), join(config.PARLEY_DATA_DIR, "widget-texts"),
      ]),
    }),
    ...testRoutes({ conversations, assistants, access, streams }),
    ...recordRoutes({ conversations }),
    ...accountConversationRoutes({
      conversations, handover, replyLimiter: generateReply,
      authorOf: people.authorOf,
      findAssistant: assistants.find,
    }),
    ...identityRoutes({ identity: features.identity, getAssistant: assistants.get }),
    ...inboxRoutes({ inbox, conversations, authorOf: people.authorOf }),
    ...bulkRoutes({ byOf: people.byOf, bulk: features.bulk }),
    ...callbackRoutes({
      callbacks: features.callbacks, reading: features.reading, inbox, conversations, access,
      system, authorOf: people.authorOf, findAssistant: assistants.findById,
    }),
    ...ratingRoutes({ ratings: features.ratings, conversations, access }),
    ...deskRoutes({
      handover, conversations, access, system, attachments: features.attachments,
      authorOf: people.authorOf,
      findAuthor: people.findAuthor,
      findAssistant: assistants.findById,
    }),
  ];
  return { routes, sockets: [conversationSocket({ conversations, access, streams, log })] };
}

const serveWebhooks = ({ features, storage }: Parts): Served => ({
  routes: webhookRoutes({ webhooks: features.delivery.webhooks, events: storage.events }),
  sockets: [],
});

function serveCalls(parts: Parts, { api, access }: Admission): Served {
  const { config, features, storage, system, log } = parts;
  const {
    assistants, calls, conversations, newTickets, people, recordings, streams, voice,
  } = features;
  const { calling, whyCannotTalk } = voice;
  const placing = createCallPlacing(parts);
  const { numberOf } = placing;
  const tryCall = createTrialCall({ calls, calling, whyCannotTalk, numberOf, log });
  const recordingLink = recordings.linkOf;
  const web = webCall({
    conversations, access, system, log, calling, whyCannotTalk, newTickets,
    iceServers: iceServersOf(config, system),
    getAssistant: assistants.getById,
    observePlayout: (seconds) => features.metrics.playout.observe(seconds),
  });
  const live = {
    calls, streams, recordingLink, log,
    shared: voice.shared,
    events: storage.events,
    baseUrlOf: api.baseUrlOf,
    identify: (http: HttpRequest) => identify(api, http, true),
    streamsMax: config.PARLEY_STREAMS_PER_ACCOUNT_MAX,
    isInForce: people.isInForce,
    mayAnswer: async (caller: Caller) => {
      const now = caller.member ? await people.callerOf(caller.member.sessionId) : caller;
      return now !== null && mayAnswer(now);
    },
  };
  const desk = {
    calls, system,
    persons: voice.shared.persons,
    authorOf: people.authorOf,
    identify: live.identify,
    mayAnswer: live.mayAnswer,
    isInForce: live.isInForce,
  };
  const routes = [
    ...web.routes,
    ...liveCallRoutes(live),
    ...callDeskRoutes(desk),
    ...recordingRoutes(recordings),
    ...callRoutes({
      calls, calling, tryCall, recordingLink, ...placing, byOf: people.byOf,
    }),
    ...personRoutes({ byOf: people.byOf, personData: features.personData }),
    ...templateRoutes(createTemplates({
      store: storage.templates, assistants, system,
      knowledgebases: features.knowledge.knowledgebases,
      tools: features.tools,
      tryCall: (assistant, lines) => tryCall(assistant, { lines }),
      removeCall: calls.remove,
    })),
  ];
  return { routes, sockets: [web.socket, callSocket(live), listenSocket(live), speakSocket(desk)] };
}

/** Mounts the hosted carriers' endpoints; the result connects to those that must be asked. */
function mountCarriers({ features, server, draining, log }: Parts): Mounted["connectCarriers"] {
  const { calling, hosted: lines } = features.voice;
  const mounted = [...lines.values()].map((hosted) =>
    hostedRoutes({ hosted, calling, draining, log }));
  for (const { routes, socket } of mounted) {
    for (const route of routes) server.route(route);
    server.socket(socket);
  }
  return () => {
    for (const { connect } of mounted) connect();
  };
}
