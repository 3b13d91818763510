// Composition root, the part below HTTP and sockets: constructs every feature over the storage and
// connects them. app.ts mounts them; the demo uses them without a socket.
import type { Nodes } from "#cluster/nodes.ts";
import { countWatchers } from "#cluster/watchers.ts";
import type { Wire } from "#cluster/wire.ts";
import { createAccounts, type Accounts } from "#features/accounts/accounts.ts";
import { createFirstSteps } from "#features/accounts/overview/first-steps.ts";
import { createOverview } from "#features/accounts/overview/overview.ts";
import { createSavedViews } from "#features/accounts/overview/saved-views.ts";
import type { PasswordCost } from "#features/accounts/people/passwords.ts";
import { createSessions } from "#features/accounts/people/sessions.ts";
import { createOwnUsedTickets, createTickets } from "#features/accounts/people/tickets.ts";
import { createAssistants, type Assistant, type Assistants } from "#features/assistants/assistants.ts";
import { loadCatalogs } from "#features/assistants/catalogs.ts";
import { createGroups } from "#features/assistants/groups.ts";
import { modelIdOf, type ResolveTurn, type TurnContext } from "#features/assistants/turn-context.ts";
import { findWarnings } from "#features/assistants/warnings.ts";
import { createCalendars } from "#features/calendar/calendar.ts";
import { calendarFunctions } from "#features/calendar/functions.ts";
import { createEvaluate } from "#features/calls/evaluation.ts";
import { createPersonData } from "#features/calls/records/person-data.ts";
import { createRecordings } from "#features/calls/records/recordings.ts";
import {
  createConversations, type ConversationOptions, type Conversations,
} from "#features/conversations/conversations.ts";
import { createAttachments, type Attachments } from "#features/conversations/attachments.ts";
import { createBulk } from "#features/conversations/bulk.ts";
import { createCallbacks } from "#features/conversations/desk/callbacks.ts";
import { createDeskView } from "#features/conversations/desk/view.ts";
import { createHandover } from "#features/conversations/desk/handover.ts";
import { createIdentity } from "#features/conversations/visitors/identity.ts";
import { createInbox } from "#features/conversations/desk/inbox.ts";
import { createNotifications } from "#features/conversations/desk/notifications.ts";
import { createReading } from "#features/conversations/desk/reading.ts";
import { createRatings } from "#features/conversations/visitors/ratings.ts";
import { createTranscripts } from "#features/conversations/visitors/transcripts.ts";
import type { Config } from "#config/config.ts";
import type { Logger } from "#core/logger.ts";
import { createMetrics, type Metrics } from "#core/metrics.ts";
import type { Plan } from "#core/price-lists.ts";
import { createSecretBox, loadSecret } from "#core/secrets.ts";
import type { System } from "#core/system.ts";
import type { FunctionSource } from "#engine/functions.ts";
import { createMemoryBus } from "#events/bus.ts";
import { createRemovals } from "#files/removals.ts";
import { createModelCatalog, type ModelCatalog, type ModelEntry } from "#providers/models/catalog.ts";
import { whyRealtimeMissing } from "#providers/speech/engines.ts";
import { createStreams, type Streams } from "#realtime/streams.ts";
import type { Storage } from "#storage/storage.ts";
import { joinReplies } from "./cluster.ts";
import { createCallRecords, createVoice } from "./calls.ts";
import { createCampaigning } from "./campaigns.ts";
import { createCapabilities } from "./capabilities.ts";
import type { FilePlaces } from "./files.ts";
import type { HostedLines } from "./hosted-carriers.ts";
import { createKnowledge } from "./knowledgebases.ts";
import { createMailer } from "./mail.ts";
import { createMoney } from "./money.ts";
import { createPeople } from "./people.ts";
import { createTelephony } from "./phone-numbers.ts";
import { createBrowserPush } from "./push.ts";
import { takeSecret } from "./secret.ts";
import { speechConfigOf } from "./speech.ts";
import { createTooling } from "./tools.ts";
import { createDelivery } from "./webhooks.ts";

