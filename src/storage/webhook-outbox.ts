// The outbox: whatever is to be told elsewhere is written in the transaction of the event it tells
// of. Called for every event that is appended (events.ts), so accounts without webhooks cost one
// look into a map.
import type { CommittedEvent } from "#events/events.ts";
import { isLive } from "#features/calls/status.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import { conversationEndedBody, eventBody, postCallBody } from "#features/webhooks/payloads.ts";
import type { Purpose } from "#features/webhooks/webhooks.ts";
import { CALL, callFromRow, type CallRow } from "./calls.ts";
import type { Db } from "./engines/sqlite/database.ts";

interface AccountEndpoint {
  id: number;
  status: "active" | "disabled";
  /** Null: all of them. */
  events: Set<string> | null;
}

type Enqueue = (event: CommittedEvent, now: Instant) => void;

interface Outbox {
  enqueue: Enqueue;
  endpoints: Map<number, AccountEndpoint[]>;
}

/** One for all who append over a connection. */
const outboxes = new WeakMap<Db, Outbox>();

const outboxOf = (db: Db): Outbox => {
  const outbox = outboxes.get(db) ?? createOutbox(db);
  outboxes.set(db, outbox);
  return outbox;
};

export const createEnqueue = (db: Db): Enqueue => outboxOf(db).enqueue;

/** To be called by every command that changes endpoints. */
export const endpointsChanged = (db: Db): void => outboxOf(db).endpoints.clear();

interface NewDelivery {
  event: CommittedEvent;
  endpoint: { id: number; status: "active" | "disabled" };
  type: string;
  body: Record<string, unknown>;
  recordingFile?: string | null;
  needsEvaluation?: boolean;
  now: Instant;
}

function createInsert(db: Db): (delivery: NewDelivery) => void {
  const insert = db.prepare(`
    INSERT INTO webhook_deliveries (account_id, endpoint_id, message_id, type, call_id,
      conversation_uuid, recording_file, needs_evaluation, state, next_at, last_error, created_at,
      finished_at, body)
    VALUES (@accountId, @endpointId, @messageId, @type, @callId, @conversationUuid, @recordingFile,
      @needsEvaluation, @state, @now, @error, @now, @finishedAt, @body)`);
  return ({ event, endpoint, type, body, recordingFile = null, needsEvaluation = false, now }) => {
    const isActive = endpoint.status === "active";
    insert.run({
      accountId: event.accountId,
      endpointId: endpoint.id,
      // The time keeps it apart from an event of the same number in a database restored.
      messageId: `msg_${event.id}_${now}`,
      type,
      callId: event.callId,
      conversationUuid: event.conversationId,
      recordingFile,
      needsEvaluation: needsEvaluation ? 1 : 0,
      state: isActive ? "pending" : "dead",
      error: isActive ? null : "the endpoint is disabled",
      finishedAt: isActive ? null : now,
      now,
      body: JSON.stringify(body),
    });
  };
}

function createOutbox(db: Db): Outbox {
  const endpoints = new Map<number, AccountEndpoint[]>();
  const insert = createInsert(db);
  const endpointOf = createAssistantEndpoint(db);
  const tellCallEnded = createCallEnded(db, insert, endpointOf);
  const tellConversationEnded = createConversationEnded(db, insert, endpointOf);
  const find = db.prepare<[object], { id: number; status: "active" | "disabled"; events: string }>(`
    SELECT id, status, events FROM webhook_endpoints
    WHERE account_id = @accountId AND purpose = 'account' ORDER BY id`);
  const endpointsOf = (accountId: number): AccountEndpoint[] => {
    const known = endpoints.get(accountId);
    if (known) return known;
    const found = find.all({ accountId }).map(({ id, status, events }) => {
      const types = JSON.parse(events) as string[];
      return { id, status, events: types.includes("*") ? null : new Set(types) };
    });
    endpoints.set(accountId, found);
    return found;
  };
  return {
    endpoints,
    enqueue: (event, now) => {
      const { type } = event;
      if (type === "call_ended") tellCallEnded(event, now);
      if (type === "conversation_ended") tellConversationEnded(event, now);
      for (const endpoint of endpointsOf(event.accountId)) {
        if (endpoint.events && !endpoint.events.has(type)) continue;
        insert({ event, endpoint, type, body: eventBody(event, now), now });
      }
    },
  };
}

type AssistantEndpoint = (args: {
  accountId: number; assistantId: number; purpose: Purpose; url: string; now: Instant;
}) => NewDelivery["endpoint"];

