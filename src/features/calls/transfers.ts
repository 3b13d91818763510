// Transfers of a call: what its record keeps of each that was tried, what becomes of them, and how
// records and webhooks show them. Pure. The schema is in wire.ts, because the writer's thread uses
// this file and loads no schemas.
import { LIMITS } from "#core/limits.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { EndReason } from "./records.ts";

export const TRANSFER_TYPES = [
  "call_transfer", "warm_call_transfer", "assistant_transfer",
] as const;
type TransferType = (typeof TRANSFER_TYPES)[number];
export type LineTransfer = Exclude<TransferType, "assistant_transfer">;

export const TRANSFER_STATUSES = ["in-progress", "completed", "failed"] as const;

export interface Transfer {
  type: TransferType;
  /** A telephone number or SIP address; for an assistant, its name. */
  to: string;
  /** Null: to no assistant. */
  assistantUuid: string | null;
  status: (typeof TRANSFER_STATUSES)[number];
  /** A sentence; null: it has not failed. */
  failureReason: string | null;
  createdAt: Instant;
  /** Null: still in progress. */
  finishedAt: Instant | null;
}

export const NOBODY_TOOK_IT = "Nobody took the call.";

type Transfers = readonly Transfer[];

const failed = (transfer: Transfer, failureReason: string, now: Instant): Transfer =>
  ({ ...transfer, status: "failed", failureReason, finishedAt: now });

/** Whoever asks again is still here, so what was asked for before has come to nothing. */
export const withTransfer = (transfers: Transfers, added: Transfer): Transfer[] => {
  const before = transfers.map((one) => one.status === "in-progress"
    ? failed(one, "Another transfer was asked for before this one was made.", added.createdAt)
    : one);
  return [...before, added].slice(-LIMITS.callTransfersMax);
};

/** The newest that left the call for a line has failed, also where the carrier reports it late. */
export function withFailure(
  transfers: Transfers, failureReason: string, now: Instant,
): Transfer[] {
  const at = transfers.findLastIndex(({ type }) => type !== "assistant_transfer");
  return transfers.map((one, index) =>
    index === at && one.status !== "failed" ? failed(one, failureReason, now) : one);
}

/** The call is over: what was in progress has an outcome. */
export const settled = (
  transfers: Transfers,
  { reason, failureReason, endedAt }: {
    reason: EndReason; failureReason?: string | null; endedAt: Instant;
  },
): Transfer[] =>
  transfers.map((one) => {
    if (one.status !== "in-progress") return one;
    if (reason === "transferred") return { ...one, status: "completed", finishedAt: endedAt };
    return failed(one, failureReason ?? "The call ended before the transfer was made.", endedAt);
  });

/** As `TransferSchema` has it. */
export const wireTransfers = (transfers: Transfers) =>
  transfers.map((transfer, index) => ({
    id: index + 1,
    type: transfer.type,
    status: transfer.status,
    failure_reason: transfer.failureReason,
    transfer_to: transfer.to,
    assistant_id: transfer.assistantUuid,
    duration: 0,
    carrier_cost: 0,
    transcript: null,
    formatted_transcript: "",
    created_at: isoMicros(transfer.createdAt),
    finished_at: transfer.finishedAt === null ? null : isoMicros(transfer.finishedAt),
  }));