export interface AppOptions {
  config: Config;
  /** The model catalog, with its keys filled in. */
  models: ModelEntry[];
  log: Logger;
  system: System;
  /** The cost of new password hashes; absent: the default. */
  passwordCost?: PasswordCost;
  /** No other process runs on the data folder, and none can while this one does. */
  holdsFolder?: boolean;
}

interface Served {
  storage: Storage;
  nodes: Pick<Nodes, "nodeId" | "holds" | "onLost" | "alive" | "hasClock" | "holdsForSeconds">;
  places: FilePlaces;
  hosted: HostedLines;
  /** Null: there are no other nodes. */
  wire: Wire | null;
}

export type Features = ReturnType<typeof createFeatures>;

/** What all features are built on. */
function createGround(options: AppOptions, { storage, places, nodes, wire }: Served) {
  const { config, models, log, system } = options;
  const secret = storage.databaseId === null
    ? takeSecret(config, options)
    : loadSecret(config.PARLEY_SECRET, config.PARLEY_DATA_DIR, system);
  const catalogs = loadCatalogs(config.PARLEY_PLANS_FILE ?? undefined);
  const speech = speechConfigOf(config);
  const modelCatalog = createModelCatalog({
    entries: models,
    fallback: {
      url: config.PARLEY_MODEL_URL, key: config.PARLEY_MODEL_KEY, name: config.PARLEY_MODEL_NAME,
      sees: config.PARLEY_MODEL_SEES,
    },
    limits: {
      modelConnectionsMax: config.PARLEY_MODEL_CONNECTIONS_MAX,
      modelFirstByteMs: config.PARLEY_MODEL_FIRST_BYTE_SECONDS * 1000,
      modelStallMs: config.PARLEY_MODEL_STALL_SECONDS * 1000,
    },
    whyRealtimeMissing: (vendor) => whyRealtimeMissing(speech, vendor),
    system, log,
  });
  const bus = createMemoryBus();
  return {
    config, log, system, storage, nodes, wire, ...places, catalogs, modelCatalog, speech, secret,
    bus, passwordCost: options.passwordCost,
    removals: createRemovals({ files: places.files, store: storage.removals, system, log }),
    others: wire && joinReplies({ wire, bus, system, log }),
    box: createSecretBox(secret, system),
    mailer: createMailer(options),
    // Tickets that other nodes accept are marked as used in the database; a single node's die with
    // its process.
    newTickets: createTickets(wire
      ? { secret, used: storage.usedTickets, system }
      : { secret: system.randomBytes(32), used: createOwnUsedTickets(), system }),
    capabilities: createCapabilities({ speech, catalogs, modelCatalog, storage, system, log }),
  };
}

const isOffline = ({ modelCatalog }: ReturnType<typeof createGround>) => (assistant: Assistant) =>
  modelCatalog.isOffline(modelIdOf(assistant));

