// The stages of a warm transfer as one table, and what may become of it. Pure; the media thread
// goes through them, and the record takes no step that is not in the table.
export const WARM_STAGES = [
  "announcing", "dialling", "ringing", "briefing", "asking", "connected", "over",
] as const;
export type WarmStage = (typeof WARM_STAGES)[number];

/** From each stage to those that may follow. Whatever comes late or twice changes nothing. */
const TRANSITIONS: Record<WarmStage, readonly WarmStage[]> = {
  announcing: ["dialling", "over"],
  dialling: ["ringing", "briefing", "over"],
  ringing: ["briefing", "over"],
  briefing: ["asking", "connected", "over"],
  asking: ["connected", "over"],
  connected: ["over"],
  over: [],
};

export const mayStep = (from: WarmStage, to: WarmStage): boolean =>
  TRANSITIONS[from].includes(to);

/** `completed`: the two have talked, or the carrier took the caller on. */
export const TRANSFER_OUTCOMES = [
  "completed", "declined", "busy", "no_answer", "voicemail", "timed_out", "caller_left", "refused",
  "failed",
] as const;
export type TransferOutcome = (typeof TRANSFER_OUTCOMES)[number];

/** Why nobody took a transfer, as a sentence for the owner and for the model. */
export const WHY_NOT_TAKEN: Record<Exclude<TransferOutcome, "completed" | "refused">, string> = {
  declined: "The colleague did not take the call.",
  busy: "The colleague's line was busy.",
  no_answer: "The colleague did not answer.",
  voicemail: "The colleague's voicemail answered.",
  timed_out: "The colleague answered, but did not say whether to take the call.",
  caller_left: "The caller hung up before the colleague took the call.",
  failed: "The colleague could not be called.",
};
