// Composition root, the half below the wire: constructs every feature over the storage and joins
// them. app.ts mounts them; the demo uses them without a socket.
import { createHash } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Piscina } from "piscina";
import { createAccounts } from "#features/accounts/accounts.ts";
import { createSessions } from "#features/accounts/sessions.ts";
import { createAssistants, type Assistant, type Assistants } from "#features/assistants/assistants.ts";
import { loadCatalogs, type Catalogs } from "#features/assistants/catalogs.ts";
import { modelIdOf, type ResolveTurn, type TurnContext } from "#features/assistants/turn-context.ts";
import { createGroups } from "#features/assistants/groups.ts";
import { createCalcom } from "#features/calendar/calcom.ts";
import { findWarnings } from "#features/assistants/warnings.ts";
import { createCalendars, type Calendars } from "#features/calendar/calendar.ts";
import { CALENDAR_FUNCTIONS, callCalendar } from "#features/calendar/functions.ts";
import { createCalls } from "#features/calls/calls.ts";
import { createRecordings } from "#features/calls/recordings.ts";
import { createCampaigning } from "./campaigns.ts";
import { createCapabilities } from "./capabilities.ts";
import type { Config } from "#config/config.ts";
import { NO_FUNCTIONS, type FunctionSource } from "#engine/functions.ts";
import { createConversations, type ConversationOptions } from "#features/conversations/conversations.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { createMetrics, type Metrics } from "#core/metrics.ts";
import type { Plan } from "#core/price-lists.ts";
import { createSecretBox, loadSecret, type SecretBox } from "#core/secrets.ts";
import type { System } from "#core/system.ts";
import { firstChars } from "#core/values.ts";
import { createDelivery } from "./webhooks.ts";
import { createMemoryBus, type EventBus } from "#events/bus.ts";
import { createExtractor } from "#features/knowledgebases/extraction.ts";
import { createKnowledgebases } from "#features/knowledgebases/knowledgebases.ts";
import { createDocumentProcessor } from "#features/knowledgebases/processing.ts";
import { createRetrieval, SEARCH_FUNCTION } from "#features/knowledgebases/retrieval.ts";
import { createTelephony } from "./phone-numbers.ts";
import { createOpenAiEmbedder } from "#providers/embeddings/openai-compatible.ts";
import { createModelCatalog, type ModelCatalog, type ModelEntry } from "#providers/models/catalog.ts";
import { createStreams, type Streams } from "#realtime/streams.ts";
import type { Storage } from "#storage/storage.ts";
import { modelToolOf } from "#features/tools/arguments.ts";
import { createInvokeTool, type SendingOptions, type SendToEndpoint } from "#features/tools/invocation.ts";
import { createTools } from "#features/tools/tools.ts";
import { createTryTool } from "#features/tools/trials.ts";
import { createVoice, recordingsFolder, speechConfigOf, type VoiceOptions } from "./calls.ts";

export interface AppOptions {
  config: Config;
  /** The model catalog, its keys filled in. */
  models: ModelEntry[];
  log: Logger;
  system: System;
}

export type Features = ReturnType<typeof createFeatures>;

