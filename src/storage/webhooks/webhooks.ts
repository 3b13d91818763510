// Webhook endpoints and deliveries in the database: reads for the main thread, commands for the
// writer. Deliveries are created in outbox.ts.
import { jsonOf, recordOf } from "#core/values.ts";
import type {
  Attempt, Delivery, DeliveryFilter, DeliveryState, Endpoint, Purpose, WebhookStore,
} from "#features/webhooks/webhooks.ts";
import { isFree, NOBODY, type AsNode } from "#storage/nodes/nodes.ts";
import { NEWEST, orNull, pagesAside, type Exists, type Reader, type Sql } from "#storage/sql.ts";
import { perAccount } from "#storage/sweeps.ts";
import { endpointsChanged } from "./outbox.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

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
const OF_TYPE = "(CAST(@type AS TEXT) IS NULL OR d.type = @type)";
const OF_ENDPOINT = "(CAST(@endpointId AS BIGINT) IS NULL OR d.endpoint_id = @endpointId)";
const IN_STATE = "(CAST(@state AS TEXT) IS NULL OR d.state = @state)";
/** The commonest filters, and those that match few rows, each along an index of its own. */
const MATCHES = {
  all: "TRUE",
  ofCall: `d.call_id = @callId AND +d.account_id = @accountId
    AND ${IN_STATE} AND ${OF_TYPE} AND ${OF_ENDPOINT}`,
  // `d.id > 0` and the range make SQLite prefer the index of pending deliveries to that of all.
  // Without the range PostgreSQL would look through everybody's deliveries.
  pending: `d.state = 'pending' AND d.id > 0 AND d.account_id BETWEEN @accountId AND @accountId
    AND d.endpoint_id IN (SELECT id FROM webhook_endpoints WHERE account_id = @accountId)
    AND ${OF_TYPE} AND ${OF_ENDPOINT}`,
  dead: `d.state = 'dead' AND ${OF_TYPE} AND ${OF_ENDPOINT}`,
  others: `${IN_STATE} AND ${OF_TYPE} AND ${OF_ENDPOINT}`,
};

function matchesOf({ state, type, endpointId, callId }: DeliveryFilter): keyof typeof MATCHES {
  if (callId !== undefined) return "ofCall";
  if (state === "pending" || state === "dead") return state;
  return [state, type, endpointId].every((one) => one === undefined) ? "all" : "others";
}

function createPages(reader: Reader): Pick<WebhookStore, "countDeliveries" | "deliveries"> {
  const readsOf = (name: keyof typeof MATCHES, isOfAccount: boolean) =>
    pagesAside<DeliveryRow>(reader, {
      select: DELIVERY, from: "webhook_deliveries d", matches: MATCHES[name], isOfAccount,
    });
  const reads = {
    all: readsOf("all", true), ofCall: readsOf("ofCall", false),
    pending: readsOf("pending", false), dead: readsOf("dead", true),
    others: readsOf("others", true),
  };
  return {
    deliveries: async (accountId, filter, offset, rows) => (await reads[matchesOf(filter)].list
      .all({ ...parametersOf(accountId, filter), offset, rows })).map(deliveryFromRow),
    countDeliveries: async (accountId, filter) =>
      (await reads[matchesOf(filter)].count.get(parametersOf(accountId, filter)))?.total ?? 0,
  };
}

const parametersOf = (accountId: number, filter: DeliveryFilter) => ({
  accountId,
  ...NEWEST,
  state: filter.state ?? null,
  type: filter.type ?? null,
  endpointId: filter.endpointId ?? null,
  callId: filter.callId ?? null,
});

/**
 * The ids of an endpoint's waiting deliveries, first come first. Written as a range, and ordered by
 * both columns of their index: else PostgreSQL may look for the first one among all deliveries.
 */
const WAITING = `SELECT id FROM webhook_deliveries
  WHERE endpoint_id BETWEEN +@endpointId AND +@endpointId AND state = 'pending'
  ORDER BY endpoint_id, id`;

/**
 * Polled for what other nodes may have committed, mostly in vain: comparing ids is cheap. What has
 * come since is found by its ids, all that waits endpoint by endpoint: there may be half a million
 * deliveries to an endpoint that is down.
 */
