// The end of a talk: its cost is posted in the transaction that ends it, once, and never exceeds
// the reservation.
import { talkCost, type Charge } from "#features/calls/records/failures.ts";
import type { CallStore } from "#features/calls/records/records.ts";
import {
  legCarrierCost, legSeconds, settled, withoutSilent, type Transfer,
} from "#features/calls/records/transfers.ts";
import type { Micros } from "#core/money.ts";
import type { CommittedEvent } from "#events/events.ts";
import type { AsNode } from "#storage/nodes/nodes.ts";
import type { Sql } from "#storage/sql.ts";
import type { MoveCallDesk } from "./desk.ts";
import { reference, type CallRows } from "./steps.ts";
import { publishStep } from "./transfers.ts";

const SECOND = 1_000_000;

/** What the account owes for one leg, by how the call ended. */
function owedOf(
  charge: Charge,
  { lastedMicros, seconds, perMinute }: {
    lastedMicros: number; seconds: number; perMinute: Micros;
  },
): Micros {
  if (charge === "nothing") return 0;
  return charge === "full"
    ? talkCost(seconds, perMinute)
    : Math.floor((Math.max(0, lastedMicros) * perMinute) / (60 * SECOND));
}

export type EndCall = ReturnType<typeof createEnd>;

/** Each leg to a colleague that was answered is billed like a call that was placed. */
const owedForLegs = (charge: Charge, transfers: readonly Transfer[], perMinute: Micros): Micros =>
  transfers.reduce((sum, one) => {
    const { leg, finishedAt } = one;
    if (!leg || leg.answeredAt === null || finishedAt === null) return sum;
    const lastedMicros = finishedAt - leg.answeredAt;
    return sum + owedOf(charge, { lastedMicros, seconds: legSeconds(one), perMinute });
  }, 0);

export function createEnd(sql: Sql, rows: CallRows, moveDesk: MoveCallDesk) {
  const prices = sql.prepare<object, { ours: Micros; carriers: Micros }>(`
    SELECT price_per_minute AS ours, carrier_price_per_minute AS carriers FROM calls
    WHERE id = @callId`);
  const settle = sql.prepare(`
    UPDATE calls SET duration_seconds = @seconds, carrier_cost_micros = @carrierCostMicros,
      total_cost_micros = @totalMicros, final_status = @finalStatus, turns = @turns,
      quality = @quality, transfers = @transfers,
      recording_file = CASE WHEN CAST(@hasRecording AS BIGINT) = 1 THEN recording_file END, ended_at = @endedAt
    WHERE id = @callId`);
  return async (args: AsNode<Parameters<CallStore["end"]>[0]>): Promise<CommittedEvent[]> => {
    const { callId, finalStatus, reason, now } = args;
    const call = await rows.findOwn(args);
    if (!call || call.status !== "in-progress" || call.answeredAt === null) return [];
    const endedAt = Math.max(args.endedAt ?? now, call.answeredAt);
    const seconds = Math.max(0, Math.ceil((endedAt - call.answeredAt) / SECOND));
    const { ours: perMinute, carriers } = await prices.get({ callId }) ?? { ours: 0, carriers: 0 };
    const { charge = "full", silent = [] } = args;
    const transfers = settled(call.transfers, { ...args, endedAt });
    const owed = owedOf(charge, { lastedMicros: endedAt - call.answeredAt, seconds, perMinute })
      + owedForLegs(charge, transfers, perMinute);
    const steps: CommittedEvent[] = [];
    for (const [at, one] of transfers.entries()) {
      if (!one.leg || one === call.transfers[at]) continue;
      steps.push(await publishStep(rows, call, at + 1, one, now));
    }
    const posted = owed > 0
      ? await rows.ledger.post({
          accountId: call.accountId, reference: reference(callId), kind: "call", amountMicros: owed, now,
        })
      : null;
    if (!posted) await rows.ledger.release(call.accountId, reference(callId));
    await settle.run({
      callId, seconds, finalStatus, endedAt,
      // Carriers bill whole minutes.
      carrierCostMicros: transfers.reduce(
        (sum, one) => sum + legCarrierCost(one), Math.ceil(seconds / 60) * carriers),
      totalMicros: posted ? -posted.amountMicros : 0,
      turns: JSON.stringify(args.turns),
      quality: args.quality ? JSON.stringify(args.quality) : null,
      transfers: JSON.stringify(withoutSilent(transfers, silent)),
      hasRecording: args.hasRecording ? 1 : 0,
    });
    const to = finalStatus === "failed" ? "failed" : "ended";
    // A call that is over has no holder.
    const left = await moveDesk(call, {
      move: "end", by: { role: "rule" }, reason: "ended", holder: null, now,
    });
    const events = [
      ...steps,
      ...(posted?.events ?? []),
      ...left.kind === "moved" ? left.events : [],
      await rows.change(call, {
        to, answeredBy: null, reason, failureReason: args.failureReason ?? null, now,
      }),
    ];
    return to === "failed" ? [...events, await rows.publishEnded(args, now)] : events;
  };
}