/** Everything below the wire; the demo uses it without a socket. */
export function createFeatures(options: AppOptions, storage: Storage) {
  const { config, models, log, system } = options;
  const bus = createMemoryBus();
  const catalogs = loadCatalogs(config.PARLEY_PLANS_FILE ?? undefined);
  const modelCatalog = createModelCatalog({
    entries: models, ...modelServers(config), system, log,
  });
  const speech = speechConfigOf(config);
  const capabilities = createCapabilities({ speech, catalogs, modelCatalog, storage, system, log });
  const metrics: Metrics = createMetrics({
    sseStreams: () => streams.counts().sse,
    websockets: () => streams.counts().websocket,
    turnsInFlight: () => conversations.inFlight(),
    callsLive: () => callsAndVoice.voice.calling.live(),
    storageFailed: () => storage.failure() !== null,
  });
  const accounts = createAccounts({ store: storage.accounts, system, bus });
  const planOf = (id: number): Plan => catalogs.plan(accounts.find(id)?.plan ?? "");
  const box = openBox(options);
  const assistants = createAssistants({
    store: storage.assistants, phoneNumbers: storage.phoneNumbers,
    references: referencesOf(storage, modelCatalog),
    catalogs, system, box,
  });
  const tooling = createTooling(options, storage, {
    box,
    toolsMax: (accountId) => planOf(accountId).tools,
    metrics,
  });
  const calendars = createCalendars({ store: storage.calendars, system });
  const knowledge = createKnowledge(options, storage, bus);
  const calcom = tooling.calcomSource(assistants.calcomKey);
  const answering = createAnswering({
    modelCatalog, catalogs, knowledge,
    sourcesOf: (turn) => [
      tooling.sourceOf(turn), knowledge.sourceOf(turn), calendarSource(calendars, turn),
      calcom(turn),
    ],
  });
  const conversations = createConversations({
    store: storage.conversations,
    findAssistant: (id) => assistants.findById(id),
    resolveTurn: answering.resolveTurn,
    bus, system, log,
    limits: chatLimits(config),
    observe: observeTurns(metrics),
  });
  const streams: Streams = createStreams({ bus, system });
  const phoneNumbers = createTelephony({ config, storage, bus, system, log });
  const callsAndVoice = createCallFeatures(options, storage, {
    routeInbound: phoneNumbers.routeInbound, sipTrunks: phoneNumbers.sipTrunks,
    ...answering, bus, catalogs, planOf, assistants, metrics, speech,
    can: capabilities, languagesOf: catalogs.languagesOf,
    titlesOf: knowledge.titlesOf, realtimeName: modelCatalog.realtimeName,
    warningsOf: (assistant) => findWarnings(assistant, catalogs, capabilities),
    observeLateness: (ms) => metrics.mediaClockLate.observe(ms / 1000),
  });
  return {
    ...callsAndVoice, sessions: createSessions({ box, accounts, system }), planOf,
    bus, catalogs, modelCatalog, capabilities, metrics, accounts, assistants, conversations,
    streams, tools: tooling.tools,
    toolThreads: tooling.threads,
    invokeTool: tooling.invoke,
    tryTool: tooling.tryTool,
    knowledge, calendars, phoneNumbers,
    groups: createGroups({ folders: storage.folders, labels: storage.labels, system }),
  };
}

/** What turns are answered with, in conversations and calls. */
function createAnswering({ modelCatalog, catalogs, knowledge, sourcesOf }: {
  modelCatalog: ModelCatalog;
  catalogs: Catalogs;
  knowledge: Pick<ReturnType<typeof createKnowledge>, "referenceFor">;
  sourcesOf(turn: TurnContext): FunctionSource[];
}) {
  const resolveModel = (assistant: Assistant) => modelCatalog.resolve(modelIdOf(assistant));
  const resolveTurn: ResolveTurn = async (turn, question) => ({
    model: resolveModel(turn.assistant),
    functions: sourcesOf(turn),
    languages: catalogs.languagesOf(turn.assistant),
    reference: question === null ? null : await knowledge.referenceFor(turn.assistant, question),
  });
  return { resolveModel, resolveTurn, sourcesOf };
}

/** What settings of assistants name and must be there. */
const referencesOf = (
  storage: Storage, modelCatalog: ModelCatalog,
): Parameters<typeof createAssistants>[0]["references"] => ({
  model: (id, type) => modelCatalog.has(id, type),
  defaultModel: (type) => modelCatalog.list(type)[0]?.id ?? null,
  tool: (accountId, id) => storage.tools.find(accountId, id) !== null,
  knowledgebase: (accountId, id) => storage.knowledgebases.find(accountId, id) !== null,
});

const modelServers = (config: Config) => ({
  fallback: {
    url: config.PARLEY_MODEL_URL, key: config.PARLEY_MODEL_KEY, name: config.PARLEY_MODEL_NAME,
  },
  hasRealtime: config.PARLEY_REALTIME_URL !== null,
});

/** What bounds one reply, written or spoken. */
const chatLimits = (config: Config) => ({
  ...turnLimits(config),
  messagePriceMicros: config.PARLEY_MESSAGE_PRICE ?? 0,
  dailyCapMicros: config.PARLEY_DAILY_SPEND_CAP,
});

const turnLimits = (config: Config) => ({
  turnTotalMs: config.PARLEY_TURN_SECONDS_MAX * 1000,
  replyTokensMax: config.PARLEY_REPLY_TOKENS_MAX,
  historyTokensMax: config.PARLEY_HISTORY_TOKENS_MAX,
});

interface CallParts
  extends Pick<
    VoiceOptions,
    | "observeLateness" | "resolveModel" | "resolveTurn" | "sourcesOf" | "routeInbound"
    | "sipTrunks" | "languagesOf" | "titlesOf" | "realtimeName" | "warningsOf" | "speech" | "can"
  > {
  bus: EventBus;
  catalogs: Catalogs;
  planOf(accountId: number): Plan;
  assistants: Assistants;
  metrics: Metrics;
}

