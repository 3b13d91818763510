// The desk of a call in the contract's JSON: who has the call while it is in progress.
import { Type } from "@sinclair/typebox";
import type { Desk } from "#features/conversations/desk/desk.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { plainSeconds } from "#core/system.ts";

export const CallAuthorSchema = Type.Object({
  id: Type.String(about("The member's id, the same everywhere.", "key:3")),
  name: Type.String(about("Their name.", "Ana")),
}, named("Operator", "A member of the account who takes part in a call."));

const DESK = {
  desk: OneOf(["assistant", "waiting", "person"], about(
    "Who has the call: the assistant, or a person with a microphone. Calls never wait.", "person")),
  desk_holder: Nullable(CallAuthorSchema, about("The person who has it; null if nobody.")),
  desk_reason: Nullable(Type.String(about(
    "Why it changed hands last: taken_over, handed_back, lost (the person was disconnected for too "
    + "long) or ended; null if only the assistant ever had it.",
    "taken_over"))),
  desk_at: Nullable(Type.String(about("When this state began, in UTC; null likewise.",
    "2026-03-02 09:30:00"))),
};
export const CallDeskFields = DESK;
export const CallDeskSchema = Type.Object(DESK, named("CallDesk", "Who has a call."));

export const callDeskItem = ({ state, holder, reason, at }: Desk) => ({
  desk: state,
  desk_holder: holder,
  desk_reason: reason,
  desk_at: at === null ? null : plainSeconds(at),
});
