// Commands that keep a call's transfers as they are tried; the end of the call settles them.
import type { Call, CallStore } from "#features/calls/records.ts";
import { withFailure, withTransfer, type Transfer } from "#features/calls/transfers.ts";
import { CALL, callFromRow, type CallRow } from "./calls.ts";
import type { Sql } from "./sql.ts";

type Args<Name extends keyof CallStore> = Parameters<CallStore[Name]>[0];

export function callTransferCommands(sql: Sql) {
  const find = sql.prepare<object, CallRow>(`${CALL} WHERE c.id = @callId`);
  const set = sql.prepare("UPDATE calls SET transfers = @transfers WHERE id = @callId");
  const change = async (
    callId: number, next: (transfers: Call["transfers"]) => Transfer[],
  ): Promise<void> => {
    const row = await find.get({ callId });
    if (!row) return;
    await set.run({ callId, transfers: JSON.stringify(next(callFromRow(row).transfers)) });
  };
  return {
    "calls.addTransfer": ({ callId, transfer }: Args<"addTransfer">): Promise<void> =>
      change(callId, (transfers) => withTransfer(transfers, transfer)),
    "calls.failTransfer": ({ callId, failureReason, now }: Args<"failTransfer">): Promise<void> =>
      change(callId, (transfers) => withFailure(transfers, failureReason, now)),
  };
}
