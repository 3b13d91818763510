// How a transcript is presented: the names of its speakers on the wire, and as lines of text.
// Pure; the writer's thread uses it too.
import type { TranscriptEntry } from "./records.ts";

type Spoken = Pick<TranscriptEntry, "speaker">
  & Partial<Pick<TranscriptEntry, "author" | "transfer">>;
/** One utterance, or one message of a chat. */
export type Line = Spoken & Pick<TranscriptEntry, "text">;

/** Who says a line, for programs: on the leg of a warm transfer the other side is the colleague. */
export function senderOf(
  { speaker, transfer }: Spoken,
): "bot" | "human" | "operator" | "colleague" {
  if (speaker === "assistant") return "bot";
  if (speaker === "operator") return "operator";
  return transfer === undefined ? "human" : "colleague";
}

/** The same for people. */
function nameOf({ author, speaker, transfer }: Spoken): string {
  if (speaker === "operator") return author?.name ?? "Operator";
  if (transfer === undefined) return speaker === "assistant" ? "AI" : "Customer";
  return speaker === "assistant" ? "AI (to the colleague)" : "Colleague";
}

/** `AI: …`, `Customer: …` and `<name of a person of the account>: …`, a line each. */
export const transcriptText = (entries: readonly Line[]): string =>
  entries
    .filter(({ text }) => text !== "")
    .map((line) => `${nameOf(line)}: ${line.text}`)
    .join("\n");
