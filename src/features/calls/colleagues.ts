// What a model is told about colleagues in its call: what they said to the customer, what they
// whispered to it, and that the call is its own again. Pure; used by replies.ts and persons.ts.
import { LIMITS } from "#core/limits.ts";
import type { Author } from "#events/events.ts";
import type { SpeakUp } from "./voice/turns/taking-part.ts";

/** Models know two speakers: a colleague's words are put on the assistant's side, and marked. */
export const colleagueSaid = ({ name }: Pick<Author, "name">, text: string): string => text === ""
  ? `[${name}, a colleague, spoke with the customer; what they said was not understood.]`
  : `[${name}, a colleague]: ${text}`;

export const whispered = ({ name }: Author, text: string): string =>
  `[${name}, a colleague, whispers to you alone: ${text}]`;

/** Asks for a reply to something other than the customer's words. */
export const SPEAK_UP: Record<SpeakUp, string> = {
  hint: "[Act now, in your own words, on what your colleague has just whispered to you.]",
  handed_back: "[Your colleague has handed the call back to you. Go on in one short sentence, from "
    + "what they and the customer said.]",
  lost: "[Your colleague's connection was lost, and the call is yours again. Tell the customer so in "
    + "one short sentence, and go on from what was said.]",
};

/** Instructions for a call in which a colleague has taken part. */
export const COLLEAGUES = "What begins like \"[Name, a colleague]:\" was said to the customer by a "
  + "person of the team. Go by it. What a colleague whispers to you is for you alone: the customer "
  + "does not hear it. Act on it in your own words; never read it out, and never mention that "
  + "somebody whispers. Never begin words of your own like that, and never speak in a person's name.";

/** Keeps a line for a model that hears by itself, which reads it with its next prompt. */
export function keepUntold(
  { isRealtime, untold }: { isRealtime: boolean; untold: string[] }, line: string,
): void {
  if (!isRealtime) return;
  untold.push(line);
  if (untold.length > LIMITS.historyMessagesMax) untold.shift();
}