function createWaiting(reader: Reader): WebhookStore["waiting"] {
  const newest = reader.prepare<object, { id: number | null }>(
    "SELECT max(id) AS id FROM webhook_deliveries");
  // The changed text keeps the index of pending deliveries out: it is not in the order of the ids.
  const since = reader.prepare<object, { id: number }>(`
    SELECT DISTINCT endpoint_id AS id FROM webhook_deliveries
    WHERE id > @afterId AND id <= @newestId AND (state || '') = 'pending'`);
  // `OFFSET 0` keeps PostgreSQL from reading all that waits to join it.
  const all = reader.prepare<object, { id: number }>(`
    SELECT id FROM webhook_endpoints e WHERE EXISTS (SELECT 1 FROM webhook_deliveries d
      WHERE d.endpoint_id BETWEEN e.id AND e.id AND d.state = 'pending'
      ORDER BY d.endpoint_id, d.id LIMIT 1 OFFSET 0)`);
  return async (afterId) => {
    // Read first: a delivery written between the two reads is found now, or next time.
    const newestId = (await newest.get({}))?.id ?? 0;
    if (newestId === afterId) return { endpointIds: [], newestId };
    const rows = await (afterId === 0 ? all : since).all({ afterId, newestId });
    return { endpointIds: rows.map(({ id }) => id), newestId };
  };
}

export function createWebhookStore(
  reader: Reader, writer: WriterOf<typeof webhookCommands>,
): WebhookStore {
  const endpoint = reader.prepare<object, EndpointRow>(
    "SELECT * FROM webhook_endpoints WHERE id = @endpointId AND account_id = @accountId");
  const endpoints = reader.prepare<object, EndpointRow>(
    "SELECT * FROM webhook_endpoints WHERE account_id = @accountId ORDER BY id");
  const byId = reader.prepare<object, EndpointRow & { owner_id: number | null }>(`
    SELECT *, CASE WHEN ${isFree("node_id")} THEN NULL ELSE node_id END AS owner_id
    FROM webhook_endpoints WHERE id = @endpointId`);
  const delivery = reader.prepare<object, DeliveryRow>(
    `${DELIVERY} WHERE d.id = @deliveryId AND d.account_id = @accountId`);
  const finished = reader.prepare<object, { id: number; accountId: number }>(`
    SELECT id, account_id AS "accountId" FROM webhook_deliveries
    WHERE state = @state AND finished_at IS NOT NULL AND finished_at < @before
    ORDER BY finished_at LIMIT (@rows + 0)`);
  const head = reader.prepare<object, DeliveryRow>(`
    ${DELIVERY} WHERE d.id = (${WAITING} LIMIT 1)`);
  return {
    endpoint: async (accountId, endpointId) =>
      orNull(await endpoint.get({ accountId, endpointId }), endpointFromRow),
    endpoints: async (accountId) => (await endpoints.all({ accountId })).map(endpointFromRow),
    ...writes(writer, "webhooks", "createEndpoint", "assistantEndpoint", "updateEndpoint",
      "deleteEndpoint", "replay", "enqueue", "take", "prepared", "giveUp"),
    delivery: async (accountId, deliveryId) =>
      orNull(await delivery.get({ accountId, deliveryId }), deliveryFromRow),
    ...createPages(reader),
    waiting: createWaiting(reader),
    head: async (endpointId) => {
      const row = await head.get({ endpointId });
      const found = row && await byId.get({ endpointId });
      return row && found?.status === "active"
        ? {
            delivery: deliveryFromRow(row), endpoint: endpointFromRow(found),
            ownerId: found.owner_id,
          }
        : null;
    },
    record: (attempt) => writer.write("webhooks.record", attempt),
    trim: async ({ deliveredBefore, deadBefore, rows }) => {
      const due = await finished.all({ state: "delivered", before: deliveredBefore, rows });
      const left = rows - due.length;
      due.push(...await finished.all({ state: "dead", before: deadBefore, rows: left }));
      const trimmed = await perAccount(due, (accountId, own) =>
        writer.write("webhooks.trim", { accountId, ids: own.map(({ id }) => id) }));
      return trimmed.reduce((sum, count) => sum + count, 0);
    },
  };
}

type Args<Name extends keyof WebhookStore> = Parameters<WebhookStore[Name]>[0];

export function webhookCommands(sql: Sql) {
  return {
    ...endpointCommands(sql),
    ...deliveryCommands(sql),
    "webhooks.take": createTake(sql),
    "webhooks.record": createRecord(sql),
  };
}

