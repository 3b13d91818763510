// Limits that no single file owns, with the unit in the name; a limit of one file or protocol is a
// named constant in that file. Those that an operator may change are the defaults of the settings
// in config/bounds.ts; docs/configuration.md says why the others are not settings.

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

export const LIMITS = {
  /** Hints for a speech recogniser: the most in an assistant's own list, and the most in total. */
  recogniserHintsMax: 100,
  /** Points of a call's jitter over time; an even count. In a longer call each covers more time. */
  jitterStretchesMax: 120,
  /** Transfers a call's record keeps; the next one replaces the last without a leg of its own. */
  callTransfersMax: 50,
  /** How many times colleagues are called during one call. */
  warmTransfersMax: 5,
  /** How long a model may take to summarise a call for a colleague. */
  summaryMs: 20 * SECOND_MS,
  /** The longest that caller and colleague may talk, if the balance lasts. */
  warmTalkS: 2 * 60 * 60,
  // Edge
  bodyBytesMax: 256 * 1024,
  /** The limit of Node's own HTTP server. */
  headersBytesMax: 16 * 1024,
  /** A refused body is drained, so that its sender gets the refusal; a longer one is cut off. */
  refusedBodyBytesMax: 100 * 1024 * 1024,
  jsonDepthMax: 32,
  requestIdCharsMax: 64,
  pageSizeMax: 100,
  rateLimiterKeysMax: 100_000,
  /** Wrong credentials per address and minute that are checked and logged individually. */
  failedAuthenticationsMax: 10,
  /** Password attempts in 15 minutes: per e-mail and address together, then per each alone. */
  passwordTriesMax: 10,
  passwordTriesOfEmailMax: 100,
  passwordTriesOfAddressMax: 50,
  idempotencyKeyCharsMax: 255,
  /** How long an answer to a request with a key is given again. */
  answersKeptMs: 24 * 60 * MINUTE_MS,
  metricsKeptMs: SECOND_MS,
  /** How long the event loop is monitored before the first metrics are read. */
  loopSeenMs: 100,
  /** Reads by all dashboard sessions of one key, on top of the key's own limits. */
  dashboardPerMinuteMax: 300,
  dashboardBurstMax: 80,
  dashboardSessionMs: 12 * 60 * MINUTE_MS,

  uploadBytesMax: 20 * 1024 * 1024,
  multipartOverheadBytesMax: 64 * 1024,
  multipartFieldsMax: 10,
  multipartFieldBytesMax: 16 * 1024,
  multipartHeadersMax: 20,
  uploadsAtOnceMax: 32,

  // Conversations
  messageCharsMax: 2000,
  /** Typing notifications, started or stopped, per minute from a conversation's visitor. */
  typingPerMinuteMax: 60,
  /** Voice samples per account and minute, and the length of one. */
  voiceSamplesPerMinuteMax: 10,
  voiceSampleCharsMax: 200,
  /** What people and assistants note about a conversation. */
  noteCharsMax: 4000,
  variablesMax: 50,
  variableNameCharsMax: 64,
  variableCharsMax: 4000,
  conversationMessagesMax: 1000,
  /** Visitors' attachments: bytes of one, how many per message and per conversation. */
  attachmentBytesMax: 10 * 1024 * 1024,
  attachmentsOfMessageMax: 4,
  attachmentsOfConversationMax: 50,
  /** The newest of them that a model is shown for each reply: how many, and bytes in total. */
  attachmentsSeenMax: 4,
  attachmentsSeenBytesMax: 12 * 1024 * 1024,
  /** The default for assistants whose widget settings do not say. */
  widgetRememberDays: 7,
  widgetRememberDaysMax: 365,
  /** A refusal of the same kind is published again only after this long. */
  troubleToldMs: 60 * MINUTE_MS,
  /** Replies that failed, in the owner's record of a conversation. */
  failuresShownMax: 50,
  turnsWaitingMax: 4,
  turnWaitMs: 25 * SECOND_MS,
  turnsInFlightMax: 4096,
  /** How long the origins that assistants allow are remembered between preflights. */
  originListsKeptMs: 10 * SECOND_MS,
  inactivitySweepMs: 15 * SECOND_MS,
  /** How often new messages are added to the search index, and how many at a time. */
  messageIndexMs: 2 * SECOND_MS,
  messageIndexRows: 200,
  messageIndexPauseMs: 20,
  /** A search considers this many of the newest messages that contain its words. */
  messageHitsMax: 5000,
  /** The newest calls of an account that a search looks through. */
  callsSearchedMax: 2000,
  inactivitySweepRowsMax: 200,
  /** How often and how many conversations go back to the queue whose holder may not answer. */
  deskSweepMs: 5 * SECOND_MS,
  deskSweepRowsMax: 200,

  // Engine
  promptCharsMax: 64 * 1024,
  historyMessagesMax: 200,
  /** Conversations whose newest messages are cached for the next turn; characters of each. */
  historiesKeptMax: 256,
  historyKeptCharsMax: 16 * 1024,
  /** They are evicted once to twice this long after the last reply. */
  historyKeptMs: 5 * MINUTE_MS,
  historyTokensMax: 12_000,
  /** The results of earlier turns' functions that a model sees again. */
  historyCallsMax: 24,
  historyCallCharsMax: 2000,
  turnStepsMax: 4,
  functionCallsPerTurnMax: 8,
  toolArgumentsBytesMax: 16 * 1024,
  functionResultCharsMax: 8 * 1024,
  toolArgumentCharsMax: 2000,
  toolArgumentItemsMax: 50,
  toolResponseBytesMax: 1024 * 1024,
  toolThreadsMax: 2,
  toolCallsPerThreadMax: 128,
  /** Calls of one account that wait for room in a thread. */
  toolCallsQueueMax: 2000,
  /** Cached sessions with MCP servers; the least recently used one is evicted. */
  mcpSessionsMax: 500,
  /** Time beside a tool's own timeout: for a thread to start or have room, and to answer. */
  toolThreadGraceMs: 5 * SECOND_MS,
  replyCharsMax: 32 * 1024,
  replyTokensMax: 2048,
  turnTotalMs: 2 * MINUTE_MS,
  calcomMs: 10 * SECOND_MS,
  calcomAnswerCharsMax: 64 * 1024,

  // Knowledge
  /** CPU time for one document, however long a busy machine takes to grant it. */
  documentCpuMs: 20 * SECOND_MS,
  /** The most elapsed time for one document all the same. */
  documentReadMs: 2 * MINUTE_MS,
  /** How long pages of a website are fetched; what has come by then is read like a document. */
  websiteReadMs: 60 * SECOND_MS,
  /** The same where a sitemap names the pages: there may be more of them. */
  sitemapReadMs: 3 * MINUTE_MS,
  /** How often the server looks for websites that are due to be read again. */
  websiteLookMs: MINUTE_MS,
  /** Websites whose reading one such look begins. */
  websitesPerLookMax: 20,
  extractorGraceMs: 5 * SECOND_MS,
  /** Memory of one extractor process. */
  extractorBytesMax: 700_000_000,
  /** Documents that an extractor process reads before it is replaced. */
  extractorJobsMax: 100,
  extractorIdleMs: MINUTE_MS,
  chunksPerWrite: 100,
  /** Chunks of documents that are deleted in one transaction. */
  chunksGonePerWrite: 50,
  documentsAtOnceMax: 3,
  passagesPerSearchMax: 4,
  /** Passages shown to an owner who tries a search. */
  passagesTriedMax: 10,
  searchTermsMax: 32,
  /** A knowledgebase up to this size is put into the prompt as a whole. */
  passagesInPromptMax: 40,
  knowledgeTokensMax: 6000,

  embeddingsPerRequestMax: 64,
  embeddingsMs: 30 * SECOND_MS,
  /** How long a search waits for the query's embedding before it goes on with words alone. */
  queryEmbeddingMs: 2 * SECOND_MS,
  embeddingLengthMax: 8192,
  embeddingBytesMax: 32 * 1024 * 1024,
  /** Rows of each ranking, by words and by meaning, that are merged. */
  rankingRows: 20,

  // Language models
  modelConnectMs: 5 * SECOND_MS,
  modelFirstByteMs: 30 * SECOND_MS,
  modelStallMs: 15 * SECOND_MS,
  modelRetriesMax: 2,
  modelRetryAfterMsMax: 12 * SECOND_MS,
  modelConnectionsMax: 1024,
  modelEventBytesMax: 1024 * 1024,
  modelErrorBodyBytesMax: 4 * 1024,

  // Streams
  deltaCoalesceMs: 16,
  heartbeatMs: 15 * SECOND_MS,
  stalledReaderMs: 10 * SECOND_MS,
  /** Bytes that an upload must bring in ten seconds: a slower one would hold a slot too long. */
  uploadBytesInTimeMin: 8 * 1024,
  /** Interval at which bytes that a file's reader has not taken yet are offered again. */
  downloadOfferMs: 4 * SECOND_MS,
  stalledDownloadMs: 5 * MINUTE_MS,
  socketBufferBytesMax: 256 * 1024,
  socketFrameBytesMax: 64 * 1024,
  replayPageRows: 100,
  streamTicketMs: 60 * SECOND_MS,
  mcpBatchMax: 20,
  streamTicketsMax: 10_000,
  streamsPerConversationMax: 100,
  streamsPerAccountMax: 200,

  // Calls
  /** How far the billed time of a call in progress may be behind when the process dies. */
  callBeatMs: 5 * SECOND_MS,
  /** When to try again after a call was refused for want of capacity. */
  capacityRetryS: 10,
  /** For calls to say goodbye to the people on the line when the server stops. */
  callGoodbyeMs: 10 * SECOND_MS,
  /** A call returns to its assistant when the person who took it over is disconnected this long. */
  personGoneMs: 8 * SECOND_MS,
  /** How long to wait for the end of a call that was told to hang up. */
  callEndMs: 5 * SECOND_MS,
  /** Delay before a media thread that has ended is restarted, where calls come in. */
  mediaRestartMs: SECOND_MS,
  /** For unregistering at registrars when the server stops. */
  carrierCloseMs: 2.5 * SECOND_MS,
  /** Words a page sends in place of a recogniser: their length, and how many messages a second. */
  givenWordsCharsMax: 2000,
  givenWordsPerSecondMax: 20,
  recordingLinkMs: 24 * 60 * MINUTE_MS,
  recordingSliceBytesMax: 1024 * 1024,
  /** How long finishing a call waits for its recording to reach the file store. */
  recordingPutMs: 60 * SECOND_MS,
  /** Between retries of files that could not be stored, removed or read. */
  filesRetryMs: 30 * SECOND_MS,
  evaluationMs: 60 * SECOND_MS,
  evaluationAttemptsMax: 3,
  /** Conversations evaluated at the same time. */
  evaluationsAtOnceMax: 4,

  // Webhooks
  webhookEndpointsMax: 50,
  webhookMs: 15 * SECOND_MS,
  webhookResponseBytesMax: 64 * 1024,
  webhookResponseCharsMax: 4096,
  webhooksAtOnceMax: 32,
  /** Deliveries that are deleted or given up with their endpoint in one transaction. */
  deliveriesPerWrite: 500,
  /** An endpoint that has accepted no delivery for this long is disabled. */
  webhookFailingMs: 5 * 24 * 60 * MINUTE_MS,
  webhookRetryAfterSMax: 24 * 60 * 60,
  /** The longest timer for a retry: timers do not notice that the machine slept. */
  webhookWaitLookMs: MINUTE_MS,
  deliveredDays: 7,
  deadDeliveryDays: 30,
  /** How long an inbound call waits for its webhook before it goes on without. */
  inboundWebhookMs: 2 * SECOND_MS,
  eventsPageRowsMax: 500,

  /**
   * Conversations, calls and leads that are deleted in one transaction: their messages may be many,
   * and each costs the index of words a tenth of a millisecond.
   */
  recordsGonePerWrite: 10,
  /** Conversations that lose a deleted label in one transaction. */
  conversationLabelsPerWrite: 500,

  // Leads and campaigns
  secondaryContactsMax: 10,
  /** A cell in quotes that goes on for longer is taken for a quote nobody closed. */
  csvRowLinesMax: 20,
  csvRowCharsMax: 64 * 1024,
  /** The most bytes that a workbook's sheet may become as lines of JSON. */
  sheetBytesMax: 64 * 1024 * 1024,
  sheetsAtOnceMax: 2,
  leadImportBatchRows: 200,
  /**
   * Leads of a campaign that are deleted in one transaction, with all that was said of them; calls
   * that it lets go of.
   */
  campaignLeadsPerWrite: 100,
  /** How often the progress of an import is published. */
  leadImportTellMs: 100,
  leadImportErrorsMax: 100,
  leadPreviewBytesMax: 256 * 1024,
  leadPreviewRows: 5,
  leadPreviewColumnsMax: 100,
  leadPreviewCellChars: 200,
  /** After this long, a lead whose number may not be dialled is checked again. */
  barredLeadMs: 24 * 60 * MINUTE_MS,
  /** The longest pause between two passes of the dialler: it checks hours, and what it missed. */
  diallerTickMs: MINUTE_MS,
  /** The shortest pause between two passes of the dialler that a timer starts. */
  diallerPauseMs: 250,
  /** Carrier failures in a row until a campaign pauses; the pause doubles with each further one. */
  breakerFailures: 5,
  breakerPauseMs: MINUTE_MS,
  breakerPauseMsMax: 60 * MINUTE_MS,

  // Phone numbers
  numberSearchMax: 20,
  numberProviderMs: 15 * SECOND_MS,
  numberProviderConnectionsMax: 8,
  numberProviderBytesMax: 1024 * 1024,
  /** How long an order that the provider did not answer may still go through. */
  numberSettleMs: 5 * MINUTE_MS,
  numberSweepMs: MINUTE_MS,
  numberSweepRowsMax: 200,
  numberImportMax: 100_000,
  sipTrunksMax: 100,
  /** How often a node looks for trunks that no node has registered, or that others have changed. */
  trunkLookMs: 5 * SECOND_MS,
  /** Addresses and networks that may call in over one trunk. */
  sipNetworksMax: 50,

  // Storage
  /** Writes waiting or in flight; one account may have at most half of them. */
  writeQueueMax: 20_000,
  writeBatchMax: 1024,
  /** Between retries of storing ends of calls while the disk is full or the database is away. */
  diskRetryMs: 2 * SECOND_MS,
  /** How long a database behind a socket may be out of reach before requests are refused. */
  databaseGoneMs: 5 * SECOND_MS,
  /** How long a refused write is told while none follows. */
  databaseRefusalMs: 60 * SECOND_MS,
  /** Longest one statement may take, those of reports aside. */
  databaseAnswerMs: 10 * SECOND_MS,
  databaseReportMs: 60 * SECOND_MS,
  databaseWatchMs: SECOND_MS,
  databaseRetryMs: 250,
  /** Database sessions that a start may lose before it fails. */
  databaseStartTries: 5,
  /** Connections for writes, for single reads and for snapshots. */
  databaseWriters: 3,
  databaseReaders: 4,
  databaseSnapshots: 3,
  /** Heartbeats, and other writes about nodes, that wait to be stored. */
  beatWritesMax: 100,
  /** Accounts in one group commit, and commands of each. */
  databaseBatchAccounts: 32,
  databaseBatchCommands: 64,
  /** Attempts at what the database asks to be retried. */
  databaseTries: 10,
  /** The most that a machine's clock may differ from the database's. */
  clockOffMsMax: MINUTE_MS,
  /** A larger difference is reported, though it does no harm up to the limit above. */
  clockOffMsTold: SECOND_MS,
  /** Rows, and their characters, that a move between databases holds in memory. */
  moveRowsMax: 1000,
  moveCharsMax: 4 * 1024 * 1024,
  /** The longest one statement of a move may take: foreign keys are checked once, at its end. */
  moveStatementMs: 6 * 60 * MINUTE_MS,
  /** The longest a start waits for a migration, its own or another node's. */
  migrationMs: 6 * 60 * MINUTE_MS,
  /** Cached vectors of the knowledgebases searched last. */
  databaseVectorBytes: 256 * 1024 * 1024,
  /** Accounts for which a sweep runs commands at the same time. */
  sweepAccountsMax: 64,
  eventRetentionDays: 30,
  retentionSweepMs: 10 * MINUTE_MS,
  /** After a larger clock step than this, what deletes or charges by the clock waits so long. */
  clockJumpMs: MINUTE_MS,
  clockBelievedMs: 15 * MINUTE_MS,
  /** Rows that a sweep removes in one transaction, and how long it then lets others write. */
  retentionRowsMax: 500,
  retentionPauseMs: 20,
  checkpointMs: 30 * SECOND_MS,
  balanceMailSweepMs: 30 * SECOND_MS,
  balanceMailRows: 100,
  costCountMs: 60 * SECOND_MS,
  keyLastUsedFlushMs: 30 * SECOND_MS,
  openFilesLookMs: SECOND_MS,
  /** Between two log lines about it. */
  openFilesSaidMs: MINUTE_MS,
  /** Log output that waits for room on its disk; lines after it are lost. */
  logWaitingBytesMax: 1024 * 1024,

  // Between nodes, and with the command line
  foreignCommitPollMs: SECOND_MS,
  /** The same while the wire to the other nodes is down. */
  wireDownPollMs: 250,
  /** Before a missing sequence number is read from the log: notices may overtake each other. */
  noticeGapMs: 20,
  askMs: 2 * SECOND_MS,
  /** For answers that wait for something to be stored, and for a call to end. */
  askStopMs: 10 * SECOND_MS,
  askEndMs: 8 * SECOND_MS,
  /** For another node to begin a call: a retry before that would place a second one. */
  askPlaceMs: 15 * SECOND_MS,
  askLimitMs: 50,
  /** How long a reply, or a call's audio, is sent to another node after it has asked. */
  liveSentMs: 10 * SECOND_MS,
  /** Between two such requests: first after a silence, then doubling up to the maximum. */
  liveAskMs: 250,
  liveAskMsMax: 5 * SECOND_MS,
  /** A commit's events up to this size go over the wire; of larger ones only sequence numbers. */
  noticeBytesMax: 512 * 1024,
  /** Between attempts to connect to NATS while there is no connection. */
  wireRetryMs: 250,
  wireConnectMs: 5 * SECOND_MS,
  wirePingMs: 5 * SECOND_MS,
  /** NATS takes 1 MiB where nothing else is set. */
  wireMessageBytesMax: 1000 * 1024,
  nodeBeatMs: 2 * SECOND_MS,
  /** A node without a heartbeat for this long is given up: others take over its work. */
  nodeLeaseMs: 30 * SECOND_MS,
  /** A node ends its own work after this, before others may take it over. */
  nodeHoldMs: 27 * SECOND_MS,
  /** After so long without a heartbeat, no request of the node to the database is in flight. */
  nodeAwayMs: 16 * SECOND_MS,
  /** Missed heartbeats after which other nodes ask whether a node still answers. */
  nodeBeatsMissed: 3,
  nodeAnswerMs: SECOND_MS / 2,
  /** Interval at which a node polls for the end of work that another has in flight. */
  otherNodeLookMs: SECOND_MS / 4,
  /** Interval of polling for deliveries that another node wrote without waking this one. */
  outboxLookMs: 5 * SECOND_MS,

  // Starting
  /** When a start takes longer, requests to the port are answered with 503 meanwhile. */
  startQuietMs: 2 * SECOND_MS,
  /** The `Retry-After` of those answers. */
  startRetryS: 5,

  // Stopping
  /** A process whose work other nodes have taken over ends within this. */
  lostMs: 3 * SECOND_MS,
  /** For requests, other than turns, that are in flight when the server stops. */
  answersMs: 2 * SECOND_MS,
  /** For everything else, once replies and calls have had their time. */
  shutdownMarginMs: 5 * SECOND_MS,
  /** A second signal to stop within this counts as the same one. */
  sameSignalMs: SECOND_MS,
} as const;