/** Constructs everything below HTTP and sockets, each feature after those it depends on. */
export function createFeatures(options: AppOptions, served: Served) {
  const { nodes } = served;
  const ground = createGround(options, served);
  const { config, log, system, storage, bus, box, catalogs, modelCatalog, capabilities } = ground;
  const metrics = createMetrics();
  const streams = createStreams({ ...ground, countElsewhere: elsewhereOf(ground) });
  const accounts = createAccounts({ store: storage.accounts, system, bus });
  const people = createPeople({ ...ground, accounts, onChange: streams.check });
  const planOf = async (id: number): Promise<Plan> =>
    catalogs.plan((await accounts.find(id))?.plan ?? "");
  const assistants = createAssistants({
    store: storage.assistants, phoneNumbers: storage.phoneNumbers,
    references: referencesOf(storage, modelCatalog),
    catalogs, system, box,
  });
  const tooling = createTooling({ ...ground, metrics, planOf, calcomKey: assistants.calcomKey });
  const firstSteps = createFirstSteps({ store: storage.firstSteps, system, log });
  const knowledge = createKnowledge({ ...ground, onFound: firstSteps.found });
  const { retrieval } = knowledge;
  const calendars = createCalendars({ store: storage.calendars, system });
  const phoneNumbers = createTelephony(ground);

  const resolveModel = (assistant: Assistant) => modelCatalog.resolve(modelIdOf(assistant));
  const sourcesOf = async (turn: TurnContext): Promise<FunctionSource[]> => [
    await tooling.toolFunctions(turn), retrieval.functionsOf(turn),
    calendarFunctions(calendars, turn), tooling.calcomFunctions(turn),
  ];
  const resolveTurn: ResolveTurn = async (turn, question) => ({
    model: resolveModel(turn.assistant),
    functions: await sourcesOf(turn),
    languages: catalogs.languagesOf(turn.assistant),
    reference: question === null ? null : await retrieval.referenceFor(turn.assistant, question),
  });
  const attachments = createAttachments({ ...ground, store: storage.attachments });
  const conversations = createConversations({
    store: storage.conversations, attachments, bus, system, log, resolveTurn,
    findAssistant: assistants.findById,
    limits: chatLimits(config), observe: observeTurns(metrics), nodeId: nodes.nodeId,
    others: ground.others,
  });
  const views = createAccountViews(ground, accounts);
  const desk = createDesk(ground, { conversations, attachments, assistants, people, views });
  const evaluate = createEvaluate({ resolveModel, isOffline: isOffline(ground), system, log });
  const recordings = recordingsOf(ground);
  const delivery = createDelivery({ ...ground, assistants, recordings, evaluate, metrics });
  const calls = createCallRecords({ ...ground, recordings, planOf, costs: views.costs });
  const voice = createVoice({
    ...ground, assistants, calls, evaluate, hosted: served.hosted, phoneNumbers, recordings,
    resolveModel, resolveTurn, sourcesOf, languagesOf: catalogs.languagesOf,
    askInbound: delivery.askInbound, titlesOf: retrieval.titlesOf,
    warningsOf: (assistant) => findWarnings(assistant, catalogs, capabilities),
    limits: turnLimits(config), observeEager: metrics.observeEager,
    observeLateness: (ms) => metrics.mediaClockLate.observe(ms / 1000),
  });
  showGauges({ metrics, streams, conversations, voice, nodes, storage });
  const campaigning = createCampaigning({
    ...ground, planOf, assistants, calls, voice, phoneNumbers,
  });
  return {
    bus, catalogs, modelCatalog, capabilities, metrics, planOf,
    newTickets: ground.newTickets, others: ground.others, mailer: ground.mailer,
    accounts, people, box, firstSteps, ...views,
    assistants, groups: createGroups({ folders: storage.folders, labels: storage.labels, system }),
    ...tooling, knowledge, calendars, phoneNumbers,
    conversations, attachments, ...desk, streams, calls, recordings, voice, ...campaigning,
    personData: createPersonData({
      ...ground, store: storage.personData, recordings, attachments, costs: views.costs,
    }),
    delivery, removals: ground.removals,
  };
}

/** What an account sees of itself, and its money. */
function createAccountViews(ground: ReturnType<typeof createGround>, accounts: Accounts) {
  const { storage, system, box } = ground;
  return {
    sessions: createSessions({ box, accounts, system }),
    overview: createOverview({ store: storage.overview, system }),
    savedViews: createSavedViews({ store: storage.savedViews, system }),
    ...createMoney({ ...ground, accounts }),
  };
}

