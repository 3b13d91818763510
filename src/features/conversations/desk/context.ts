// What a model reads about the desk: which messages are colleagues', and whether the visitor waits
// for one. Pure; used by answering.ts.
import type { HistoryMessage } from "#engine/history.ts";
import type { Away, DeskState } from "#events/events.ts";
import type { Message } from "#features/conversations/records.ts";

/** Models know two roles: a colleague's messages get the assistant's, marked as the colleague's. */
export const asModelReads = (
  { role, author, content, functionCalls }: Message,
): HistoryMessage => role === "operator"
  ? {
      role: "assistant", functionCalls,
      content: `[${author?.name ?? ""}, a colleague]: ${content}`,
    }
  : { role, content, functionCalls };

const COLLEAGUES = "Messages that begin like \"[Name, a colleague]:\" were written by a person of the "
  + "team, not by you. Go by what they said. Never begin a message of your own like that, and never "
  + "speak in a person's name.";
const WAITING = "A person of the team has been asked to join this conversation and has not come "
  + "yet. Go on helping as well as you can; when asked, say that somebody will answer here.";

/** What a visitor who asks for a person outside office hours should hear. */
export const sayAway = ({ message, opens_at: opensAt, callback }: Away): string => [
  "Nobody of the team is there now.",
  ...message === "" ? [] : [`The team says: ${message}`],
  ...opensAt === null ? [] : [`Somebody will be there from ${opensAt} (UTC).`],
  ...callback ? ["The visitor can leave a phone number or mail address in the form below."] : [],
].join(" ");

export function deskInstructions(
  state: DeskState, messages: Message[], away: Away | null,
): string {
  const hasColleague = messages.some(({ role }) => role === "operator");
  const waiting = away === null ? WAITING : `${WAITING} ${sayAway(away)}`;
  return [...hasColleague ? [COLLEAGUES] : [], ...state === "waiting" ? [waiting] : []].join("\n\n");
}
