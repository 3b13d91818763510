// The desk in the contract's JSON: who has a conversation and who wrote what.
import { Type } from "@sinclair/typebox";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { plainSeconds } from "#core/system.ts";
import type { Desk } from "./desk.ts";

export const AuthorSchema = Type.Object({
  id: Type.String(about("Who it is, the same wherever they write.", "key:3")),
  name: Type.String(about("Their name, which visitors see too.", "Ana")),
}, named("Author", "A person of the account."));

export const DeskState = OneOf(["assistant", "waiting", "person"], about(
  "Who has it: the assistant; the assistant while a person has been asked for (waiting); "
  + "or a person, while the assistant is silent.", "waiting"));

const DESK = {
  desk: DeskState,
  desk_holder: Nullable(AuthorSchema, about("The person who has it; null: none, or none named.")),
  desk_reason: Nullable(Type.String(about(
    "Why it is there: asked, tool_failures, unanswered, words, callback, taken_over, assigned, "
    + "handed_back or ended; null: it never was with anyone but the assistant.", "asked"))),
  desk_at: Nullable(Type.String(about(
    "When this state began, in UTC; null likewise.", "2026-03-02 09:30:00"))),
};
export const DeskFields = DESK;
export const DeskSchema = Type.Object(DESK, named("Desk", "Who has a conversation."));

export const AwaySchema = Nullable(Type.Object({
  message: Type.String(about("What the team says; empty: nothing.", "We are back on Monday.")),
  opens_at: Nullable(Type.String(about(
    "When somebody will be there, in UTC; null: on none of the next 60 days.",
    "2026-11-23T08:00:00.000000Z"))),
  callback: Type.Boolean(about("Whether the visitor may leave how to be reached.")),
}, named("Away", "What who asks for a person outside office hours is told.")), about(
  "Outside office hours; null: people are there, or the assistant has no office hours."));

export const deskItem = ({ state, holder, reason, at }: Desk) => ({
  desk: state,
  desk_holder: holder,
  desk_reason: reason,
  desk_at: at === null ? null : plainSeconds(at),
});