function endpointCommands(sql: Sql) {
  const insert = sql.prepare<object, EndpointRow>(`
    INSERT INTO webhook_endpoints (account_id, purpose, url, events, created_at, updated_at)
    VALUES (@accountId, 'account', @url, @events, @now, @now) RETURNING *`);
  const count = sql.prepare<object, { endpoints: number }>(`
    SELECT count(*) AS endpoints FROM webhook_endpoints
    WHERE account_id = @accountId AND purpose = 'account'`);
  const upsert = sql.prepare<object, EndpointRow>(`
    INSERT INTO webhook_endpoints (account_id, assistant_id, purpose, url, created_at, updated_at)
    VALUES (@accountId, @assistantId, @purpose, @url, @now, @now)
    ON CONFLICT (assistant_id, purpose) DO UPDATE SET url = excluded.url
    WHERE webhook_endpoints.account_id = excluded.account_id RETURNING *`);
  const update = sql.prepare<object, EndpointRow>(`
    UPDATE webhook_endpoints SET url = coalesce(@url, url), events = coalesce(@events, events),
      status = coalesce(@status, status),
      disabled_reason = CASE WHEN CAST(@status AS TEXT) IS NULL
        THEN disabled_reason ELSE @reason END,
      failing_since = CASE WHEN @status = 'active' OR url <> coalesce(@url, url)
        THEN NULL ELSE failing_since END,
      secret_version = secret_version + @rotates,
      rotated_at = CASE WHEN @rotates = 1 THEN @now ELSE rotated_at END, updated_at = @now
    WHERE id = @endpointId AND account_id = @accountId RETURNING *`);
  // Deliveries queue behind the first, so only that one needs to be hurried.
  const hurry = sql.prepare(`
    UPDATE webhook_deliveries SET next_at = @now WHERE id = (${WAITING} LIMIT 1)`);
  const disable = sql.prepare(`
    UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = 'being deleted'
    WHERE id = @endpointId AND account_id = @accountId AND purpose = 'account'`);
  const removeSome = sql.prepare(`
    DELETE FROM webhook_deliveries WHERE id IN (
      SELECT id FROM webhook_deliveries WHERE endpoint_id = @endpointId LIMIT (@rows + 0))`);
  const remove = sql.prepare("DELETE FROM webhook_endpoints WHERE id = @endpointId");
  return {
    "webhooks.createEndpoint": async (args: Args<"createEndpoint">): Promise<Endpoint | null> => {
      if (((await count.get(args))?.endpoints ?? 0) >= args.max) return null;
      const row = await insert.get({ ...args, events: JSON.stringify(args.events) });
      endpointsChanged(sql);
      return orNull(row, endpointFromRow);
    },
    "webhooks.assistantEndpoint": async (args: Args<"assistantEndpoint">): Promise<Endpoint> => {
      const row = await upsert.one(args);
      return endpointFromRow(row);
    },
    "webhooks.updateEndpoint": async (args: Args<"updateEndpoint">): Promise<Endpoint | null> => {
      const { url = null, events, status = null, rotates = false } = args;
      const row = await update.get({
        ...args, url, status, rotates: rotates ? 1 : 0,
        events: events ? JSON.stringify(events) : null,
        reason: status === "disabled" ? "switched off" : null,
      });
      endpointsChanged(sql);
      if (row?.status === "active") await hurry.run(args);
      return orNull(row, endpointFromRow);
    },
    "webhooks.deleteEndpoint": async (args: Args<"deleteEndpoint">) => {
      endpointsChanged(sql);
      // Disabled first, so that nothing is sent while rows are being deleted.
      if ((await disable.run(args)).changes === 0) return null;
      const isGone = (await removeSome.run(args)).changes < args.rows;
      if (isGone) await remove.run(args);
      return { isGone };
    },
  };
}

function deliveryCommands(sql: Sql) {
  const replay = sql.prepare<object, { id: number }>(`
    INSERT INTO webhook_deliveries (account_id, endpoint_id, message_id, type, call_id,
      conversation_uuid, lead_id, recording_file, needs_evaluation, state, next_at, replay_of,
      created_at, body)
    SELECT account_id, endpoint_id, message_id, type, call_id, conversation_uuid, lead_id,
      recording_file, needs_evaluation, 'pending', @now, id, @now, body
    FROM webhook_deliveries WHERE id = @deliveryId AND account_id = @accountId RETURNING id`);
  const enqueue = sql.prepare<object, { id: number }>(`
    INSERT INTO webhook_deliveries (account_id, endpoint_id, message_id, type, state, next_at,
      created_at, body)
    SELECT account_id, id, @messageId, @type, 'pending', @now, @now, @body
    FROM webhook_endpoints WHERE id = @endpointId AND account_id = @accountId RETURNING id`);
  const find = sql.prepare<object, DeliveryRow>(`${DELIVERY} WHERE d.id = @id`);
  const prepared = sql.prepare(`
    UPDATE webhook_deliveries SET body = @body, needs_evaluation = 0
    WHERE id = @deliveryId AND account_id = @accountId`);
  // Those waiting for an endpoint that was enabled again meanwhile go on waiting.
  const giveUp = sql.prepare(`
    UPDATE webhook_deliveries SET state = 'dead', last_error = 'the endpoint was disabled',
      finished_at = @now
    WHERE id IN (${WAITING} LIMIT (@rows + 0)) AND EXISTS (
      SELECT 1 FROM webhook_endpoints
      WHERE id = @endpointId AND account_id = @accountId AND status = 'disabled')`);
  const trim = sql.prepare(`
    DELETE FROM webhook_deliveries
    WHERE +account_id = @accountId AND ${sql.dialect.among("id", "@ids")}`);
  const found = async (row: { id: number } | undefined): Promise<Delivery | null> => {
    const delivery = row && await find.get({ id: row.id });
    return delivery ? deliveryFromRow(delivery) : null;
  };
  return {
    "webhooks.replay": async (args: Args<"replay">): Promise<Delivery | null> =>
      found(await replay.get(args)),
    "webhooks.enqueue": async (args: Args<"enqueue">): Promise<Delivery | null> =>
      found(await enqueue.get({
        ...args, messageId: `msg_${args.type}_${args.now}`, body: JSON.stringify(args.body),
      })),
    "webhooks.prepared": async (args: Args<"prepared">): Promise<void> => {
      await prepared.run(args);
    },
    "webhooks.giveUp": async (args: Args<"giveUp">): Promise<number> =>
      (await giveUp.run(args)).changes,
    "webhooks.trim": async (args: { accountId: number; ids: number[] }): Promise<number> =>
      (await trim.run(args)).changes,
  };
}

