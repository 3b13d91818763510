// The outbox: whatever is to be sent elsewhere is written in the transaction of its event. Called
// for every event that is appended (events.ts), so accounts without webhooks cost one look into a
// map.
import type { AttachmentBody, Author, CommittedEvent } from "#events/events.ts";
import { isLive } from "#features/calls/records/status.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import { conversationEndedBody, eventBody, postCallBody } from "#features/webhooks/payloads.ts";
import type { Purpose } from "#features/webhooks/webhooks.ts";
import { CALL, callFromRow, speakerFromRow, type CallRow } from "#storage/calls/rows.ts";
import { ratingFrom } from "#storage/conversations/rows.ts";
import type { Awaitable, Exists, Sql } from "#storage/sql.ts";

interface AccountEndpoint {
  id: number;
  status: "active" | "disabled";
  /** Null: all events. */
  events: Set<string> | null;
}

interface EndpointRow {
  id: number;
  status: "active" | "disabled";
  events: string;
}

function endpointFromRow({ id, status, events }: EndpointRow): AccountEndpoint {
  const types = JSON.parse(events) as string[];
  return { id, status, events: types.includes("*") ? null : new Set(types) };
}

/** Returns synchronously where nothing is to be written; otherwise sets `event.hasWebhooks`. */
type Enqueue = (event: CommittedEvent, now: Instant) => Awaitable<void>;

interface Outbox {
  enqueue: Enqueue;
  endpoints: Map<number, AccountEndpoint[]>;
  /** Clears the cache and reads these accounts' endpoints anew, in one statement. */
  read(accountIds: number[]): Promise<void>;
}

/** One outbox per connection, shared by all that append over it. */
const outboxes = new WeakMap<Sql, Outbox>();

const outboxOf = (sql: Sql): Outbox => {
  const outbox = outboxes.get(sql) ?? createOutbox(sql);
  outboxes.set(sql, outbox);
  return outbox;
};

export const createEnqueue = (sql: Sql): Enqueue => outboxOf(sql).enqueue;

/** To be called by every command that changes endpoints. */
export const endpointsChanged = (sql: Sql): void => outboxOf(sql).endpoints.clear();

/** A connection's cached endpoints, for an engine with several writing connections. */
export const endpointsOf = (sql: Sql): Pick<Outbox, "read"> => outboxOf(sql);

interface NewDelivery {
  event: CommittedEvent;
  endpoint: { id: number; status: "active" | "disabled" };
  type: string;
  body: Record<string, unknown>;
  recordingFile?: string | null;
  needsEvaluation?: boolean;
  now: Instant;
}

function createInsert(sql: Sql): (delivery: NewDelivery) => Promise<void> {
  const insert = sql.prepare(`
    INSERT INTO webhook_deliveries (account_id, endpoint_id, message_id, type, call_id,
      conversation_uuid, recording_file, needs_evaluation, state, next_at, last_error, created_at,
      finished_at, body, lead_id)
    VALUES (@accountId, @endpointId, @messageId, @type, @callId, @conversationUuid, @recordingFile,
      @needsEvaluation, @state, @now, @error, @now, @finishedAt, @body, @leadId)`);
  return async (
    { event, endpoint, type, body, recordingFile = null, needsEvaluation = false, now },
  ) => {
    const isActive = endpoint.status === "active";
    // An account-only event names its subject in its data: the delivery is deleted with the
    // subject.
    const said = event.conversationId === null
      ? JSON.parse(event.json) as { conversation_id?: string; lead_id?: number } : {};
    await insert.run({
      accountId: event.accountId,
      endpointId: endpoint.id,
      // The time distinguishes it from an event with the same number in a restored database.
      messageId: `msg_${event.accountId}_${event.accountSequence}_${now}`,
      type,
      callId: event.callId,
      conversationUuid: event.conversationId ?? said.conversation_id ?? null,
      leadId: said.lead_id ?? null,
      recordingFile,
      needsEvaluation: needsEvaluation ? 1 : 0,
      state: isActive ? "pending" : "dead",
      error: isActive ? null : "the endpoint is disabled",
      finishedAt: isActive ? null : now,
      now,
      body: JSON.stringify(body),
    });
    if (isActive) event.hasWebhooks = true;
  };
}