/** An assistant's own, made when it is first needed; another URL begins anew. */
function createAssistantEndpoint(db: Db): AssistantEndpoint {
  const upsert = db.prepare<[object], NewDelivery["endpoint"]>(`
    INSERT INTO webhook_endpoints (account_id, assistant_id, purpose, url, created_at, updated_at)
    VALUES (@accountId, @assistantId, @purpose, @url, @now, @now)
    ON CONFLICT (assistant_id, purpose) DO UPDATE SET
      status = iif(url = excluded.url, status, 'active'),
      disabled_reason = iif(url = excluded.url, disabled_reason, NULL),
      failing_since = iif(url = excluded.url, failing_since, NULL),
      url = excluded.url
    RETURNING id, status`);
  return (args) => {
    const endpoint = upsert.get(args);
    if (!endpoint) throw new Error("an upsert returned no row");
    return endpoint;
  };
}

/** What of an assistant's settings concerns webhooks; they are valid where they are stored. */
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
  db: Db, insert: (delivery: NewDelivery) => void, endpointOf: AssistantEndpoint,
): Enqueue {
  const find = db.prepare<[object], CallRow & { lead_id: number | null; settings: string }>(
    CALL.replace("SELECT c.*,", "SELECT c.*, a.settings,") + " WHERE c.id = @callId");
  const lines = db.prepare<[object], {
    speaker: "assistant" | "customer"; text: string; start_ms: number;
  }>("SELECT speaker, text, start_ms FROM call_entries WHERE call_id = @callId ORDER BY number");
  const leadOf = createLeadFacts(db);
  return (event, now) => {
    const row = find.get({ callId: event.callId });
    if (!row || isLive(row.status)) return;
    const settings = JSON.parse(row.settings) as WebhookSettings;
    const { is_webhook_active: isActive, webhook_url: url } = settings;
    if (!isActive || !url) return;
    if (settings.send_webhook_only_on_completed && !ANSWERED.has(row.status)) return;
    const call = callFromRow(row);
    const endpoint = endpointOf({
      accountId: call.accountId, assistantId: call.assistantId, purpose: "post_call", url, now,
    });
    const body = postCallBody({
      ...call,
      finishedAt: now,
      lines: lines.all({ callId: call.id })
        .map(({ start_ms: startMs, ...line }) => ({ ...line, startMs })),
      ...leadOf(row.lead_id),
    });
    const recordingFile = settings.include_recording_in_webhook ? call.recordingFile : null;
    insert({ event, endpoint, type: "post_call", body, recordingFile, now });
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

/** The lead of a campaign's call, and the campaign. */
function createLeadFacts(db: Db) {
  const findLead = db.prepare<[object], LeadRow & { campaign_id: number }>(
    "SELECT * FROM leads WHERE id = @leadId");
  const findCampaign = db.prepare<[object], CampaignRow>(
    "SELECT * FROM campaigns WHERE id = @campaignId");
  return (leadId: number | null) => {
    const row = leadId === null ? undefined : findLead.get({ leadId });
    if (!row) return { lead: null, campaign: null };
    const campaign = findCampaign.get({ campaignId: row.campaign_id });
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
  db: Db, insert: (delivery: NewDelivery) => void, endpointOf: AssistantEndpoint,
): Enqueue {
  const find = db.prepare<[object], EndedRow>(`
    SELECT c.id, c.uuid, c.assistant_id, a.uuid AS assistant_uuid, c.account_id, c.type,
      c.message_count, c.variables, c.created_at, a.settings
    FROM conversations c JOIN assistants a ON a.id = c.assistant_id WHERE c.uuid = @uuid`);
  const messages = db.prepare<[object], {
    role: "user" | "assistant"; content: string; created_at: number;
  }>("SELECT role, content, created_at FROM messages WHERE conversation_id = @id ORDER BY id");
  const wasTold = db.prepare(`
    SELECT 1 FROM webhook_deliveries WHERE endpoint_id = @endpointId AND account_id = @accountId
      AND type = 'conversation_ended' AND conversation_uuid = @uuid LIMIT 1`);
  return (event, now) => {
    const row = find.get({ uuid: event.conversationId });
    if (row?.type !== "widget") return;
    const settings = JSON.parse(row.settings) as WebhookSettings;
    const url = settings.conversation_ended_webhook_url;
    if (!url) return;
    const { account_id: accountId, assistant_id: assistantId, uuid } = row;
    const endpoint = endpointOf({
      accountId, assistantId, purpose: "conversation_ended", url, now,
    });
    const isRepeat = wasTold.get({ endpointId: endpoint.id, accountId, uuid }) !== undefined;
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
      messages: messages.all({ id: row.id })
        .map(({ created_at: createdAt, ...message }) => ({ ...message, createdAt })),
    });
    const needsEvaluation = settings.post_call_evaluation && settings.post_call_schema.length > 0;
    insert({ event, endpoint, type: "conversation_ended", body, needsEvaluation, now });
  };
}
