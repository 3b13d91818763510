// Deletes calls with everything said in them: one, or many at once, each noted in the audit log.
// Their cost stays in the ledger.
import type { CallStore, DeletedCalls } from "#features/calls/records/records.ts";
import { isFinal } from "#features/calls/records/status.ts";
import { placesOf, recordingsOf } from "#features/calls/records/transfers.ts";
import { createNoteAudit } from "#storage/accounts/audit-log.ts";
import type { campaignCommands } from "#storage/campaigns/commands.ts";
import { createAccountAppender } from "#storage/events.ts";
import type { CallRows } from "./steps.ts";
import { createUnwanted } from "#storage/removals.ts";
import type { Sql } from "#storage/sql.ts";

type Args<Name extends keyof CallStore> = Parameters<CallStore[Name]>[0];

export type Settling = Pick<ReturnType<typeof campaignCommands>, "campaigns.settle">;

export function callDeletionCommands(sql: Sql, rows: CallRows, campaigns: Settling) {
  const remove = createDelete(sql, rows, campaigns);
  return { "calls.delete": remove, "calls.deleteMany": createDeleteMany(sql, remove) };
}

function createDelete(sql: Sql, rows: CallRows, campaigns: Settling) {
  // The account's event numbers must have no gaps: its events stay, their contents go.
  const blankEvents = sql.prepare(`
    UPDATE events SET call_id = NULL, sequence = 0, type = 'call_deleted', data = @data
    WHERE call_id = @callId`);
  // Deliveries not sent yet are dropped: they contain what is to be forgotten.
  const removeDeliveries = sql.prepare(
    "DELETE FROM webhook_deliveries WHERE call_id = @callId AND +account_id = @accountId");
  const emptyToolCalls = sql.prepare(`
    UPDATE tool_calls SET result = '{}' WHERE result IS NOT NULL AND +account_id = @accountId
      AND scope >= @first AND scope < @end`);
  const remove = sql.prepare("DELETE FROM calls WHERE id = @callId");
  const unwanted = createUnwanted(sql);
  const append = createAccountAppender(sql);
  return async ({ accountId, callId, now }: Args<"delete">) => {
    const call = await rows.find({ accountId, callId });
    if (!call) return { kind: "not_found" as const };
    if (!isFinal(call.status)) return { kind: "live" as const };
    // Afterwards nobody knows whether its lead was reached, who would be called again.
    const settled = call.leadId === null
      ? []
      : await campaigns["campaigns.settle"]({ accountId, leadId: call.leadId, now });
    const data = { type: "call_deleted", call_id: callId } as const;
    await blankEvents.run({ callId, data: JSON.stringify(data) });
    await removeDeliveries.run({ accountId, callId });
    // The scopes of its turns are `call:17.1`, `call:17.2` …; a slash sorts right after the dot.
    await emptyToolCalls.run({ accountId, first: `call:${callId}.`, end: `call:${callId}/` });
    const event = await append(accountId, data, now);
    await remove.run({ callId });
    const recordings = recordingsOf(call);
    await unwanted.note(recordings.flatMap(placesOf), now);
    return { kind: "deleted" as const, recordings, events: [...settled, event] };
  };
}

function createDeleteMany(sql: Sql, remove: ReturnType<typeof createDelete>) {
  const note = createNoteAudit(sql);
  return async ({ accountId, callIds, by, now }: Args<"deleteMany">): Promise<DeletedCalls> => {
    const done: DeletedCalls = { deleted: [], live: [], recordings: [], events: [] };
    for (const callId of callIds) {
      const one = await remove({ accountId, callId, now });
      if (one.kind === "live") done.live.push(callId);
      if (one.kind !== "deleted") continue;
      done.deleted.push(callId);
      done.recordings.push(...one.recordings);
      done.events.push(...one.events);
      await note({
        accountId, now,
        note: {
          ...by, action: "call.delete", object: { type: "call", id: String(callId) }, details: {},
        },
      });
    }
    return done;
  };
}