function createOutbox(sql: Sql): Outbox {
  const endpoints = new Map<number, AccountEndpoint[]>();
  const insert = createInsert(sql);
  const endpointOf = createAssistantEndpoint(sql);
  const tellCallEnded = createCallEnded(sql, insert, endpointOf);
  const tellConversationEnded = createConversationEnded(sql, insert, endpointOf);
  const find = sql.prepare<object, EndpointRow>(`
    SELECT id, status, events FROM webhook_endpoints
    WHERE account_id = @accountId AND purpose = 'account' ORDER BY id`);
  const findAll = sql.prepare<object, EndpointRow & { account_id: number }>(`
    SELECT account_id, id, status, events FROM webhook_endpoints
    WHERE ${sql.dialect.among("account_id", "@accountIds")} AND purpose = 'account' ORDER BY id`);
  const read = async (accountId: number): Promise<AccountEndpoint[]> => {
    const found = (await find.all({ accountId })).map(endpointFromRow);
    endpoints.set(accountId, found);
    return found;
  };
  const enqueue = async (event: CommittedEvent, now: Instant): Promise<void> => {
    const { type } = event;
    if (type === "call_ended") await tellCallEnded(event, now);
    if (type === "conversation_ended") await tellConversationEnded(event, now);
    for (const endpoint of endpoints.get(event.accountId) ?? await read(event.accountId)) {
      if (endpoint.events && !endpoint.events.has(type)) continue;
      await insert({ event, endpoint, type, body: eventBody(event, now), now });
    }
  };
  return {
    endpoints,
    read: async (accountIds) => {
      endpoints.clear();
      const rows = await findAll.all({ accountIds });
      for (const accountId of accountIds) endpoints.set(accountId, []);
      for (const row of rows) endpoints.get(row.account_id)?.push(endpointFromRow(row));
    },
    enqueue: (event, now) => {
      const isEnd = event.type === "call_ended" || event.type === "conversation_ended";
      if (isEnd || endpoints.get(event.accountId)?.length !== 0) return enqueue(event, now);
    },
  };
}

type AssistantEndpoint = (args: {
  accountId: number; assistantId: number; purpose: Purpose; url: string; now: Instant;
}) => Promise<NewDelivery["endpoint"]>;

/** Finds an assistant's own endpoint, created on first use; with another URL its state is reset. */
function createAssistantEndpoint(sql: Sql): AssistantEndpoint {
  const upsert = sql.prepare<object, NewDelivery["endpoint"]>(`
    INSERT INTO webhook_endpoints (account_id, assistant_id, purpose, url, created_at, updated_at)
    VALUES (@accountId, @assistantId, @purpose, @url, @now, @now)
    ON CONFLICT (assistant_id, purpose) DO UPDATE SET
      status = CASE WHEN webhook_endpoints.url = excluded.url
        THEN webhook_endpoints.status ELSE 'active' END,
      disabled_reason = CASE WHEN webhook_endpoints.url = excluded.url
        THEN webhook_endpoints.disabled_reason END,
      failing_since = CASE WHEN webhook_endpoints.url = excluded.url
        THEN webhook_endpoints.failing_since END,
      url = excluded.url
    RETURNING id, status`);
  return async (args) => {
    const endpoint = await upsert.one(args);
    return endpoint;
  };
}

/** The settings of an assistant that concern webhooks; stored ones are valid. */
interface WebhookSettings {
  is_webhook_active: boolean;
  webhook_url: string | null;
  send_webhook_only_on_completed: boolean;
  include_recording_in_webhook: boolean;
  conversation_ended_webhook_url: string | null;
  conversation_ended_retrigger: boolean;
  post_call_evaluation: boolean;
  post_call_schema: unknown[];
  timezone: string;
}

const ANSWERED = new Set(["completed", "ended_by_customer", "ended_by_assistant"]);

function createCallEnded(
  sql: Sql, insert: (delivery: NewDelivery) => Promise<void>, endpointOf: AssistantEndpoint,
): Enqueue {
  const find = sql.prepare<object, CallRow & { lead_id: number | null; settings: string }>(
    CALL.replace("SELECT c.*,", "SELECT c.*, a.settings,") + " WHERE c.id = @callId");
  const lines = sql.prepare<object, {
    speaker: "assistant" | "customer"; author: string | null; text: string; start_ms: number;
    transfer: number | null;
  }>(`SELECT speaker, author, text, start_ms, transfer FROM call_entries WHERE call_id = @callId
    ORDER BY number`);
  const leadOf = createLeadFacts(sql);
  return async (event, now) => {
    const row = await find.get({ callId: event.callId });
    if (!row || isLive(row.status)) return;
    const settings = JSON.parse(row.settings) as WebhookSettings;
    const { is_webhook_active: isActive, webhook_url: url } = settings;
    if (!isActive || !url) return;
    if (settings.send_webhook_only_on_completed && !ANSWERED.has(row.status)) return;
    const call = callFromRow(row);
    const endpoint = await endpointOf({
      accountId: call.accountId, assistantId: call.assistantId, purpose: "post_call", url, now,
    });
    const body = postCallBody({
      ...call,
      finishedAt: now,
      lines: (await lines.all({ callId: call.id }))
        .map(({ start_ms: startMs, transfer, text, ...line }) => ({
          ...speakerFromRow(line), text, startMs, ...(transfer === null ? {} : { transfer }),
        })),
      ...await leadOf(row.lead_id),
    });
    const recordingFile = settings.include_recording_in_webhook ? call.recordingFile : null;
    await insert({ event, endpoint, type: "post_call", body, recordingFile, now });
  };
}

