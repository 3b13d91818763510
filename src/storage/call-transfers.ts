// Commands that keep a call's transfers as they are tried; the end of the call settles them.
import type { Call, CallStore } from "#features/calls/records.ts";
import { withFailure, withTransfer, type Transfer } from "#features/calls/transfers.ts";
import { CALL, callFromRow, type CallRow } from "./calls.ts";
import type { Db } from "./engines/sqlite/database.ts";

type Args<Name extends keyof CallStore> = Parameters<CallStore[Name]>[0];

export function callTransferCommands(db: Db) {
  const find = db.prepare<[object], CallRow>(`${CALL} WHERE c.id = @callId`);
  const set = db.prepare("UPDATE calls SET transfers = @transfers WHERE id = @callId");
  const change = (callId: number, next: (transfers: Call["transfers"]) => Transfer[]): void => {
    const row = find.get({ callId });
    if (!row) return;
    set.run({ callId, transfers: JSON.stringify(next(callFromRow(row).transfers)) });
  };
  return {
    "calls.addTransfer": ({ callId, transfer }: Args<"addTransfer">): void =>
      change(callId, (transfers) => withTransfer(transfers, transfer)),
    "calls.failTransfer": ({ callId, failureReason, now }: Args<"failTransfer">): void =>
      change(callId, (transfers) => withFailure(transfers, failureReason, now)),
  };
}
