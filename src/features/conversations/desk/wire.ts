// The desk in the contract's JSON: who has a conversation and who wrote what.
import { Type } from "@sinclair/typebox";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { plainSeconds } from "#core/system.ts";
import type { Desk } from "./desk.ts";

export const AuthorSchema = Type.Object({
  id: Type.String(about("The author's id, the same everywhere.", "key:3")),
  name: Type.String(about("Their name, which visitors see too.", "Ana")),
}, named("Author", "A member of the account."));

export const DeskState = OneOf(["assistant", "waiting", "person"], about(
  "Who has it: assistant; waiting (a person was requested, the assistant still answers); or person "
  + "(the assistant is silent).",
  "waiting"));

const DESK = {
  desk: DeskState,
  desk_holder: Nullable(AuthorSchema, about("The person who has it; null if nobody, or nobody in "
    + "particular.")),
  desk_reason: Nullable(Type.String(about(
    "Why it changed hands last: asked, tool_failures, unanswered, words, callback, taken_over, "
    + "assigned, handed_back, lost (its person may no longer answer) or ended; null if only the "
    + "assistant ever had it.",
    "asked"))),
  desk_at: Nullable(Type.String(about(
    "When this state began, in UTC; null likewise.", "2026-03-02 09:30:00"))),
};
export const DeskFields = DESK;
export const DeskSchema = Type.Object(DESK, named("Desk", "Who has a conversation."));

export const AwaySchema = Nullable(Type.Object({
  message: Type.String(about("The team's message; empty if none.", "We are back on Monday.")),
  opens_at: Nullable(Type.String(about(
    "When somebody will be back, in UTC; null if not within the next 60 days.",
    "2026-11-23T08:00:00.000000Z"))),
  callback: Type.Boolean(about("Whether the visitor can request a callback.")),
}, named("Away", "What a visitor who asks for a person outside office hours is told.")), about(
  "What applies outside office hours; null within them, or if the assistant has none."));

export const deskItem = ({ state, holder, reason, at }: Desk) => ({
  desk: state,
  desk_holder: holder,
  desk_reason: reason,
  desk_at: at === null ? null : plainSeconds(at),
});
