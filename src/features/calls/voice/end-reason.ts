// Maps the cause of a leg's end to the reason of its call's end. Used by channel.ts.
import type { LegEndCause } from "#providers/carriers/port.ts";
import type { EndReason } from "#features/calls/records/records.ts";

export function reasonOf(cause: LegEndCause): EndReason {
  switch (cause) {
    case "media_timeout":
      return "media_timeout";
    case "far_hung_up":
      return "customer_hung_up";
    case "we_hung_up":
      return "assistant_ended";
    case "transferred":
      return "transferred";
    case "rejected":
      return "rejected";
    case "busy":
      return "busy";
    case "no_answer":
      return "no_answer";
    case "failed":
      return "carrier_failed";
  }
}
