// The two functions with which a model books appointments. Whatever arguments the model writes, the
// result is an object that it can act on.
import { hash } from "node:crypto";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { TurnContext } from "#features/assistants/turn-context.ts";
import { isDay } from "#core/days.ts";
import { NO_FUNCTIONS, type FunctionSource } from "#engine/functions.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import type { Calendars, Person } from "./calendar.ts";
import { localIso, spokenTime } from "./slots.ts";

export const CHECK_AVAILABILITY = "check_availability";
export const BOOK_APPOINTMENT = "book_appointment";

const DAYS_DEFAULT = 7;
const DAYS_MAX = 31;
const ALTERNATIVES = 5;
const TEXT_CHARS_MAX = 500;

const text = (description: string) => ({ type: "string", description });

const FUNCTIONS: ModelFunction[] = [
  {
    name: CHECK_AVAILABILITY,
    description: "Lists free appointment times. Call it before you offer any time.",
    parameters: {
      type: "object",
      properties: {
        date: text("First day to look at, as YYYY-MM-DD; today when left out"),
        days: { type: "integer", description: "How many days from then on, 7 when left out" },
      },
      additionalProperties: false,
    },
  },
  {
    name: BOOK_APPOINTMENT,
    description: "Books one of the free times for the person, once they have agreed to it.",
    parameters: {
      type: "object",
      properties: {
        start: text("Start of a free time exactly as check_availability gave it"),
        name: text("Name of the person"),
        email: text("E-mail address, if known"),
        phone: text("Phone number, if known"),
        notes: text("What it is about, if known"),
      },
      required: ["start", "name"],
      additionalProperties: false,
    },
  },
];

const textOf = (value: unknown): string =>
  typeof value === "string" ? value.trim().slice(0, TEXT_CHARS_MAX) : "";
const orNull = (value: unknown): string | null => textOf(value) || null;

type Result = Record<string, unknown>;
type Arguments = Record<string, unknown>;

async function checkAvailability(
  calendars: Calendars,
  assistant: Assistant,
  { date, days }: Arguments,
): Promise<Result> {
  const asked = textOf(date);
  if (asked !== "" && !isDay(asked)) {
    return { error: "The argument date must be a day as YYYY-MM-DD." };
  }
  const wanted = Number.isInteger(days) ? Number(days) : DAYS_DEFAULT;
  const count = Math.min(Math.max(wanted, 1), DAYS_MAX);
  const free = await calendars.availability(assistant, { date: asked || null, days: count });
  return {
    time_zone: free.timeZone,
    free_times: free.slots,
    ...(free.slots.length === 0 ? { note: "Nothing is free then; try later days." } : {}),
  };
}

async function bookAppointment(
  calendars: Calendars,
  assistant: Assistant,
  bookingKey: string,
  { start, name, email, phone, notes }: Arguments,
): Promise<Result> {
  const person: Person = {
    name: textOf(name), email: orNull(email), phone: orNull(phone), notes: orNull(notes),
  };
  if (person.name === "") return { error: "The argument name is missing." };
  const wanted = textOf(start);
  const outcome = await calendars.book(assistant, { ...person, start: wanted, bookingKey });
  if (outcome.kind === "booked") {
    const zone = calendars.zoneOf(await calendars.open(assistant), assistant);
    const { id, start: begins, end } = outcome.appointment;
    return {
      booked: true,
      appointment_id: id,
      start: localIso(begins, zone),
      end: localIso(end, zone),
      label: spokenTime(begins, zone),
    };
  }
  if (outcome.kind === "invalid") {
    return { error: "The argument start must be a time as check_availability gave it." };
  }
  if (outcome.kind === "key_reused") return { error: "This call has booked another time." };
  const date = wanted.slice(0, "YYYY-MM-DD".length);
  const { slots } = await calendars.availability(assistant, { date, days: DAYS_DEFAULT });
  return {
    error: outcome.kind === "taken"
      ? "That time has just been taken."
      : "No appointment can begin at that time.",
    free_times: slots.slice(0, ALTERNATIVES),
  };
}

/** For an assistant that has the calendar among its tools. */
export function calendarFunctions(
  calendars: Calendars, turn: Pick<TurnContext, "assistant" | "scope">,
): FunctionSource {
  const { assistant } = turn;
  if (!assistant.settings.tools.some(({ type }) => type === "calendar")) return NO_FUNCTIONS;
  return {
    offered: FUNCTIONS,
    call: ({ name, arguments: args }) => {
      const digest = hash("sha256", JSON.stringify(args), "hex");
      return callCalendar(calendars, assistant, {
        name, arguments: args, bookingKey: `${turn.scope}:${digest}`,
      });
    },
  };
}

/** `bookingKey`: the same whenever the call is repeated, so that it books once. */
export function callCalendar(
  calendars: Calendars,
  assistant: Assistant,
  call: { name: string; arguments: Arguments; bookingKey: string },
): Promise<Result> {
  return call.name === CHECK_AVAILABILITY
    ? checkAvailability(calendars, assistant, call.arguments)
    : bookAppointment(calendars, assistant, call.bookingKey, call.arguments);
}
