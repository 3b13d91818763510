// Webhook endpoints and deliveries in SQLite: reads for the main thread, commands for the writer.
// Deliveries are born in webhook-outbox.ts.
import type { Instant } from "#core/system.ts";
import type {
  Attempt, Delivery, DeliveryFilter, DeliveryState, Endpoint, Purpose, WebhookStore,
} from "#features/webhooks/webhooks.ts";
import type { Db } from "./engines/sqlite/database.ts";
import { endpointsChanged } from "./webhook-outbox.ts";
import type { Writer } from "./writer.ts";

interface EndpointRow {
  id: number;
  account_id: number;
  assistant_id: number | null;
  purpose: Purpose;
  url: string;
  events: string;
  status: Endpoint["status"];
  disabled_reason: string | null;
  secret_version: number;
  rotated_at: number | null;
  failing_since: number | null;
  created_at: number;
  updated_at: number;
}

interface DeliveryRow {
  id: number;
  account_id: number;
  endpoint_id: number;
  url: string;
  message_id: string;
  type: string;
  call_id: number | null;
  conversation_uuid: string | null;
  recording_file: string | null;
  needs_evaluation: number;
  state: DeliveryState;
  attempts: number;
  next_at: number;
  last_status: number | null;
  last_error: string | null;
  response: string | null;
  replay_of: number | null;
  created_at: number;
  finished_at: number | null;
  body: string;
}

