// Appointments at Cal.com: the functions with which a model finds and books times, for assistants
// with a calendar_integration. A booking is journaled like a tool call: it is never sent twice.
import { hash } from "node:crypto";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { CalendarIntegration } from "#features/assistants/calcom-keys.ts";
import type { TurnContext } from "#features/assistants/turn-context.ts";
import { isDay } from "#core/days.ts";
import type { Logger } from "#core/logger.ts";
import { isoMicros, type Instant, type System } from "#core/system.ts";
import { dayAt } from "#core/zones.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import { checkArguments, modelFunctionOf, type Value } from "#features/tools/arguments.ts";
import { idempotencyKey, type SendToEndpoint, type ToolJournal } from "#features/tools/invocation.ts";
import type { ToolParameter } from "#features/tools/tools.ts";
import {
  BOOKINGS_VERSION, createAsk, createOwnerOf, failureOf, SLOTS_VERSION, urlOf, type Ask, type Desk,
} from "./calcom-server.ts";
import { BOOK_APPOINTMENT, CHECK_AVAILABILITY } from "./functions.ts";
import { localIso, readLocal, spokenTime, startOfDay } from "./slots.ts";

const DAYS_DEFAULT = 7;
const DAYS_MAX = 31;
const TIMES_MAX = 50;

type Result = Record<string, unknown>;
type Arguments = Record<string, unknown>;

interface CalcomOptions {
  /** Server for the endpoint `us`. */
  url: string;
  send: SendToEndpoint;
  journal: ToolJournal;
  keyOf(assistant: Assistant, tool: CalendarIntegration): string | null;
  system: System;
  log: Logger;
}

const CHECK: ToolParameter[] = [
  {
    name: "date", type: "string", required: false,
    description: "First day to look at, as YYYY-MM-DD; today when left out",
  },
  {
    name: "days", type: "number", required: false,
    description: `How many days from then on, ${DAYS_DEFAULT} when left out`,
  },
];
const BOOK: ToolParameter[] = [
  {
    name: "start", type: "string",
    description: `Start of a free time exactly as ${CHECK_AVAILABILITY} gave it`,
  },
  { name: "name", type: "string", description: "Name of the person" },
  {
    name: "email", type: "string", required: false,
    description: "E-mail address, which the confirmation goes to; ask for it",
  },
  { name: "phone", type: "string", required: false, description: "Phone number, if known" },
  { name: "notes", type: "string", required: false, description: "What it is about, if known" },
];
const OWN_FIELDS = new Set(BOOK.map(({ name }) => name));
const LIST_TYPES = new Set(["multiselect", "checkbox", "multiemail"]);

type BookingField = NonNullable<CalendarIntegration["calcom_booking_fields"]>[number];

/** One of the event's own booking questions, as a parameter that the model fills in. */
function parameterOf(field: BookingField): ToolParameter {
  const { slug, type, label, required = false, options } = field;
  const kind = type === "number" || type === "boolean" ? type : "string";
  return {
    name: slug, description: label, required,
    ...(LIST_TYPES.has(type) ? { type: "array" as const } : { type: kind }),
    ...(kind === "string" && options && options.length > 0 ? { enum: options } : {}),
  };
}

const bookingParameters = ({ calcom_booking_fields: fields = [] }: CalendarIntegration) =>
  [...BOOK, ...fields.filter(({ slug }) => !OWN_FIELDS.has(slug)).map(parameterOf)];

function functionsOf(tool: CalendarIntegration, suffix: string): ModelFunction[] {
  const what = tool.description ? ` ${tool.description}` : "";
  return [
    {
      id: 0, name: CHECK_AVAILABILITY + suffix, schema: CHECK,
      description: `Lists free appointment times. Call it before you offer any time.${what}`,
    },
    {
      id: 0, name: BOOK_APPOINTMENT + suffix, schema: bookingParameters(tool),
      description: `Books one of the free times for the person, once they have agreed to it.${what}`,
    },
  ].map(modelFunctionOf);
}

/** The start times in Cal.com's answer, which maps each day to a list of slots. */
function startsOf(data: unknown, zone: string): Instant[] {
  if (typeof data !== "object" || data === null) return [];
  return Object.values(data).flat()
    .map((slot: unknown) => (slot as { start?: unknown } | null)?.start)
    .map((start) => (typeof start === "string" ? readLocal(start, zone) : null))
    .filter((start) => start !== null)
    .toSorted((a, b) => a - b);
}

const timeOf = (start: Instant, zone: string) =>
  ({ start: localIso(start, zone), label: spokenTime(start, zone) });

type OwnerOf = ReturnType<typeof createOwnerOf>;
type Values = Map<string, Value>;