/** The receiver's answer if it is JSON, else its status and text. */
function webhookResponse({ status, response }: Pick<Attempt, "status" | "response">): string {
  return JSON.stringify(recordOf(jsonOf(response ?? "")) ?? { status, body: response ?? "" });
}

function createTake(sql: Sql) {
  const take = sql.prepare(`
    UPDATE webhook_endpoints SET node_id = @nodeId
    WHERE id = @endpointId AND account_id = @accountId AND ${isFree("node_id")}`);
  const find = sql.prepare<object, { nodeId: number | null }>(
    'SELECT node_id AS "nodeId" FROM webhook_endpoints WHERE id = @endpointId');
  return async (args: AsNode<Args<"take">>): Promise<number> => {
    await take.run(args);
    return (await find.get(args))?.nodeId ?? NOBODY;
  };
}

function createRecord(sql: Sql): (attempt: AsNode<Attempt>) => Promise<void> {
  const record = sql.prepare<object, { endpoint_id: number; call_id: number | null; type: string }>(`
    UPDATE webhook_deliveries SET state = @state, attempts = attempts + 1, next_at = @nextAt,
      last_status = @status, last_error = @error, response = @response,
      finished_at = CASE WHEN @state = 'pending'
        THEN NULL ELSE CAST(@now AS BIGINT) END
    WHERE id = @deliveryId AND account_id = @accountId AND state = 'pending'
      AND EXISTS (SELECT 1 FROM webhook_endpoints e
        WHERE e.id = endpoint_id AND coalesce(e.node_id, ${NOBODY}) = @nodeId)
    RETURNING endpoint_id, call_id, type`);
  const taken = sql.prepare(
    "UPDATE webhook_endpoints SET failing_since = NULL WHERE id = @endpointId AND failing_since IS NOT NULL");
  const failed = sql.prepare(
    "UPDATE webhook_endpoints SET failing_since = coalesce(failing_since, @now) WHERE id = @endpointId");
  const disable = sql.prepare(`
    UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = @disables, updated_at = @now
    WHERE id = @endpointId`);
  const answer = sql.prepare(
    "UPDATE calls SET webhook_response = @json WHERE id = @callId AND account_id = @accountId");
  const another = sql.prepare<object, Exists>(`
    SELECT 1 FROM webhook_endpoints e JOIN webhook_deliveries d ON d.endpoint_id = e.id
    WHERE d.id = @deliveryId AND d.account_id = @accountId
      AND (e.url <> @url OR e.secret_version <> @secretVersion)`);
  /** If the endpoint changed during the attempt, the delivery is retried at once as it is now. */
  const judged = async ({ endpoint, ...attempt }: AsNode<Attempt>) => {
    const { accountId, deliveryId, outcome, now } = attempt;
    const isOfAnother = outcome !== "delivered"
      && await another.get({ accountId, deliveryId, ...endpoint }) !== undefined;
    return isOfAnother
      ? { ...attempt, isOfAnother, outcome: "retry" as const, nextAt: now }
      : { ...attempt, isOfAnother };
  };
  return async (given) => {
    const { isOfAnother, ...attempt } = await judged(given);
    const { accountId, outcome, disables, now } = attempt;
    const state = outcome === "retry" ? "pending" : outcome;
    const row = await record.get({ ...attempt, state });
    if (!row) return;
    const { endpoint_id: endpointId, call_id: callId } = row;
    if (row.type === "post_call" && callId !== null && attempt.status !== null) {
      await answer.run({ accountId, callId, json: webhookResponse(attempt) });
    }
    if (outcome === "delivered") {
      await taken.run({ endpointId });
      return;
    }
    if (isOfAnother) return;
    await failed.run({ endpointId, now });
    if (disables === null) return;
    await disable.run({ endpointId, disables, now });
    endpointsChanged(sql);
  };
}
