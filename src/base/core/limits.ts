// Bounds that belong to no single file, unit in the name; what bounds one file or protocol alone
// stands there, under a name as well. Those an operator may change are the defaults of settings in
// config/bounds.ts; docs/configuration.md says why the others are not.

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

export const LIMITS = {
  /** Words a speech recogniser receives: those of the assistant's list, and all together. */
  recogniserHintsMax: 100,
  /** Values of a call's jitter over time; an even count. Longer calls have longer stretches. */
  jitterStretchesMax: 120,
  /** Transfers a call's record keeps, the newest. */
  callTransfersMax: 50,
  /** Times a call's colleagues are called. */
  warmTransfersMax: 5,
  /** Until a colleague is asked without a summary of the call. */
  summaryMs: 20 * SECOND_MS,
  /** The longest caller and colleague talk, where the money lasts. */
  warmTalkS: 2 * 60 * 60,
  // Edge
  bodyBytesMax: 256 * 1024,
  /** As many as Node's own server takes. */
  headersBytesMax: 16 * 1024,
  /** What is read past, so that who sent it gets the refusal; a longer body ends the connection. */
  refusedBodyBytesMax: 100 * 1024 * 1024,
  jsonDepthMax: 32,
  requestIdCharsMax: 64,
  pageSizeMax: 100,
  rateLimiterKeysMax: 100_000,
  /** Wrong credentials from one address in a minute that are judged and logged one by one. */
  failedAuthenticationsMax: 10,
  /** Passwords tried in a quarter of an hour: of one e-mail at one address, and of each alone. */
  passwordTriesMax: 10,
  passwordTriesOfEmailMax: 100,
  passwordTriesOfAddressMax: 50,
  idempotencyKeyCharsMax: 255,
  metricsKeptMs: SECOND_MS,
  /** From when the event loop is watched until it has been seen. */
  loopSeenMs: 100,
  /** Reads of a key's dashboard sessions together, beside what the key itself may ask for. */
  dashboardPerMinuteMax: 300,
  dashboardBurstMax: 80,
  dashboardSessionMs: 12 * 60 * MINUTE_MS,

  uploadBytesMax: 20 * 1024 * 1024,
  multipartOverheadBytesMax: 64 * 1024,
  multipartFieldsMax: 10,
  multipartFieldBytesMax: 16 * 1024,
  multipartHeadersMax: 20,
  uploadsAtOnceMax: 8,

  // Conversations
  messageCharsMax: 2000,
  /** Times a minute a conversation's visitor may say that they type, or do no more. */
  typingPerMinuteMax: 60,
  /** Times a minute an account may hear what its voices would say, and how much they may. */
  voiceSamplesPerMinuteMax: 10,
  voiceSampleCharsMax: 200,
  /** What people and assistants note about a conversation. */
  noteCharsMax: 4000,
  variablesMax: 50,
  variableNameCharsMax: 64,
  variableCharsMax: 4000,
  conversationMessagesMax: 1000,
  /** A visitor's file; of a message; of a conversation. */
  attachmentBytesMax: 10 * 1024 * 1024,
  attachmentsOfMessageMax: 4,
  attachmentsOfConversationMax: 50,
  /** What a model is shown of them with each reply, the newest. */
  attachmentsSeenMax: 4,
  attachmentsSeenBytesMax: 12 * 1024 * 1024,
  /** Where an assistant's widget settings do not say. */
  widgetRememberDays: 7,
  widgetRememberDaysMax: 365,
  /** A trouble of the same kind is reported again after so long. */
  troubleToldMs: 60 * MINUTE_MS,
  /** Replies that failed, in the owner's record of a conversation. */
  failuresShownMax: 50,
  turnsWaitingMax: 4,
  turnWaitMs: 25 * SECOND_MS,
  turnsInFlightMax: 4096,
  /** How long the origins that assistants allow are remembered between preflights. */
  originListsKeptMs: 10 * SECOND_MS,
  inactivitySweepMs: 15 * SECOND_MS,
  /** Messages are found by their words this soon, so many are made so at a time. */
  messageIndexMs: 2 * SECOND_MS,
  messageIndexRows: 200,
  messageIndexPauseMs: 20,
  /** A search looks at the newest messages that have its words, so many. */
  messageHitsMax: 5000,
  /** The newest calls of an account that a search looks through. */
  callsSearchedMax: 2000,
  inactivitySweepRowsMax: 200,

  // Engine
  promptCharsMax: 64 * 1024,
  historyMessagesMax: 200,
  /** Conversations whose newest messages are kept for their next turn; how long those may be. */
  historiesKeptMax: 256,
  historyKeptCharsMax: 16 * 1024,
  /** They are let go of between once and twice this after the last reply. */
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
  toolCallsQueueMax: 2000,
  /** Sessions at MCP servers that are kept; the one used longest ago is let go. */
  mcpSessionsMax: 500,
  /** Beyond a tool's own timeout, until its thread is given up. */
  toolThreadGraceMs: 5 * SECOND_MS,
  replyCharsMax: 32 * 1024,
  replyTokensMax: 2048,
  turnTotalMs: 2 * MINUTE_MS,
  calcomMs: 10 * SECOND_MS,
  calcomAnswerCharsMax: 64 * 1024,

  // Knowledge
  /** Work of the processor on one document; a machine that is busy with others gives it later. */
  documentCpuMs: 20 * SECOND_MS,
  /** How long one may take all the same. */
  documentReadMs: 2 * MINUTE_MS,
  /** How long pages of a website are fetched; what has come by then is read like a document. */
  websiteReadMs: 60 * SECOND_MS,
  /** The same where a sitemap names the pages: there may be more of them. */
  sitemapReadMs: 3 * MINUTE_MS,
  /** How often websites are looked for whose time to be read again has come. */
  websiteLookMs: MINUTE_MS,
  /** Websites begun anew at one such look. */
  websitesPerLookMax: 20,
  extractorGraceMs: 5 * SECOND_MS,
  /** Memory of one extractor process. */
  extractorBytesMax: 700_000_000,
  /** Documents until an extractor process is replaced. */
  extractorJobsMax: 100,
  extractorIdleMs: MINUTE_MS,
  chunksPerWrite: 100,
  /** Chunks of documents that are deleted in one transaction. */
  chunksGonePerWrite: 50,
  documentsAtOnceMax: 3,
  passagesPerSearchMax: 4,
  /** What an owner who tries a search gets to see. */
  passagesTriedMax: 10,
  searchTermsMax: 32,
  /** A knowledgebase up to this size is put into the prompt as a whole. */
  passagesInPromptMax: 40,
  knowledgeTokensMax: 6000,

  embeddingsPerRequestMax: 64,
  embeddingsMs: 30 * SECOND_MS,
  /** Until a search goes on with words alone. */
  queryEmbeddingMs: 2 * SECOND_MS,
  embeddingLengthMax: 8192,
  embeddingBytesMax: 32 * 1024 * 1024,
  /** How far down each ranking is looked at before the two are joined. */
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
  /** What the sender of a file brings in ten seconds at least: less keeps a place from others. */
  uploadBytesInTimeMin: 8 * 1024,
  /** Between two offers of what the reader of a file has not taken yet. */
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
  /** Until somebody whose call there was no room for should try again. */
  capacityRetryS: 10,
  /** For calls to take leave of whoever is on the line when the server stops. */
  callGoodbyeMs: 10 * SECOND_MS,
  /** A call goes back to its assistant when the person who has it was not connected for so long. */
  personGoneMs: 8 * SECOND_MS,
  /** Until a call that was asked to end is given up. */
  callEndMs: 5 * SECOND_MS,
  /** From the end of the media thread to the start of the next, where calls come in. */
  mediaRestartMs: SECOND_MS,
  /** For taking leave of registrars when the server stops. */
  carrierCloseMs: 2.5 * SECOND_MS,
  /** Words a page sends in place of a recogniser: their length, and how many messages a second. */
  givenWordsCharsMax: 2000,
  givenWordsPerSecondMax: 20,
  recordingLinkMs: 24 * 60 * MINUTE_MS,
  recordingSliceBytesMax: 1024 * 1024,
  /** Until a call is finished though its recording still waits for where files lie. */
  recordingPutMs: 60 * SECOND_MS,
  /** Between two tries to put, remove or read what could not be. */
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
  /** Deliveries of an endpoint that are deleted with it in one transaction. */
  deliveriesPerWrite: 500,
  /** An endpoint that has taken nothing for so long is disabled. */
  webhookFailingMs: 5 * 24 * 60 * MINUTE_MS,
  webhookRetryAfterSMax: 24 * 60 * 60,
  /** Between looks at what is to be tried again: its timer does not see that the machine slept. */
  webhookWaitLookMs: MINUTE_MS,
  deliveredDays: 7,
  deadDeliveryDays: 30,
  /** Until an inbound call goes on without what its webhook would say. */
  inboundWebhookMs: 2 * SECOND_MS,
  eventsPageRowsMax: 500,

  /**
   * Conversations, calls and leads that are deleted in one transaction: their messages may be many,
   * and each costs the index of words a tenth of a millisecond.
   */
  recordsGonePerWrite: 10,

  // Leads and campaigns
  secondaryContactsMax: 10,
  /** A cell in quotes that goes on for longer is taken for a quote nobody closed. */
  csvRowLinesMax: 20,
  csvRowCharsMax: 64 * 1024,
  /** What a sheet of a workbook may become when it is written out. */
  sheetBytesMax: 64 * 1024 * 1024,
  sheetsAtOnceMax: 2,
  leadImportBatchRows: 200,
  /** Leads of a campaign that are deleted in one transaction, with all that was said of them. */
  campaignLeadsPerWrite: 100,
  /** How often the progress of an import is published. */
  leadImportTellMs: 100,
  leadImportErrorsMax: 100,
  leadPreviewBytesMax: 256 * 1024,
  leadPreviewRows: 5,
  leadPreviewColumnsMax: 100,
  leadPreviewCellChars: 200,
  /** Until a lead whose number may not be dialled is looked at again. */
  barredLeadMs: 24 * 60 * MINUTE_MS,
  /** How often the hours of campaigns are looked at, and what may have been missed. */
  diallerTickMs: MINUTE_MS,
  /** Least between two passes of the dialler that the clock asks for. */
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
  /** How long a provider may still deliver an order that it did not answer. */
  numberSettleMs: 5 * MINUTE_MS,
  numberSweepMs: MINUTE_MS,
  numberSweepRowsMax: 200,
  numberImportMax: 100_000,
  sipTrunksMax: 100,
  /** How often a node looks for trunks that nobody is registered for, or others have changed. */
  trunkLookMs: 5 * SECOND_MS,
  /** Addresses and networks that may call in over one trunk. */
  sipNetworksMax: 50,

  // Storage
  /** Writes asked for and not answered; of one account, at most half of them. */
  writeQueueMax: 20_000,
  writeBatchMax: 1024,
  /** From one try to the next to store ends that a full disk, or a database away, has not taken. */
  diskRetryMs: 2 * SECOND_MS,
  /** How long a database behind a socket may be out of reach before requests are refused. */
  databaseGoneMs: 5 * SECOND_MS,
  /** Longest one statement may take, those of reports aside. */
  databaseAnswerMs: 10 * SECOND_MS,
  databaseReportMs: 60 * SECOND_MS,
  databaseWatchMs: SECOND_MS,
  databaseRetryMs: 250,
  /** Sessions a start may lose before it is given up. */
  databaseStartTries: 5,
  /** Connections for changes, for single reads and for reads of one moment. */
  databaseWriters: 3,
  databaseReaders: 4,
  databaseSnapshots: 2,
  /** Signs of life that wait to be stored, and what else is said of nodes. */
  beatWritesMax: 100,
  /** Accounts of one transaction, and commands of each. */
  databaseBatchAccounts: 32,
  databaseBatchCommands: 64,
  /** How often what the database asks to be tried again is. */
  databaseTries: 10,
  /** Farther off the database's a machine's clock may not be. */
  clockOffMsMax: MINUTE_MS,
  /** Farther off is told, and does no harm yet. */
  clockOffMsTold: SECOND_MS,
  /** Rows, and characters of them, that a move has in memory. */
  moveRowsMax: 1000,
  moveCharsMax: 4 * 1024 * 1024,
  /** Longest one statement of a move may take: foreign keys are looked at once, at its end. */
  moveStatementMs: 6 * 60 * MINUTE_MS,
  /** Longest a start waits for a change of tables, its own or another node's. */
  migrationMs: 6 * 60 * MINUTE_MS,
  /** Kept vectors of the knowledgebases searched last. */
  databaseVectorBytes: 256 * 1024 * 1024,
  /** Accounts a sweep has commands under way for. */
  sweepAccountsMax: 64,
  eventRetentionDays: 30,
  retentionSweepMs: 10 * MINUTE_MS,
  /** A clock that was set by more is believed after so long by what deletes or charges by it. */
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
  /** From one line of the log that says so to the next. */
  openFilesSaidMs: MINUTE_MS,
  /** Lines of the log that wait for room on their disk; those behind them are lost. */
  logWaitingBytesMax: 1024 * 1024,

  // Between nodes, and with the command line
  foreignCommitPollMs: SECOND_MS,
  /** The same while there is no wire. */
  wireDownPollMs: 250,
  /** Until the log is read for a number that is missing. */
  noticeGapMs: 20,
  askMs: 2 * SECOND_MS,
  /** Where the answer waits for what is stored, or for a call that ends. */
  askStopMs: 10 * SECOND_MS,
  askEndMs: 8 * SECOND_MS,
  /** Until another node has begun a call: who asks again meanwhile would have two. */
  askPlaceMs: 15 * SECOND_MS,
  askLimitMs: 50,
  /** How long a reply, or a call's sound, is sent on after somebody has asked for it. */
  liveSentMs: 10 * SECOND_MS,
  /** From one asking to the next: at first after silence, then doubling up to the longest. */
  liveAskMs: 250,
  liveAskMsMax: 5 * SECOND_MS,
  /** Events of one commit that go over the wire; of more, only the numbers. */
  noticeBytesMax: 512 * 1024,
  /** From one look for a NATS server to the next, while there is none. */
  wireRetryMs: 250,
  wireConnectMs: 5 * SECOND_MS,
  wirePingMs: 5 * SECOND_MS,
  /** NATS takes 1 MiB where nothing else is set. */
  wireMessageBytesMax: 1000 * 1024,
  nodeBeatMs: 2 * SECOND_MS,
  /** A node that has not beaten for so long is given up. */
  nodeLeaseMs: 30 * SECOND_MS,
  /** It ends its own work sooner than others may take it up. */
  nodeHoldMs: 27 * SECOND_MS,
  /** Without a beat for so long, nothing a node asked of the database is under way any more. */
  nodeAwayMs: 16 * SECOND_MS,
  /** After so many, others ask whether it is there. */
  nodeBeatsMissed: 3,
  nodeAnswerMs: SECOND_MS / 2,
  /** Between looks at what another node has under way. */
  otherNodeLookMs: SECOND_MS / 4,
  /** Between looks for deliveries that another node wrote and nobody was woken for. */
  outboxLookMs: 5 * SECOND_MS,

  // Starting
  /** A start that takes longer is answered for at the port meanwhile. */
  startQuietMs: 2 * SECOND_MS,
  /** Until whoever is refused meanwhile should try again. */
  startRetryS: 5,

  // Stopping
  /** A process whose work others have taken over ends within so long. */
  lostMs: 3 * SECOND_MS,
  /** For requests other than turns that were taken on before the stop. */
  answersMs: 2 * SECOND_MS,
  /** For all else, behind what replies and calls are waited for. */
  shutdownMarginMs: 5 * SECOND_MS,
  /** From one signal to stop to another that is not its echo. */
  sameSignalMs: SECOND_MS,
} as const;
