// Wire schemas that every feature's answers use: refusals in the contract's shapes, plain messages,
// envelopes, moments and function calls. Refusals are rendered in errors.ts.
import { Type, type TSchema } from "@sinclair/typebox";
import { about, named } from "#core/schema.ts";
import type { HeaderMap } from "./exchange.ts";
import type { ErrorShape } from "./route.ts";

const FieldErrors = Type.Record(Type.String(), Type.Array(Type.String()), about(
  "Every invalid field with its problems; nested fields are dotted.",
  { name: ["The name field is required."] }));
/** Any refusal may have it beside its text. */
const MISSING = Type.Optional(Type.String(about(
  "The missing right, if the caller's role does not have it.", "build")));
const EXTRA = {
  right: MISSING,
  reason: Type.Optional(Type.String(about(
    "On 401, the problem with the key: `missing`, `unknown`, `revoked` or `expired`.",
    "expired"))),
  errors: Type.Optional(FieldErrors),
  retry_after: Type.Optional(Type.Integer(
    about("Seconds until the same request may succeed.", 30))),
};
const Code = Type.String(about("A machine-readable code, if there is one.", "ASSISTANT_NOT_FOUND"));
const Told = Type.String(about("What went wrong and what to do about it.", "Tool not found"));
const Kind = Type.String(about("The kind of error, in a few words.", "Rate limit exceeded"));

/** The fields that refusals with a shape of their own add where a right is missing. */
export const MISSING_RIGHT = { error: Type.Optional(Kind), right: MISSING };

export const InvalidSchema = Type.Object({
  message: Type.String(about("The first problem found.", "The name field is required.")),
  errors: FieldErrors,
}, named("InvalidRequest", "All invalid fields."));

export const REFUSALS: Record<ErrorShape, TSchema> = {
  message: Type.Object(
    { message: Told, error: Type.Optional(Kind), ...EXTRA },
    named("Refusal", "Why the request was refused.")),
  error: Type.Object(
    { error: Told, message: Type.Optional(Told), ...EXTRA },
    named("RefusalError", "Why the request was refused, under `error`.")),
  conversation: Type.Object({
    status: Type.Optional(Type.Literal(false, about("Always false."))),
    error: Told, message: Type.Optional(Told), ...EXTRA,
  }, named("RefusalStatus", "Why the request of a conversation was refused.")),
  success: Type.Object({
    success: Type.Literal(false, about("Always false.")),
    error: Told, error_code: Type.Optional(Code), message: Type.Optional(Told), ...EXTRA,
  }, named("RefusalSuccess", "Why the request was refused, with a code if there is one.")),
};

export const MessageSchema = Type.Object({
  message: Type.String(about("A message that says what was done.", "Deleted successfully")),
}, named("Done", "Confirms that it was done."));

const Message = Type.String(about("A message that says what was done.", "Created successfully"));

/** `{ data }`: one record, or a list of them. */
export const dataOf = <T extends TSchema>(schema: T) => Type.Object({ data: schema });
/** `{ message, data }`: what create and update answer. */
export const savedOf = <T extends TSchema>(schema: T) =>
  Type.Object({ message: Message, data: schema });
export const listOf = <T extends TSchema>(schema: T, description: string) =>
  Type.Array(schema, about(description));

const MICROS = "2026-03-02T09:30:00.000000Z";
/** ISO 8601 in UTC with microseconds. */
export const Moment = (description: string) => Type.String(about(description, MICROS));
/** UTC without a zone, as calls, leads and conversations show it. */
export const PlainMoment = (description: string) =>
  Type.String(about(description, "2026-03-02 09:30:00"));
export const CREATED = "When it was created, in UTC.";
export const UPDATED = "When it was last changed, in UTC.";
export const TIMES = { created_at: Moment(CREATED), updated_at: Moment(UPDATED) };
export const PLAIN_TIMES = { created_at: PlainMoment(CREATED), updated_at: PlainMoment(UPDATED) };

/** The placeholder of a path, described by what it identifies. */
export const IdOf = (noun: string, listing: string) =>
  Type.Integer({ minimum: 1, ...about(`The ${noun}'s \`id\`, from \`${listing}\`.`, 1) });
export const Uuid = (description: string) =>
  Type.String({ format: "uuid", ...about(description, "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11") });

export const EVENT_STREAM = Type.String(named(
  "EventStream",
  "Server-sent events: `id:` is the position to resume from, `event:` the type, `data:` one JSON "
  + "object with the same `id` and `type`. A comment line every 15 seconds keeps the connection "
  + "open.",
  "id: 43\nevent: reply_end\ndata: {\"id\":\"43\",\"type\":\"reply_end\"}\n\n"));
export const AFTER = Type.String(about(
  "The last `id` you received. Events after it are sent first.", "42"));
export const LAST_EVENT_ID = Type.String(about(
  "Same as `after`. Browsers send it by themselves when they reconnect.", "42"));
export const POSITION = Type.String(about(
  "The account's current stream position. Pass it to `/user/stream?after=` to miss nothing after "
  + "this response.",
  "42"));
export const IDEMPOTENCY_KEY = Type.String({ maxLength: 255, ...about(
  "A unique value you choose for this request. Repeating the request with the same value runs and "
  + "bills it only once, and returns the first result with `Idempotency-Replayed: true`.",
  "order-4711-reply-1") });
/** The header of an answer that an earlier request with the same key has led to. */
export const replayHeaders = (isReplay: boolean): HeaderMap =>
  (isReplay ? { "Idempotency-Replayed": "true" } : {});
export const TICKET = Type.String(about(
  "A ticket from `POST /user/stream-tickets`, for clients that cannot send an Authorization "
  + "header.",
  "st_9f2c"));

export const FunctionCallSchema = Type.Object({
  name: Type.String(about("Which function the model called.", "check_order")),
  arguments: Type.Record(Type.String(), Type.Unknown(), about(
    "The arguments it was called with.", { order: "4711" })),
  result: Type.Record(Type.String(), Type.Unknown(), about(
    "The result; has `error` if it failed.", { state: "shipped" })),
}, named("FunctionCall", "A function the model called while answering."));
