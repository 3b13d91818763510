// Commands that keep a call's transfers as they are tried; the end of the call settles them.
import type { Call, CallStore } from "#features/calls/records.ts";
import { withFailure, withTransfer, type Transfer } from "#features/calls/transfers.ts";
import { CALL, callFromRow, type CallRow } from "./calls.ts";
import type { Sql } from "./sql.ts";

type Args<Name extends keyof CallStore> = Parameters<CallStore[Name]>[0];

export function callTransferCommands(sql: Sql) {
  const find = sql.prepare<object, CallRow>(
    `${CALL} WHERE c.id = @callId AND c.account_id = @accountId`);
  const set = sql.prepare("UPDATE calls SET transfers = @transfers WHERE id = @callId");
  const change = async (
    { accountId, callId }: { accountId: number; callId: number },
    next: (transfers: Call["transfers"]) => Transfer[],
  ): Promise<void> => {
    const row = await find.get({ accountId, callId });
    if (!row) return;
    await set.run({ callId, transfers: JSON.stringify(next(callFromRow(row).transfers)) });
  };
  return {
    "calls.addTransfer": (args: Args<"addTransfer">): Promise<void> =>
      change(args, (transfers) => withTransfer(transfers, args.transfer)),
    "calls.failTransfer": (args: Args<"failTransfer">): Promise<void> =>
      change(args, (transfers) => withFailure(transfers, args.failureReason, args.now)),
  };
}