/** Records, recordings and the voices of calls. */
function createCallFeatures(
  { config, log, system }: AppOptions,
  storage: Storage,
  { bus, catalogs, planOf, assistants, metrics, ...answering }: CallParts,
) {
  const recordings = createRecordings({
    folder: recordingsFolder(config),
    secret: loadSecret(config.PARLEY_SECRET, config.PARLEY_DATA_DIR, system),
    system,
  });
  const delivery = createDelivery({
    config, store: storage.webhooks, conversations: storage.conversations,
    evaluations: storage.evaluations, bus, assistants, recordings, metrics, system, log,
    resolveModel: answering.resolveModel,
  });
  const calls = createCalls({
    store: storage.calls,
    bus,
    system,
    recordings,
    dialling: {
      countries: config.PARLEY_DIAL_COUNTRIES,
      perMinute: config.PARLEY_RATE_LIMITS ? config.PARLEY_DIAL_RATE_PER_MINUTE : null,
    },
    priceMicrosPerMinute: config.PARLEY_CALL_PRICE ?? 0,
    parallelMax: (accountId) => planOf(accountId).parallel_calls,
  });
  const voice = createVoice({
    ...answering, config, catalogs, calls, recordings, system, log, limits: turnLimits(config),
    askInbound: delivery.askInbound,
    findAssistant: (accountId, id) => assistants.find(accountId, id),
    findHosted: (number) => storage.phoneNumbers.findHosted(number),
  });
  const campaigning = createCampaigning({
    storage, bus, system, log, planOf, assistants, calls,
    calling: voice.calling, whyCannotCall: voice.whyCannotCall,
  });
  return { calls, recordings, voice, delivery, ...campaigning };
}

const openBox = ({ config, system }: AppOptions): SecretBox =>
  createSecretBox(loadSecret(config.PARLEY_SECRET, config.PARLEY_DATA_DIR, system), system);

function observeTurns(metrics: Metrics): ConversationOptions["observe"] {
  return (result, seconds, firstTextSeconds) => {
    const outcome = result.kind === "completed" ? "completed" : result.reason;
    metrics.turn.observe({ outcome }, seconds);
    if (firstTextSeconds !== null) metrics.firstText.observe(firstTextSeconds);
    if (result.kind === "completed") metrics.messagesBilled.inc();
  };
}

/** Threads that talk to tools' endpoints: a slow or hostile one never occupies the main loop. */
function createToolThreads(allowPrivateNetworks: string[], log: Logger) {
  let pool: Piscina | null = null;
  // Started by the first call: most servers never make one.
  const started = (): Piscina => {
    if (pool) return pool;
    pool = new Piscina({
      filename: new URL("../../workers/invoke-tool.ts", import.meta.url).href,
      workerData: { allowPrivateNetworks },
      minThreads: 1,
      maxThreads: LIMITS.toolThreadsMax,
      concurrentTasksPerWorker: LIMITS.toolCallsPerThreadMax,
      maxQueue: LIMITS.toolCallsQueueMax,
      // An idle thread that waits by atomics stands still, and never hears that an endpoint closed
      // the connection its next request is written to.
      atomics: "disabled",
    });
    pool.on("error", (error) => log.error({ err: error }, "a tool thread failed"));
    return pool;
  };
  const send: SendToEndpoint = (request) =>
    started().run(request, {
      signal: AbortSignal.timeout(request.totalMs + LIMITS.toolThreadGraceMs),
    }) as ReturnType<SendToEndpoint>;
  return { send, close: async () => pool?.destroy() };
}