interface LeadRow {
  id: number; phone_number: string; variables: string; status: string; call_tries: number;
  created_at: number; updated_at: number;
}
interface CampaignRow {
  id: number; name: string; status: string; start_minute: number; end_minute: number;
  allowed_days: string; max_calls_in_parallel: number; max_retries: number;
  retry_interval_minutes: number; created_at: number; updated_at: number;
}

const hour = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}:00`;

/** The lead of a campaign's call, and its campaign, as webhooks show them. */
function createLeadFacts(sql: Sql) {
  const findLead = sql.prepare<object, LeadRow & { campaign_id: number }>(
    "SELECT * FROM leads WHERE id = @leadId");
  const findCampaign = sql.prepare<object, CampaignRow>(
    "SELECT * FROM campaigns WHERE id = @campaignId");
  return async (leadId: number | null) => {
    const row = leadId === null ? undefined : await findLead.get({ leadId });
    if (!row) return { lead: null, campaign: null };
    const campaign = await findCampaign.get({ campaignId: row.campaign_id });
    return {
      lead: {
        id: row.id,
        phone_number: row.phone_number,
        variables: JSON.parse(row.variables) as unknown,
        status: row.status,
        call_tries: row.call_tries,
        created_at: isoMicros(row.created_at),
        updated_at: isoMicros(row.updated_at),
      },
      campaign: campaign
        ? {
            id: campaign.id,
            name: campaign.name,
            status: campaign.status,
            allowed_hours_start_time: hour(campaign.start_minute),
            allowed_hours_end_time: hour(campaign.end_minute),
            allowed_days: JSON.parse(campaign.allowed_days) as unknown,
            max_calls_in_parallel: campaign.max_calls_in_parallel,
            max_retries: campaign.max_retries,
            retry_interval: campaign.retry_interval_minutes,
            created_at: isoMicros(campaign.created_at),
            updated_at: isoMicros(campaign.updated_at),
          }
        : null,
    };
  };
}

interface EndedRow {
  id: number; uuid: string; assistant_id: number; assistant_uuid: string; account_id: number;
  type: string; message_count: number; variables: string; created_at: number; settings: string;
}

function createConversationEnded(
  sql: Sql, insert: (delivery: NewDelivery) => Promise<void>, endpointOf: AssistantEndpoint,
): Enqueue {
  const find = sql.prepare<object, EndedRow>(`
    SELECT c.id, c.uuid, c.assistant_id, a.uuid AS assistant_uuid, c.account_id, c.type,
      c.message_count, c.variables, c.created_at, a.settings
    FROM conversations c JOIN assistants a ON a.id = c.assistant_id WHERE c.uuid = @uuid`);
  const messages = sql.prepare<object, {
    role: "user" | "assistant"; content: string; author: string | null; rating: number | null;
    attachments: string | null; created_at: number;
  }>(`
    SELECT role, content, author, rating, attachments, created_at FROM messages
    WHERE conversation_id = @id ORDER BY id`);
  const wasTold = sql.prepare<object, Exists>(`
    SELECT 1 FROM webhook_deliveries WHERE endpoint_id = @endpointId AND account_id = @accountId
      AND type = 'conversation_ended' AND conversation_uuid = @uuid LIMIT 1`);
  return async (event, now) => {
    const row = await find.get({ uuid: event.conversationId });
    if (row?.type !== "widget") return;
    const settings = JSON.parse(row.settings) as WebhookSettings;
    const url = settings.conversation_ended_webhook_url;
    if (!url) return;
    const { account_id: accountId, assistant_id: assistantId, uuid } = row;
    const endpoint = await endpointOf({
      accountId, assistantId, purpose: "conversation_ended", url, now,
    });
    const isRepeat = await wasTold.get({ endpointId: endpoint.id, accountId, uuid }) !== undefined;
    if (isRepeat && !settings.conversation_ended_retrigger) return;
    const body = conversationEndedBody({
      id: row.id,
      uuid,
      assistantUuid: row.assistant_uuid,
      type: row.type,
      messageCount: row.message_count,
      variables: JSON.parse(row.variables) as Record<string, unknown>,
      createdAt: row.created_at,
      endedAt: now,
      timeZone: settings.timezone,
      messages: (await messages.all({ id: row.id }))
        .map(({ role, content, author, rating, attachments, created_at: createdAt }) => ({
          role, content, createdAt, rating: ratingFrom(rating),
          attachments: JSON.parse(attachments ?? "[]") as AttachmentBody[],
          author: author === null ? null : (JSON.parse(author) as Author),
        })),
    });
    const needsEvaluation = settings.post_call_evaluation && settings.post_call_schema.length > 0;
    await insert({ event, endpoint, type: "conversation_ended", body, needsEvaluation, now });
  };
}