const endpointFromRow = (row: EndpointRow): Endpoint => ({
  id: row.id,
  accountId: row.account_id,
  assistantId: row.assistant_id,
  purpose: row.purpose,
  url: row.url,
  events: JSON.parse(row.events) as string[],
  status: row.status,
  disabledReason: row.disabled_reason,
  secretVersion: row.secret_version,
  rotatedAt: row.rotated_at,
  failingSince: row.failing_since,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

const deliveryFromRow = (row: DeliveryRow): Delivery => ({
  id: row.id,
  accountId: row.account_id,
  endpointId: row.endpoint_id,
  url: row.url,
  messageId: row.message_id,
  type: row.type,
  callId: row.call_id,
  conversationUuid: row.conversation_uuid,
  recordingFile: row.recording_file,
  needsEvaluation: row.needs_evaluation === 1,
  state: row.state,
  attempts: row.attempts,
  nextAt: row.next_at,
  lastStatus: row.last_status,
  lastError: row.last_error,
  response: row.response,
  replayOf: row.replay_of,
  createdAt: row.created_at,
  finishedAt: row.finished_at,
  body: row.body,
});

const DELIVERY = `SELECT d.*, e.url FROM webhook_deliveries d
  JOIN webhook_endpoints e ON e.id = d.endpoint_id`;
const MATCHES = `d.account_id = @accountId
  AND (@state IS NULL OR d.state = @state)
  AND (@type IS NULL OR d.type = @type)
  AND (@endpointId IS NULL OR d.endpoint_id = @endpointId)
  AND (@callId IS NULL OR d.call_id = @callId)`;

const parametersOf = (accountId: number, filter: DeliveryFilter) => ({
  accountId,
  state: filter.state ?? null,
  type: filter.type ?? null,
  endpointId: filter.endpointId ?? null,
  callId: filter.callId ?? null,
});

export function createWebhookStore(db: Db, writer: Writer): WebhookStore {
  const endpoint = db.prepare<[object], EndpointRow>(
    "SELECT * FROM webhook_endpoints WHERE id = @endpointId AND account_id = @accountId");
  const endpoints = db.prepare<[object], EndpointRow>(
    "SELECT * FROM webhook_endpoints WHERE account_id = @accountId ORDER BY id");
  const byId = db.prepare<[object], EndpointRow>(
    "SELECT * FROM webhook_endpoints WHERE id = @endpointId");
  const delivery = db.prepare<[object], DeliveryRow>(
    `${DELIVERY} WHERE d.id = @deliveryId AND d.account_id = @accountId`);
  const deliveries = db.prepare<[object], DeliveryRow>(
    `${DELIVERY} WHERE ${MATCHES} ORDER BY d.id DESC LIMIT @rows OFFSET @offset`);
  const count = db.prepare<[object], { total: number }>(
    `SELECT count(*) AS total FROM webhook_deliveries d WHERE ${MATCHES}`);
  const waiting = db.prepare<[object], { endpoint_id: number }>(`
    SELECT DISTINCT endpoint_id FROM webhook_deliveries WHERE id > @afterId AND state = 'pending'`);
  const newest = db.prepare<[], { id: number | null }>("SELECT max(id) AS id FROM webhook_deliveries");
  const head = db.prepare<[object], DeliveryRow>(`
    ${DELIVERY} WHERE d.endpoint_id = +@endpointId AND d.state = 'pending' ORDER BY d.id LIMIT 1`);
  return {
    endpoint: (accountId, endpointId) => {
      const row = endpoint.get({ accountId, endpointId });
      return row ? endpointFromRow(row) : null;
    },
    endpoints: (accountId) => endpoints.all({ accountId }).map(endpointFromRow),
    createEndpoint: (args) => writer.write("webhooks.createEndpoint", args),
    assistantEndpoint: (args) => writer.write("webhooks.assistantEndpoint", args),
    updateEndpoint: (args) => writer.write("webhooks.updateEndpoint", args),
    deleteEndpoint: (args) => writer.write("webhooks.deleteEndpoint", args),
    delivery: (accountId, deliveryId) => {
      const row = delivery.get({ accountId, deliveryId });
      return row ? deliveryFromRow(row) : null;
    },
    deliveries: (accountId, filter, offset, rows) =>
      deliveries.all({ ...parametersOf(accountId, filter), offset, rows }).map(deliveryFromRow),
    countDeliveries: (accountId, filter) => count.get(parametersOf(accountId, filter))?.total ?? 0,
    replay: (args) => writer.write("webhooks.replay", args),
    enqueue: (args) => writer.write("webhooks.enqueue", args),
    waiting: (afterId) => ({
      endpointIds: waiting.all({ afterId }).map(({ endpoint_id: id }) => id),
      newestId: newest.get()?.id ?? 0,
    }),
    head: (endpointId) => {
      const row = head.get({ endpointId });
      const found = row && byId.get({ endpointId });
      return row && found
        ? { delivery: deliveryFromRow(row), endpoint: endpointFromRow(found) }
        : null;
    },
    record: (attempt) => writer.write("webhooks.record", attempt),
    prepared: (args) => writer.write("webhooks.prepared", args),
    trim: (args) => writer.write("webhooks.trim", args),
  };
}

type Args<Name extends keyof WebhookStore> = Parameters<WebhookStore[Name]>[0];

export function webhookCommands(db: Db) {
  return {
    ...endpointCommands(db),
    ...deliveryCommands(db),
    "webhooks.record": createRecord(db),
  };
}

function endpointCommands(db: Db) {
  const insert = db.prepare<[object], EndpointRow>(`
    INSERT INTO webhook_endpoints (account_id, purpose, url, events, created_at, updated_at)
    VALUES (@accountId, 'account', @url, @events, @now, @now) RETURNING *`);
  const count = db.prepare<[object], { endpoints: number }>(`
    SELECT count(*) AS endpoints FROM webhook_endpoints
    WHERE account_id = @accountId AND purpose = 'account'`);
  const upsert = db.prepare<[object], EndpointRow>(`
    INSERT INTO webhook_endpoints (account_id, assistant_id, purpose, url, created_at, updated_at)
    VALUES (@accountId, @assistantId, @purpose, @url, @now, @now)
    ON CONFLICT (assistant_id, purpose) DO UPDATE SET url = excluded.url RETURNING *`);
  const update = db.prepare<[object], EndpointRow>(`
    UPDATE webhook_endpoints SET url = coalesce(@url, url), events = coalesce(@events, events),
      status = coalesce(@status, status),
      disabled_reason = iif(@status IS NULL, disabled_reason, @reason),
      failing_since = iif(@status = 'active', NULL, failing_since),
      secret_version = secret_version + @rotates,
      rotated_at = iif(@rotates = 1, @now, rotated_at), updated_at = @now
    WHERE id = @endpointId AND account_id = @accountId RETURNING *`);
  const hurry = db.prepare(`
    UPDATE webhook_deliveries SET next_at = @now WHERE endpoint_id = @endpointId AND state = 'pending'`);
  const remove = db.prepare(`
    DELETE FROM webhook_endpoints
    WHERE id = @endpointId AND account_id = @accountId AND purpose = 'account'`);
  return {
    "webhooks.createEndpoint": (args: Args<"createEndpoint">): Endpoint | null => {
      if ((count.get(args)?.endpoints ?? 0) >= args.max) return null;
      const row = insert.get({ ...args, events: JSON.stringify(args.events) });
      endpointsChanged(db);
      return row ? endpointFromRow(row) : null;
    },
    "webhooks.assistantEndpoint": (args: Args<"assistantEndpoint">): Endpoint => {
      const row = upsert.get(args);
      if (!row) throw new Error("an upsert returned no row");
      return endpointFromRow(row);
    },
    "webhooks.updateEndpoint": (args: Args<"updateEndpoint">): Endpoint | null => {
      const { url = null, events, status = null, rotates = false } = args;
      const row = update.get({
        ...args, url, status, rotates: rotates ? 1 : 0,
        events: events ? JSON.stringify(events) : null,
        reason: status === "disabled" ? "switched off" : null,
      });
      endpointsChanged(db);
      if (row?.status === "active") hurry.run(args);
      return row ? endpointFromRow(row) : null;
    },
    "webhooks.deleteEndpoint": (args: Args<"deleteEndpoint">): boolean => {
      endpointsChanged(db);
      return remove.run(args).changes > 0;
    },
  };
}

function deliveryCommands(db: Db) {
  const replay = db.prepare<[object], { id: number }>(`
    INSERT INTO webhook_deliveries (account_id, endpoint_id, message_id, type, call_id,
      conversation_uuid, recording_file, needs_evaluation, state, next_at, replay_of, created_at, body)
    SELECT account_id, endpoint_id, message_id, type, call_id, conversation_uuid, recording_file,
      needs_evaluation, 'pending', @now, id, @now, body
    FROM webhook_deliveries WHERE id = @deliveryId AND account_id = @accountId RETURNING id`);
  const enqueue = db.prepare<[object], { id: number }>(`
    INSERT INTO webhook_deliveries (account_id, endpoint_id, message_id, type, state, next_at,
      created_at, body)
    SELECT account_id, id, 'msg_' || @type || '_' || @now, @type, 'pending', @now, @now, @body
    FROM webhook_endpoints WHERE id = @endpointId RETURNING id`);
  const find = db.prepare<[object], DeliveryRow>(`${DELIVERY} WHERE d.id = @id`);
  const prepared = db.prepare(`
    UPDATE webhook_deliveries SET body = @body, needs_evaluation = 0 WHERE id = @deliveryId`);
  const trim = db.prepare(`
    DELETE FROM webhook_deliveries WHERE id IN (
      SELECT id FROM webhook_deliveries
      WHERE finished_at IS NOT NULL
        AND finished_at < iif(state = 'delivered', @deliveredBefore, @deadBefore)
      ORDER BY finished_at LIMIT @rows)`);
  const found = (row: { id: number } | undefined): Delivery | null => {
    const delivery = row && find.get({ id: row.id });
    return delivery ? deliveryFromRow(delivery) : null;
  };
  return {
    "webhooks.replay": (args: Args<"replay">): Delivery | null => found(replay.get(args)),
    "webhooks.enqueue": (args: Args<"enqueue">): Delivery | null =>
      found(enqueue.get({ ...args, body: JSON.stringify(args.body) })),
    "webhooks.prepared": (args: Args<"prepared">): void => void prepared.run(args),
    "webhooks.trim": (args: { deliveredBefore: Instant; deadBefore: Instant; rows: number }): number =>
      trim.run(args).changes,
  };
}

/** The receiver's JSON, else what it said as text. */
function webhookResponse({ status, response }: Attempt): string {
  try {
    const value = JSON.parse(response ?? "") as unknown;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return JSON.stringify(value);
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return JSON.stringify({ status, body: response ?? "" });
}

function createRecord(db: Db): (attempt: Attempt) => void {
  const record = db.prepare<[object], { endpoint_id: number; call_id: number | null; type: string }>(`
    UPDATE webhook_deliveries SET state = @state, attempts = attempts + 1, next_at = @nextAt,
      last_status = @status, last_error = @error, response = @response,
      finished_at = iif(@state = 'pending', NULL, @now)
    WHERE id = @deliveryId AND state = 'pending' RETURNING endpoint_id, call_id, type`);
  const taken = db.prepare(
    "UPDATE webhook_endpoints SET failing_since = NULL WHERE id = @endpointId AND failing_since IS NOT NULL");
  const failed = db.prepare(
    "UPDATE webhook_endpoints SET failing_since = coalesce(failing_since, @now) WHERE id = @endpointId");
  const disable = db.prepare(`
    UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = @disables, updated_at = @now
    WHERE id = @endpointId`);
  const giveUp = db.prepare(`
    UPDATE webhook_deliveries SET state = 'dead', last_error = 'the endpoint was disabled',
      finished_at = @now
    WHERE endpoint_id = @endpointId AND state = 'pending'`);
  const answer = db.prepare("UPDATE calls SET webhook_response = @json WHERE id = @callId");
  return (attempt) => {
    const { outcome, disables, now } = attempt;
    const state = outcome === "retry" ? "pending" : outcome;
    const row = record.get({ ...attempt, state });
    if (!row) return;
    const { endpoint_id: endpointId, call_id: callId } = row;
    if (row.type === "post_call" && callId !== null && attempt.status !== null) {
      answer.run({ callId, json: webhookResponse(attempt) });
    }
    if (outcome === "delivered") return void taken.run({ endpointId });
    failed.run({ endpointId, now });
    if (disables === null) return;
    disable.run({ endpointId, disables, now });
    giveUp.run({ endpointId, now });
    endpointsChanged(db);
  };
}