/** Tools, the threads that call them, and an assistant's tools as functions of a turn. */
function createTooling(
  { config, log, system }: AppOptions,
  storage: Storage,
  { box, toolsMax, metrics }: {
    box: SecretBox; toolsMax(accountId: number): number; metrics: Metrics;
  },
) {
  const tools = createTools({ store: storage.tools, box, system, toolsMax });
  const threads = createToolThreads(config.PARLEY_ALLOW_PRIVATE_NETWORKS, log);
  const sending: SendingOptions = {
    send: threads.send,
    system,
    log,
    observe: (outcome, seconds) => metrics.toolCall.observe({ outcome }, seconds),
  };
  const invoke = createInvokeTool({ ...sending, journal: storage.toolJournal });
  const tryTool = createTryTool(sending);
  const sourceOf = ({ assistant, scope, variables }: TurnContext): FunctionSource => {
    const { accountId } = assistant;
    const byName = new Map(assistant.settings.tool_ids
      .map((id) => tools.describe(accountId, id))
      .filter((tool) => tool !== null)
      .map((tool) => [tool.name, tool]));
    return {
      offered: [...byName.values()].map(modelToolOf),
      call: async ({ name, arguments: args }) => {
        const tool = tools.find(accountId, byName.get(name)?.id ?? 0);
        if (!tool) return { error: "The tool was deleted." };
        return invoke(tool, args, { scope, variables });
      },
    };
  };
  const calcomSource = (keyOf: Assistants["calcomKey"]) => createCalcom({
    url: config.PARLEY_CALCOM_URL ?? "", send: threads.send, journal: storage.toolJournal, keyOf,
    system, log,
  });
  return { tools, threads, invoke, tryTool, sourceOf, calcomSource };
}

function calendarSource(calendars: Calendars, { assistant, scope }: TurnContext): FunctionSource {
  if (!assistant.settings.tools.some(({ type }) => type === "calendar")) return NO_FUNCTIONS;
  return {
    offered: CALENDAR_FUNCTIONS,
    call: ({ name, arguments: args }) => {
      const digest = createHash("sha256").update(JSON.stringify(args)).digest("hex");
      return callCalendar(calendars, assistant, {
        name, arguments: args, bookingKey: `${scope}:${digest}`,
      });
    },
  };
}

const SEARCH_TOOL = {
  name: SEARCH_FUNCTION,
  description: "Searches the knowledgebase. Use it before answering anything about the business; "
    + "say which document (and page) an answer is from.",
  parameters: {
    type: "object",
    properties: { query: { type: "string", description: "What to look for, in a few words" } },
    required: ["query"],
    additionalProperties: false,
  },
};

/** Knowledgebases, the process that reads their documents, and what turns get of them. */
function createKnowledge({ config, log, system }: AppOptions, storage: Storage, bus: EventBus) {
  const filesDir = join(config.PARLEY_DATA_DIR, "documents");
  const uploadsDir = join(config.PARLEY_DATA_DIR, "uploads");
  // What was arriving when the last process ended belongs to nobody.
  rmSync(uploadsDir, { recursive: true, force: true });
  for (const folder of [filesDir, uploadsDir]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const store = storage.knowledgebases;
  const allowPrivateNetworks = config.PARLEY_ALLOW_PRIVATE_NETWORKS;
  const extractor = createExtractor({ log, system, allowPrivateNetworks });
  const { PARLEY_EMBEDDINGS_URL: url, PARLEY_EMBEDDINGS_KEY: key } = config;
  const embedder = url === null
    ? null
    : createOpenAiEmbedder({ url, key, model: config.PARLEY_EMBEDDINGS_MODEL });
  const processor = createDocumentProcessor({
    store, extractor, embedder, filesDir, bus, system, log,
  });
  const { enqueue, forget } = processor;
  const retrieval = createRetrieval({ store, embedder, log });
  const sourceOf = ({ assistant: { accountId, settings } }: TurnContext): FunctionSource => {
    const id = settings.knowledgebase_id;
    if (id === null || settings.knowledgebase_mode === "prompt") return NO_FUNCTIONS;
    return {
      offered: [SEARCH_TOOL],
      call: async ({ arguments: { query } }) =>
        typeof query === "string" && query.trim() !== ""
          ? retrieval.search(accountId, id, firstChars(query, LIMITS.messageCharsMax))
          : { error: "The argument query is missing." },
    };
  };
  return {
    knowledgebases: createKnowledgebases({ store, filesDir, bus, system, enqueue, forget }),
    processor,
    extractor,
    uploadsDir,
    search: retrieval.search,
    sourceOf,
    close: async (): Promise<void> => {
      await processor.close();
      await embedder?.close();
    },
    titlesOf: ({ accountId, settings: { knowledgebase_id: id } }: Assistant): string[] =>
      (id === null || store.find(accountId, id) === null
        ? []
        : store.documents(id).slice(0, LIMITS.recogniserHintsMax).map(({ name }) => name)),
    referenceFor: async ({ accountId, settings }: Assistant, question: string) =>
      settings.knowledgebase_id !== null && settings.knowledgebase_mode === "prompt"
        ? retrieval.reference(accountId, settings.knowledgebase_id, question)
        : null,
  };
}
