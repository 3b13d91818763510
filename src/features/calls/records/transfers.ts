// Transfers of a call: what its record keeps about each attempt, how each goes on, and how
// records and webhooks show them. Pure. The schema is in wire.ts, because the writer's thread uses
// this file and loads no schemas.
import { LIMITS } from "#core/limits.ts";
import { dollarsFromMicros, type Micros } from "#core/money.ts";
import { isoMicros, isoOrNull, type Instant } from "#core/system.ts";
import type { EndReason, TranscriptEntry } from "./records.ts";
import { mayStep, WHY_NOT_TAKEN, type TransferOutcome, type WarmStage } from "./warm-stages.ts";

export const TRANSFER_TYPES = [
  "call_transfer", "warm_call_transfer", "assistant_transfer",
] as const;
type TransferType = (typeof TRANSFER_TYPES)[number];
export type LineTransfer = Exclude<TransferType, "assistant_transfer">;

export const TRANSFER_STATUSES = ["in-progress", "completed", "failed"] as const;

/** The leg to the colleague of a warm transfer. */
interface WarmLeg {
  stage: WarmStage;
  /** Null: nobody has answered. */
  answeredAt: Instant | null;
  carrierMicrosPerMinute: Micros;
  /** File name; null: it is not recorded. */
  recordingFile: string | null;
}

export interface Transfer {
  type: TransferType;
  /** A telephone number or SIP address; for an assistant, its name. */
  to: string;
  /** Null: the transfer is to a line. */
  assistantUuid: string | null;
  status: (typeof TRANSFER_STATUSES)[number];
  /** A sentence; null: it has not failed. */
  failureReason: string | null;
  createdAt: Instant;
  /** Null: still in progress. */
  finishedAt: Instant | null;
  /** Absent: as the status says. */
  outcome?: TransferOutcome | null;
  /** Absent: the carrier transfers the caller, or another assistant takes over. */
  leg?: WarmLeg;
}

/** The file of a leg, named after that of its call, which is a uuid; legs count from 1. */
export const legFile = (callFile: string, number: number): string =>
  callFile.replace(/(?=\.\w+$)/, `-${number}`);

/** The file of the call that a leg's file belongs to; a call's own file stays as it is. */
export const callFileOf = (file: string): string => file.replace(/^(.{36})-\d+/, "$1");

/** The recordings of legs that somebody answered. */
export const legRecordingsOf = (transfers: Transfers): string[] =>
  transfers.flatMap(({ leg }) =>
    leg && leg.answeredAt !== null && leg.recordingFile !== null ? [leg.recordingFile] : []);

/** All recordings of a call: its own and those of its legs, which are not kept without it. */
export const recordingsOf = ({ recordingFile, transfers }: {
  recordingFile: string | null; transfers: Transfers;
}): string[] => recordingFile === null ? [] : [recordingFile, ...legRecordingsOf(transfers)];

/** Where a recording may lie: as it was made, and compressed. */
export const placesOf = (recording: string): [wav: string, opus: string] =>
  [`recordings/${recording}`, `recordings/${recording.slice(0, -".wav".length)}.ogg`];

export const NOBODY_TOOK_IT = "Nobody took the call.";
export const TAKEN_OVER = "Somebody else has taken the call over.";
export const ASSISTANT_GONE = "That assistant no longer exists.";

type Transfers = readonly Transfer[];

const failed = (transfer: Transfer, failureReason: string, now: Instant): Transfer =>
  ({ ...transfer, status: "failed", failureReason, finishedAt: now });

/** Adds a transfer. A caller who asks again is still here, so the one before it has failed. */
export const withTransfer = (transfers: Transfers, added: Transfer): Transfer[] => {
  const before = transfers.map((one) => one.status === "in-progress" && !one.leg
    ? failed(one, "Another transfer was asked for before this one was made.", added.createdAt)
    : one);
  // Those with a leg of their own are kept: they are billed at the end of the call, and are few. No
  // number changes, since a leg in progress is stepped by its number.
  const isFull = before.length >= LIMITS.callTransfersMax;
  const replaced = isFull ? before.findLastIndex(({ leg }) => !leg) : -1;
  return replaced === -1 ? [...before, added] : before.with(replaced, added);
};

/** Marks the newest cold transfer to a line as failed, even if the carrier reports it late. */
export function withFailure(
  transfers: Transfers, failureReason: string, now: Instant,
): Transfer[] {
  const at = transfers.findLastIndex(({ type, leg }) => type !== "assistant_transfer" && !leg);
  return transfers.map((one, index) =>
    index === at && one.status !== "failed" ? failed(one, failureReason, now) : one);
}

/** Steps the transfer with that number (counted from 1); null: the table does not allow it. */
export function stepped(
  transfers: Transfers, number: number,
  { stage, outcome, failureReason, now }: {
    stage: WarmStage; outcome: TransferOutcome | null; failureReason: string | null; now: Instant;
  },
): Transfer[] | null {
  const before = transfers[number - 1];
  if (!before?.leg || !mayStep(before.leg.stage, stage)) return null;
  const leg = {
    ...before.leg, stage, answeredAt: stage === "briefing" ? now : before.leg.answeredAt,
  };
  const isTaken = outcome === "completed";
  const after: Transfer = stage === "over"
    ? {
        ...before, leg, outcome, status: isTaken ? "completed" : "failed", finishedAt: now,
        failureReason: isTaken ? null : failureReason,
      }
    : { ...before, leg };
  return transfers.with(number - 1, after);
}

