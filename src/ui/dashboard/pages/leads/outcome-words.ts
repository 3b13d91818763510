// How a lead's last call ended, in words.
const WORDS: Record<string, string> = {
  answered: "Answered",
  goal_missed: "Goal not reached",
  voicemail: "Answering machine",
  busy: "Busy",
  no_answer: "No answer",
  carrier_failed: "Carrier failed",
  failed: "Failed",
  interrupted: "Interrupted",
};

export const outcomeWords = (outcome: string | null): string => WORDS[outcome ?? ""] ?? "–";