const createCheck = (ask: Ask, ownerOf: OwnerOf, system: System) =>
  async (desk: Desk, values: Values): Promise<Result> => {
    const { tool, zone } = desk;
    const date = String(values.get("date") ?? "") || dayAt(system.now(), zone);
    if (!isDay(date)) return { error: "The argument date must be a day as YYYY-MM-DD." };
    const wanted = Math.round(Number(values.get("days") ?? DAYS_DEFAULT));
    const last = startOfDay(date, zone, Math.min(Math.max(wanted, 1), DAYS_MAX) - 1);
    const found = await ownerOf(desk);
    if ("error" in found) return found.error;
    const query = new URLSearchParams({
      eventTypeSlug: tool.calcom_event_slug, ...found.owner,
      start: date, end: last === null ? date : dayAt(last, zone), timeZone: zone,
    });
    const answer = await ask(desk, {
      method: "GET", path: `/slots?${query}`, version: SLOTS_VERSION,
    });
    if (answer.kind !== "done") return failureOf(answer);
    const starts = startsOf(answer.data, zone);
    return {
      time_zone: zone,
      free_times: starts.slice(0, TIMES_MAX).map((start) => timeOf(start, zone)),
      ...(starts.length === 0 ? { note: "Nothing is free then; try later days." } : {}),
    };
  };

/** The body of Cal.com's booking route. */
function bookingOf(
  { tool, zone }: Desk, owner: Record<string, string>, start: Instant, values: Values,
): object {
  const [email, phone] = [values.get("email"), values.get("phone")];
  const responses = [...values].filter(([name]) => name === "notes" || !OWN_FIELDS.has(name));
  return {
    start: `${isoMicros(start).slice(0, "YYYY-MM-DDTHH:MM:SS".length)}Z`,
    eventTypeSlug: tool.calcom_event_slug,
    ...owner,
    attendee: {
      name: values.get("name"), timeZone: zone,
      ...(email === undefined ? {} : { email }),
      ...(phone === undefined ? {} : { phoneNumber: phone }),
    },
    ...(responses.length === 0 ? {} : { bookingFieldsResponses: Object.fromEntries(responses) }),
  };
}

interface Outcome {
  result: Result;
  /** False: the booking request has certainly not reached Cal.com. */
  sent: boolean;
}

const createBook = (ask: Ask, ownerOf: OwnerOf) =>
  async (desk: Desk, values: Values, key: string): Promise<Outcome> => {
    const { zone } = desk;
    const start = readLocal(String(values.get("start")), zone);
    if (start === null) {
      const error = `The argument start must be a time as ${CHECK_AVAILABILITY} gave it.`;
      return { result: { error }, sent: false };
    }
    const found = await ownerOf(desk);
    if ("error" in found) return { result: found.error, sent: false };
    const answer = await ask(desk, {
      method: "POST", path: "/bookings", version: BOOKINGS_VERSION, idempotencyKey: key,
      body: bookingOf(desk, found.owner, start, values),
    });
    if (answer.kind === "refused") return { result: failureOf(answer), sent: true };
    if (answer.kind === "failed") {
      return answer.sent
        ? { result: { error: "It is not known whether the appointment was booked." }, sent: true }
        : { result: failureOf(answer), sent: false };
    }
    const { uid, status } = (answer.data ?? {}) as { uid?: unknown; status?: unknown };
    const state = status === "pending"
      ? { booked: false, note: "The calendar's owner still has to confirm it." }
      : { booked: true };
    return { result: { ...state, booking_uid: uid ?? null, ...timeOf(start, zone) }, sent: true };
  };

const UNKNOWN = {
  error: "It is not known whether the appointment was booked; it was not sent again.",
};

export function createCalcom(options: CalcomOptions) {
  const { system, journal } = options;
  const ask = createAsk(options);
  const ownerOf = createOwnerOf(ask);
  const check = createCheck(ask, ownerOf, system);
  const book = createBook(ask, ownerOf);

  const bookOnce = async (desk: Desk, values: Values, scope: string): Promise<Result> => {
    const { accountId, tool } = desk;
    const callKey = hash("sha256", JSON.stringify([tool.calcom_event_slug, ...values]), "hex");
    const begun = await journal.begin({
      scope, callKey, accountId, toolId: 0, now: system.now(),
    });
    if (begun.kind === "repeated") return begun.result;
    if (begun.kind === "unknown") return UNKNOWN;
    const { result, sent } = await book(desk, values, idempotencyKey(scope, callKey));
    await journal.finish({ accountId, id: begun.id, result, sent, now: system.now() });
    return result;
  };

  return (turn: Pick<TurnContext, "assistant" | "scope">) => {
    const { assistant } = turn;
    const tools = assistant.settings.tools.filter((tool) => tool.type === "calendar_integration");
    const functions = new Map(tools.flatMap((tool, index) => {
      const suffix = index === 0 ? "" : `_${index + 1}`;
      return functionsOf(tool, suffix).map((offer, at) =>
        [offer.name, { offer, tool, isBooking: at === 1 }] as const);
    }));
    return {
      offered: [...functions.values()].map(({ offer }) => offer),
      call: async ({ name, arguments: args }: { name: string; arguments: Arguments }) => {
        const wanted = functions.get(name);
        if (!wanted) return { error: `There is no function named ${name}.` };
        const { tool, isBooking } = wanted;
        const read = checkArguments(isBooking ? bookingParameters(tool) : CHECK, args);
        if ("error" in read) return { error: read.error };
        const key = options.keyOf(assistant, tool);
        if (key === null) return { error: "The calendar's key must be entered again." };
        const { accountId, settings: { timezone: zone } } = assistant;
        const desk = { url: urlOf(options.url, tool), key, accountId, tool, zone };
        return isBooking ? bookOnce(desk, read.values, turn.scope) : check(desk, read.values);
      },
    };
  };
}