/** How long a transfer's leg lasted, in started seconds; 0: nobody answered. */
export function legSeconds({ leg, finishedAt }: Transfer): number {
  if (!leg || leg.answeredAt === null || finishedAt === null) return 0;
  return Math.max(0, Math.ceil((finishedAt - leg.answeredAt) / 1_000_000));
}

/** What the carrier charges for the leg, per started minute. */
export const legCarrierCost = (transfer: Transfer): Micros =>
  Math.ceil(legSeconds(transfer) / 60) * (transfer.leg?.carrierMicrosPerMinute ?? 0);

/** The transfers without the recordings among these files, which are empty. */
export const withoutSilent = (transfers: Transfers, silent: readonly string[]): Transfer[] =>
  transfers.map((one) => one.leg && silent.includes(one.leg.recordingFile ?? "")
    ? { ...one, leg: { ...one.leg, recordingFile: null } }
    : one);

/** Gives transfers that are in progress when the call ends their outcome. */
export const settled = (
  transfers: Transfers,
  { reason, failureReason, endedAt }: {
    reason: EndReason; failureReason?: string | null; endedAt: Instant;
  },
): Transfer[] =>
  transfers.map((one) => {
    if (one.status !== "in-progress") return one;
    if (one.leg) return settledLeg(one, one.leg, { failureReason: failureReason ?? null, endedAt });
    if (reason === "transferred") return { ...one, status: "completed", finishedAt: endedAt };
    return failed(one, failureReason ?? "The call ended before the transfer was made.", endedAt);
  });

function settledLeg(
  transfer: Transfer, last: WarmLeg,
  { failureReason, endedAt }: { failureReason: string | null; endedAt: Instant },
): Transfer {
  const leg = { ...last, stage: "over" } as const;
  // A call that a crash ended lasted until its last beat, which may precede the leg's answer.
  const finishedAt = Math.max(endedAt, leg.answeredAt ?? 0);
  if (last.stage === "connected") {
    return { ...transfer, leg, status: "completed", outcome: "completed", finishedAt };
  }
  return {
    ...failed(transfer, failureReason ?? WHY_NOT_TAKEN.caller_left, finishedAt), leg,
    outcome: failureReason === null ? "caller_left" : "failed",
  };
}

/** Null: it is in progress. */
const outcomeOf = ({ status, outcome }: Transfer): TransferOutcome | null => {
  if (outcome) return outcome;
  return status === "in-progress" ? null : status;
};

export type TransferLine = Pick<TranscriptEntry, "speaker" | "text" | "startMs">
  & Partial<Pick<TranscriptEntry, "author" | "transfer">>;

/** What was said on the leg to the colleague; `answeredAt`: the call's. */
function talkOf(lines: readonly TransferLine[], number: number, answeredAt: Instant) {
  const own = lines.filter(({ transfer, text }) => transfer === number && text !== "");
  return {
    transcript: own.length === 0 ? null : own.map(({ speaker, text, startMs }) => ({
      text,
      type: "transcript" as const,
      sender: speaker === "assistant" ? "bot" as const : "human" as const,
      timestamp: Math.round(answeredAt / 1000 + startMs) / 1000,
    })),
    formatted_transcript: own.map(({ speaker, text }) =>
      `${speaker === "assistant" ? "AI" : "Colleague"}: ${text}`).join("\n"),
  };
}

/** As `TransferSchema` has it; `lines`: the call's transcript; `urlOf`: the link of a recording. */
export const wireTransfers = (
  { transfers, answeredAt }: { transfers: Transfers; answeredAt: Instant | null },
  lines: readonly TransferLine[], urlOf: (file: string) => string | null,
) =>
  transfers.map((transfer, index) => ({
    id: index + 1,
    type: transfer.type,
    kind: transfer.leg ? "warm" as const : "cold" as const,
    status: transfer.status,
    outcome: outcomeOf(transfer),
    stage: transfer.leg?.stage ?? null,
    failure_reason: transfer.failureReason,
    to: transfer.to,
    transfer_to: transfer.to,
    assistant_id: transfer.assistantUuid,
    duration: legSeconds(transfer),
    carrier_cost: dollarsFromMicros(legCarrierCost(transfer)),
    recording_url: legUrl(transfer, urlOf),
    ...talkOf(lines, index + 1, answeredAt ?? transfer.createdAt),
    started_at: isoMicros(transfer.createdAt),
    ended_at: isoOrNull(transfer.finishedAt),
    created_at: isoMicros(transfer.createdAt),
    finished_at: isoOrNull(transfer.finishedAt),
  }));

/** The link exists once the leg was answered and is over. */
const legUrl = (
  { leg, finishedAt }: Transfer, urlOf: (file: string) => string | null,
): string | null => {
  if (!leg || leg.answeredAt === null || finishedAt === null) return null;
  return leg.recordingFile === null ? null : urlOf(leg.recordingFile);
};
