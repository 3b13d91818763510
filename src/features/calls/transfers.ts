// Transfers of a call: what its record keeps of each that was tried, what becomes of them, and how
// the record and the webhook after the call show them. Pure.
import { Type, type Static } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import { about, named, Nullable } from "#core/schema.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { EndReason } from "./records.ts";

const TRANSFER_TYPES = [
  "call_transfer", "warm_call_transfer", "assistant_transfer",
] as const;
type TransferType = (typeof TRANSFER_TYPES)[number];
export type LineTransfer = Exclude<TransferType, "assistant_transfer">;

const TRANSFER_STATUSES = ["in-progress", "completed", "failed"] as const;

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

export const TransferSchema = Type.Object({
  id: Type.Integer(about("Its place among the call's transfers, counted from 1.", 1)),
  type: Type.Union(TRANSFER_TYPES.map((one) => Type.Literal(one)), about(
    "The function that asked for it.", "call_transfer")),
  status: Type.Union(TRANSFER_STATUSES.map((one) => Type.Literal(one)), about(
    "`completed`: the carrier took the caller on, or the other assistant took over; whether somebody "
      + "picked up is known only where the carrier reports it.", "completed")),
  failure_reason: Nullable(Type.String(), about(
    "Why it failed; null: it did not.", "The far end answered 603.")),
  transfer_to: Type.String(about(
    "Telephone number or SIP address; the name of an assistant.", "+15550111")),
  assistant_id: Nullable(Type.String(), about(
    "The uuid of the assistant it went to; null: to a line.", null)),
  duration: Type.Integer(about(
    "Always 0: the talk that follows is between the carrier's lines.", 0)),
  carrier_cost: Type.Number(about("Always 0: the talk that follows is on the carrier's bill.", 0)),
  transcript: Nullable(
    Type.Array(Type.String()), about("Always null: nothing of the talk is heard here.", null)),
  formatted_transcript: Type.String(about("Always empty, for the same reason.", "")),
  created_at: Type.String(about("When it was asked for.", "2026-03-02T10:01:00.000000Z")),
  finished_at: Nullable(Type.String(), about(
    "When its outcome was known; null: it is in progress.", "2026-03-02T10:01:14.000000Z")),
}, named("Transfer", "A transfer that was tried."));

export const wireTransfers = (transfers: Transfers): Static<typeof TransferSchema>[] =>
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
