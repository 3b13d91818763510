// What happened on a call, in order: ringing, answered, each turn, functions, transfers, and why it
// ended.
import { useState } from "preact/hooks";
import { duration, instant, words, decimal } from "#ui/dashboard/kit/format.ts";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import { said } from "#ui/dashboard/kit/said.ts";
import { speakerOf, type CallRecord } from "./call-state.ts";

interface Moment {
  /** Milliseconds since the call was created. */
  at: number;
  text: string;
  note?: string;
}

interface Called {
  name: string;
}

/** Entries have both their time and their offset from answering, from which its time follows. */
const answeredAfter = (call: CallRecord): number | null => {
  const [first] = call.transcript_entries;
  if (!first) return null;
  const begun = instant(call.created_at).getTime();
  return Math.max(0, first.timestamp * 1000 - first.start_ms - begun);
};

function momentsOf(call: CallRecord): Moment[] {
  const begun = instant(call.created_at).getTime();
  const answered = answeredAfter(call);
  const moments: Moment[] = [{ at: 0, text: call.type === "web" ? "Called from a browser" : "Ringing" }];
  if (answered !== null) {
    moments.push({
      at: answered, text: "Answered",
      ...(call.answered_by === "unknown" ? {} : {
        note: call.answered_by === "human" ? "by a human" : "by a machine",
      }),
    });
  }
  for (const entry of call.transcript_entries) {
    const at = (answered ?? 0) + entry.start_ms;
    const seconds = decimal((entry.end_ms - entry.start_ms) / 1000, 1);
    moments.push({
      at, text: `${speakerOf(entry.sender, entry.author)}: ${entry.text || "…"}`,
      note: `${seconds} s${entry.interrupted ? ", interrupted" : ""}`,
    });
    for (const { name } of (entry.function_calls ?? []) as Called[]) {
      moments.push({ at, text: `Function ${name}` });
    }
  }
  for (const transfer of call.transfers) {
    moments.push({
      at: instant(transfer.started_at).getTime() - begun,
      text: `Transfer to ${transfer.transfer_to}`, note: words(transfer.status),
    });
  }
  moments.sort((one, other) => one.at - other.at);
  if (call.end_reason !== null) {
    moments.push({
      at: (answered ?? 0) + call.duration * 1000, text: `Ended: ${words(call.end_reason)}`,
      ...(call.failure_reason === null ? {} : { note: said(call.failure_reason) }),
    });
  }
  return moments;
}

/** Rendered only while it is open. */
export function TimeLine({ call }: { call: CallRecord }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Card class="calls-time-line">
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Timeline</summary>
        {isOpen && <Moments call={call} />}
      </details>
    </Card>
  );
}

function Moments({ call }: { call: CallRecord }) {
  return (
    <ol aria-label="What happened" tabIndex={0}>
      {momentsOf(call).map(({ at, text, note }, index) => (
        <li key={index}>
          <span class="calls-at">{duration(at / 1000)}</span>
          <span>{text}{note !== undefined && <small> {note}</small>}</span>
        </li>
      ))}
    </ol>
  );
}
