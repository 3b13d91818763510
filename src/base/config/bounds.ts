// The settings that bound what accounts, strangers and the server itself do: rates, spending and
// how many of each thing there may be. Part of settings.ts.
import { dollars, integer, onOff } from "./values.ts";
import { LIMITS } from "#core/limits.ts";
import { setting } from "./setting.ts";

export const BOUNDS = {
  PARLEY_RATE_LIMITS: setting({
    default: true, description: "off disables all rate limits, for load tests", parse: onOff,
  }),
  PARLEY_RATE_KEY_PER_MINUTE: setting({
    default: 100, description: "Requests per API key in any minute", parse: integer(1, 1_000_000),
  }),
  PARLEY_RATE_KEY_BURST: setting({
    default: 20, description: "Requests per API key in any 10 seconds", parse: integer(1, 1_000_000),
  }),
  PARLEY_RATE_ADDRESS_PER_MINUTE: setting({
    default: 30, description: "Conversations one address may create in any minute", parse: integer(1, 1_000_000),
  }),
  PARLEY_RATE_ADDRESS_PER_HOUR: setting({
    default: 300, description: "Conversations one address may create in any hour", parse: integer(1, 1_000_000),
  }),
  PARLEY_RATE_CONVERSATION_PER_MINUTE: setting({
    default: 20, description: "Messages sent to one conversation in any minute", parse: integer(1, 1_000_000),
  }),
  PARLEY_DAILY_SPEND_CAP: setting<number | null>({
    default: null, description: "Most that one assistant may spend in a UTC day, in USD, unless it has its own cap",
    parse: dollars,
  }),
  PARLEY_TURN_SECONDS_MAX: setting({
    default: LIMITS.turnTotalMs / 1000, description: "Seconds a reply may take", parse: integer(1, 3600),
  }),
  PARLEY_REPLY_TOKENS_MAX: setting({
    default: LIMITS.replyTokensMax, description: "Most tokens requested from a model for one reply", parse: integer(16, 1_000_000),
  }),
  PARLEY_HISTORY_TOKENS_MAX: setting({
    default: LIMITS.historyTokensMax, description: "Most tokens of earlier messages sent to a model", parse: integer(100, 10_000_000),
  }),
  PARLEY_EVENT_RETENTION_DAYS: setting({
    default: LIMITS.eventRetentionDays, description: "Days that events can be replayed", parse: integer(1, 3650),
  }),
  PARLEY_STREAMS_PER_CONVERSATION_MAX: setting({
    default: LIMITS.streamsPerConversationMax,
    description: "Streams and sockets open on one conversation at a time", parse: integer(1, 1_000_000),
  }),
  PARLEY_STREAMS_PER_ACCOUNT_MAX: setting({
    default: LIMITS.streamsPerAccountMax,
    description: "Streams and sockets open on one account at a time, and on one call",
    parse: integer(1, 1_000_000),
  }),
  PARLEY_TURNS_MAX: setting({
    default: LIMITS.turnsInFlightMax,
    description: "Messages being answered or queued at a time, at most seven eighths of them of one account; further ones are told to retry (503)",
    parse: integer(1, 1_000_000),
  }),
  PARLEY_MODEL_CONNECTIONS_MAX: setting({
    default: LIMITS.modelConnectionsMax,
    description: "Connections to one model server at a time; each reply in progress has one",
    parse: integer(1, 1_000_000),
  }),
  PARLEY_MODEL_FIRST_BYTE_SECONDS: setting({
    default: LIMITS.modelFirstByteMs / 1000,
    description: "Seconds a model server may be silent before its reply begins: while it loads the model, reads a long prompt or thinks",
    parse: integer(1, 3600),
  }),
  PARLEY_MODEL_STALL_SECONDS: setting({
    default: LIMITS.modelStallMs / 1000,
    description: "Seconds a model server may be silent within a reply", parse: integer(1, 3600),
  }),
  PARLEY_CONVERSATION_MESSAGES_MAX: setting({
    default: LIMITS.conversationMessagesMax, description: "Messages of one conversation",
    parse: integer(2, 1_000_000),
  }),
  PARLEY_WRITES_MAX: setting({
    default: LIMITS.writeQueueMax,
    description: "Changes that may wait for the disk, at most half of them of one account; further ones are told to retry (503)",
    parse: integer(100, 10_000_000),
  }),
  PARLEY_TOOL_THREADS_MAX: setting({
    default: LIMITS.toolThreadsMax,
    description: `Threads for requests to tools, each with up to ${LIMITS.toolCallsPerThreadMax} at a time, at most seven eighths of them of one account`,
    parse: integer(1, 64),
  }),
  PARLEY_UPLOADS_MAX: setting({
    default: LIMITS.uploadsAtOnceMax,
    description: "Files that may be uploaded at a time, a quarter of them from one address",
    parse: integer(1, 10_000),
  }),
  PARLEY_DOCUMENTS_MAX: setting({
    default: LIMITS.documentsAtOnceMax,
    description: "Documents read at a time, each in a process of up to 700 MB; websites leave one place for files",
    parse: integer(1, 64),
  }),
  PARLEY_EVALUATIONS_MAX: setting({
    default: LIMITS.evaluationsAtOnceMax,
    description: "Ended conversations that are evaluated by their model at a time",
    parse: integer(1, 1000),
  }),
  PARLEY_WEBHOOKS_MAX: setting({
    default: LIMITS.webhooksAtOnceMax,
    description: "Webhooks being delivered at a time, one to each endpoint, at most seven eighths of them of one account",
    parse: integer(1, 10_000),
  }),
  PARLEY_WEBHOOK_ENDPOINTS_MAX: setting({
    default: LIMITS.webhookEndpointsMax, description: "Webhook endpoints of one account",
    parse: integer(1, 10_000),
  }),
  PARLEY_SIP_TRUNKS_MAX: setting({
    default: LIMITS.sipTrunksMax, description: "SIP trunks of one account",
    parse: integer(1, 10_000),
  }),
  PARLEY_STOP_NOTICE_SECONDS: setting({
    default: 0,
    description: "Stopping: seconds in which `/readyz` already answers 503 and everything else continues, so that a proxy that checks sends requests elsewhere before any is refused",
    parse: integer(0, 3600),
  }),
  PARLEY_DRAIN_SECONDS: setting({
    default: 25, description: "Stopping: seconds to wait for replies in progress",
    parse: integer(0, 3600),
  }),
  PARLEY_CALL_DRAIN_SECONDS: setting({
    default: 0,
    description: "Stopping: seconds that calls may continue, while new ones are refused; callers still on the line then hear a goodbye",
    parse: integer(0, 86_400),
  }),
};