/** People who work beside the assistants, and visitors' ratings of both. */
function createDesk(
  { config, storage, bus, system, log, mailer, secret }: ReturnType<typeof createGround>,
  { conversations, attachments, assistants, people, views: { costs } }: {
    conversations: Conversations; attachments: Attachments; assistants: Assistants;
    people: ReturnType<typeof createPeople>; views: ReturnType<typeof createAccountViews>;
  },
) {
  const found = {
    findConversation: storage.conversations.find,
    findAssistant: assistants.findById,
  };
  return {
    handover: createHandover({
      ...found, store: storage.desk, conversations, bus, system,
      messagesMax: config.PARLEY_CONVERSATION_MESSAGES_MAX,
    }),
    deskView: createDeskView({ store: storage.deskView }),
    transcripts: createTranscripts({ mailer, system, log }),
    identity: createIdentity({ store: storage.identity, secret, system }),
    inbox: createInbox({ store: storage.inbox, bus, system }),
    bulk: createBulk({ store: storage.bulk, attachments, costs, bus, system }),
    callbacks: createCallbacks({ store: storage.callbacks, bus, system }),
    reading: createReading({ store: storage.reading, bus, system }),
    ratings: createRatings({ store: storage.ratings, bus, system }),
    notifications: createNotifications({
      ...found, bus, mailer, log, system, publicUrl: config.PARLEY_PUBLIC_URL,
    }),
    push: createBrowserPush({
      ...found, store: storage.push, config, secret, bus, system, log,
      findAuthor: people.findAuthor,
    }),
  };
}

const elsewhereOf = ({ bus, nodes, wire, log }: ReturnType<typeof createGround>) =>
  wire && countWatchers({ cluster: nodes, wire, log, count: (topic) => bus.listeners(topic) });

const recordingsOf = (ground: ReturnType<typeof createGround>) => createRecordings({
  ...ground, folder: ground.scratch, format: ground.config.PARLEY_RECORDING_FORMAT,
  mayBeElsewhere: !ground.storage.nodes.isAlone,
  isNamed: (file) => ground.storage.calls.hasRecording(file),
});

function showGauges({ metrics, streams, conversations, voice, nodes, storage }: {
  metrics: Metrics; streams: Streams; conversations: Conversations;
  voice: ReturnType<typeof createVoice>;
} & Pick<Served, "nodes" | "storage">): void {
  metrics.showGauges({
    sseStreams: () => streams.counts().sse,
    websockets: () => streams.counts().websocket,
    turnsInFlight: conversations.inFlight,
    callsLive: voice.calling.live,
    storageFailed: storage.isRefusing,
    nodes: () => nodes.alive().length,
    nodesDraining: () => nodes.alive().filter(({ draining }) => draining).length,
    hasClock: nodes.hasClock,
    holdsForSeconds: nodes.holdsForSeconds,
    waiting: () => storage.nodes.waiting(),
  });
}

/** Finds the objects that assistants' settings refer to, to check that they exist. */
const referencesOf = (
  storage: Storage, modelCatalog: ModelCatalog,
): Parameters<typeof createAssistants>[0]["references"] => ({
  model: (id, type) => modelCatalog.has(id, type),
  defaultModel: (type) => modelCatalog.list(type)[0]?.id ?? null,
  tool: async (accountId, id) => await storage.tools.find(accountId, id) !== null,
  knowledgebase: async (accountId, id) => await storage.knowledgebases.find(accountId, id) !== null,
});

/** Limits of one reply, written or spoken. */
const chatLimits = (config: Config) => ({
  ...turnLimits(config),
  messagePriceMicros: config.PARLEY_MESSAGE_PRICE ?? 0,
  dailyCapMicros: config.PARLEY_DAILY_SPEND_CAP,
  turnsMax: config.PARLEY_TURNS_MAX,
  messagesMax: config.PARLEY_CONVERSATION_MESSAGES_MAX,
});

const turnLimits = (config: Config) => ({
  turnTotalMs: config.PARLEY_TURN_SECONDS_MAX * 1000,
  replyTokensMax: config.PARLEY_REPLY_TOKENS_MAX,
  historyTokensMax: config.PARLEY_HISTORY_TOKENS_MAX,
});

function observeTurns(metrics: Metrics): ConversationOptions["observe"] {
  return (result, seconds, firstTextSeconds) => {
    const outcome = result.kind === "completed" ? "completed" : result.reason;
    metrics.turn.observe({ outcome }, seconds);
    if (firstTextSeconds !== null) metrics.firstText.observe(firstTextSeconds);
    if (result.kind === "completed") metrics.messagesBilled.inc();
  };
}
