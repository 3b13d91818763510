// OpenAI's chat completions as this server supports them: reading a request into a turn, encoding
// the reply whole and in chunks, refusals in OpenAI's shape. routes.ts joins it to the turns.
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, collectingErrors, errorsOf, named, Nullable } from "#core/schema.ts";
import type { HeaderMap, Reply } from "#http/exchange.ts";
import { renderFault } from "#http/errors.ts";
import type { Given, TurnResult } from "#features/conversations/records.ts";
import type { ModelUsage } from "#providers/models/port.ts";
import { usageOf } from "./completions.ts";
import type { Encoder, TurnStep } from "#gateways/turn-stream.ts";

const Maybe = <T extends TSchema>(schema: T) => Type.Optional(Nullable(schema));

export const COMPLETION_BODY = Type.Object({
  model: Type.String(about(
    "The uuid or id of one of the account's assistants.", "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11")),
  messages: Type.Array(
    Type.Object({
      role: Type.String(about("system, developer, user or assistant.", "user")),
      content: Maybe(Type.Union([
        Type.String(),
        Type.Array(Type.Object({
          type: Type.String(about("`text`; other types are not supported.", "text")),
          text: Type.Optional(Type.String(about("The text.", "When are you open?"))),
        })),
      ], about("The text, as a string or in parts.", "When are you open?"))),
    }),
    {
      minItems: 1, maxItems: LIMITS.historyMessagesMax,
      ...about("The conversation so far; the last message is the user's."),
    },
  ),
  stream: Maybe(Type.Boolean(about("Whether to stream the reply in chunks.", false))),
  stream_options: Maybe(Type.Object({
    include_usage: Maybe(Type.Boolean(about("Whether the last chunk reports token usage.", true))),
  }, about("Streaming options."))),
  temperature: Maybe(Type.Number({
    minimum: 0, maximum: 2, ...about("Sampling temperature; null for the assistant's.", 0.5),
  })),
  max_tokens: Maybe(Type.Integer({ minimum: 1, ...about("The maximum number of tokens in the "
    + "reply.",
    500) })),
  max_completion_tokens: Maybe(Type.Integer({
    minimum: 1, ...about("The same, by its newer name.", 500),
  })),
  stop: Maybe(Type.Union([Type.String(), Type.Array(Type.String())], {
    description: "Not supported; refused unless empty",
    examples: [[]],
  })),
  response_format: Maybe(Type.Object({
    type: Type.String({ description: "text; other formats are refused", examples: ["text"] }),
  }, { description: "The format of the reply", examples: [{ type: "text" }] })),
  n: Maybe(Type.Integer({ minimum: 1, ...about("The number of replies; must be 1.", 1) })),
  tools: Maybe(Type.Array(Type.Unknown(), about(
    "Must be empty: the assistant uses its own tools.", []))),
  functions: Maybe(Type.Array(Type.Unknown(), about(
    "Must be empty: the assistant uses its own tools.", []))),
  tool_choice: Maybe(Type.Unknown(about("`auto` or `none`; the assistant chooses.", "auto"))),
  function_call: Maybe(Type.Unknown(about("`auto` or `none`; the assistant chooses.", "auto"))),
  modalities: Maybe(Type.Array(Type.String(), about("Must be `text`.", ["text"]))),
  logprobs: Maybe(Type.Boolean(about("Must be false: log probabilities are not supported.",
    false))),
  logit_bias: Maybe(Type.Record(Type.String(), Type.Number(), about(
    "Must be empty: tokens differ between models.", {}))),
  web_search_options: Maybe(Type.Unknown(about(
    "Must be absent: the assistant uses its own tools.", null))),
}, collectingErrors);

export type CompletionBody = Static<typeof COMPLETION_BODY>;

export const OpenAiErrorSchema = Type.Object({
  error: Type.Object({
    message: Type.String(about("What is wrong.", "n must be 1.")),
    type: Type.String(about("The type of error.", "invalid_request_error")),
    param: Nullable(Type.String(about("The invalid field; null if none.", "n"))),
    code: Nullable(Type.String(about("The error code; null if none.", "unsupported_parameter"))),
  }, about("The error.")),
}, named("OpenAiError", "An error, as in OpenAI's API."));

function refuse(param: string, message: string, code: string | null = null): Fault {
  return new Fault(400, message, { extra: { param }, ...(code === null ? {} : { code }) });
}

const isEmpty = (value: unknown): boolean => Object.keys(value as object).length === 0;
const isLeftOpen = (value: unknown): boolean => value === "auto" || value === "none";
const OWN_CHOICE = "The assistant decides itself which tools it calls";

/** For fields that assistants support in one way only: the accepted values, and the refusal. */
const BOUNDS: Partial<Record<
  keyof CompletionBody, [isWithin: (value: unknown) => boolean, refusal: string]
>> = {
  n: [(value) => value === 1, "Only one choice is supported: n must be 1."],
  tools: [isEmpty, "The assistant uses its own tools; requests cannot contain any."],
  functions: [isEmpty, "The assistant uses its own functions; requests cannot contain any."],
  tool_choice: [isLeftOpen, `${OWN_CHOICE}: tool_choice must be auto or none.`],
  function_call: [isLeftOpen, `${OWN_CHOICE}: function_call must be auto or none.`],
  web_search_options: [() => false,
    "The assistant uses its own tools: web_search_options is not supported."],
  response_format: [(value) => (value as { type: string }).type === "text",
    "Assistants answer in text: response_format must be text."],
  modalities: [(value) => (value as string[]).every((one) => one === "text"),
    "Assistants answer in text: modalities must be text."],
  stop: [isEmpty, "Stop sequences are not supported."],
  logprobs: [(value) => value === false, "Log probabilities are not supported: logprobs must be false."],
  logit_bias: [isEmpty, "logit_bias is not supported."],
};

/** Throws Fault 400 for what no assistant supports: ignoring it would give a different answer. */
export function readCompletion(body: CompletionBody): Given {
  const [wrong] = Object.entries(errorsOf(body));
  if (wrong) throw refuse(wrong[0], wrong[1][0] ?? "The request is invalid.");
  for (const [param, [isWithin, message]] of Object.entries(BOUNDS)) {
    const value = body[param as keyof typeof BOUNDS] ?? null;
    if (value !== null && !isWithin(value)) throw refuse(param, message, "unsupported_parameter");
  }
  const given: Given = {
    ...readMessages(body.messages),
    // Assistants go up to 1, where OpenAI's clients go up to 2.
    temperature: typeof body.temperature === "number" ? Math.min(body.temperature, 1) : null,
    tokensMax: body.max_completion_tokens ?? body.max_tokens ?? null,
  };
  return given;
}

function readMessages(messages: CompletionBody["messages"]): Pick<Given, "system" | "messages"> {
  const system: string[] = [];
  const said: Given["messages"] = [];
  for (const [at, { role, content }] of messages.entries()) {
    const text = textOf(content, `messages.${at}.content`);
    if (role === "system" || role === "developer") system.push(text);
    else if (role === "user" || role === "assistant") said.push({ role, content: text });
    else {
      throw refuse(`messages.${at}.role`,
        "The role must be system, developer, user or assistant: tools run on the server.");
    }
  }
  const last = said.at(-1);
  const param = `messages.${messages.length - 1}`;
  if (messages.at(-1)?.role !== "user" || last?.content.trim() === "") {
    throw refuse(param, "The last message must be from the user and must not be blank.");
  }
  const joined = system.filter((text) => text !== "").join("\n\n");
  if (joined.length > LIMITS.promptCharsMax) {
    throw refuse("messages",
      `The system messages may not be greater than ${LIMITS.promptCharsMax} characters.`,
      "context_length_exceeded");
  }
  // A message without text, as from an assistant that called a function, tells the model nothing.
  return { system: joined, messages: said.filter(({ content }) => content !== "") };
}

function textOf(content: CompletionBody["messages"][number]["content"], param: string): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => {
    if (part.type === "text") return part.text ?? "";
    throw refuse(param, `Content of type ${part.type.slice(0, 64)} is not supported, only text.`,
      "unsupported_content");
  }).join("");
}

const TYPES: Record<number, [type: string, code: string | null]> = {
  401: ["authentication_error", "invalid_api_key"],
  402: ["insufficient_quota", "insufficient_quota"],
  403: ["permission_error", "insufficient_permissions"],
  429: ["rate_limit_error", "rate_limit_exceeded"],
};

/** The statuses and types from which OpenAI's clients derive error classes and retries. */
function openAiError(fault: Fault): { status: number; error: Static<typeof OpenAiErrorSchema>["error"] } {
  const isPoor = fault.code === "INSUFFICIENT_BALANCE";
  const status = isPoor ? 402 : fault.status === 422 ? 400 : fault.status;
  const [type, code] = TYPES[status]
    ?? [status >= 500 ? "server_error" : "invalid_request_error", fault.code ?? null];
  const field = Object.keys(fault.errors ?? {})[0];
  const param = typeof fault.extra?.param === "string" ? fault.extra.param : field ?? null;
  return { status, error: { message: fault.message, type, param, code } };
}

/** SDKs call `/responses` by default, and show this to the person who must configure them. */
export const noSuchApi = (): Fault =>
  new Fault(404, "Not found: only chat completions and models of OpenAI's API are supported, and "
    + "the base URL ends in /api/v1.");

/** The routes of OpenAI's API, and where clients with another base URL look for them. */
export const isOpenAiPath = (path: string): boolean =>
  /^(\/api)?(\/v1\/|\/(chat\/completions|models)$)/.test(path);

/** The refusal as OpenAI writes it; headers as everywhere. */
export function renderOpenAiFault(fault: Fault, headers: HeaderMap = {}): Reply {
  const { status, error } = openAiError(fault);
  return { ...renderFault(fault, "message", headers), status, json: { error } } as Reply;
}

/** Common to every chunk and the whole reply; the same when a key is repeated. */
export interface CompletionHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  model: string;
}

const finishOf = (truncated: boolean): "length" | "stop" => truncated ? "length" : "stop";

/** The reply as stored; null: it was stopped before its first text. */
type Completed = Extract<TurnResult, { kind: "completed" }> | null;

export function completionOf(
  head: CompletionHead, given: Given, counted: ModelUsage | null, reply: Completed,
): object {
  const text = reply?.text ?? "";
  return {
    ...head,
    object: "chat.completion",
    choices: [{
      index: 0,
      message: { role: "assistant", content: text, refusal: null },
      logprobs: null,
      finish_reason: finishOf(reply?.truncated ?? false),
    }],
    usage: usageOf(counted, given, text),
  };
}

export const CompletionSchema = Type.Object({
  id: Type.String(about("The completion's id.", "chatcmpl-0b0e4f0a")),
  object: Type.Literal("chat.completion", about("Always chat.completion.")),
  created: Type.Integer(about("When it was created, in Unix seconds.", 1_772_443_800)),
  model: Type.String(about("The assistant's uuid.", "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11")),
  choices: Type.Array(Type.Object({
    index: Type.Integer(about("Always 0.", 0)),
    message: Type.Object({
      role: Type.Literal("assistant", about("Always assistant.")),
      content: Type.String(about("The reply.", "We are open from 9 to 5.")),
      refusal: Type.Null(about("Always null.", null)),
    }, about("What the assistant says.")),
    logprobs: Type.Null(about("Always null.", null)),
    finish_reason: Type.String(about("`stop`, or `length` if the reply was cut off.", "stop")),
  }), about("The reply, as a list of one.")),
  usage: Type.Object({
    prompt_tokens: Type.Integer(about("Input tokens.", 42)),
    completion_tokens: Type.Integer(about("Output tokens.", 9)),
    total_tokens: Type.Integer(about("Input and output tokens.", 51)),
  }, about("Token usage, as reported by the model.")),
}, named("ChatCompletion", "A chat completion, as in OpenAI's API."));

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

/** Function calls are not shown: clients would take them for calls they must answer. */
export function createChunkEncoder(
  head: CompletionHead,
  given: Given,
  count: () => ModelUsage | null,
  includesUsage: boolean,
): Encoder {
  let reply = "";
  const chunk = (choices: object[], usage: object | null = null): string =>
    event({
      ...head, object: "chat.completion.chunk", choices, ...(includesUsage ? { usage } : {}),
    });
  const choice = (delta: object, reason: string | null = null): object[] =>
    [{ index: 0, delta, logprobs: null, finish_reason: reason }];
  const complete = (truncated: boolean): string =>
    chunk(choice({}, finishOf(truncated)))
    + (includesUsage ? chunk([], usageOf(count(), given, reply)) : "")
    + "data: [DONE]\n\n";
  return {
    begin: () => chunk(choice({ role: "assistant", content: "", refusal: null })),
    take: (step: TurnStep) => {
      switch (step.kind) {
        case "text":
          reply += step.text;
          return chunk(choice({ content: step.text }));
        case "completed":
          return complete(step.truncated);
        case "failed":
          return step.reason === "stopped" ? complete(false) : event(openAiError(failure(step)));
        default:
          return "";
      }
    },
  };
}

/** A reply that failed cost nothing and may be asked for again, which clients do after a 5xx. */
export function failure({ reason, error }: { reason: string; error: string }): Fault {
  return reason === "interrupted"
    ? new Fault(503, error, { retryAfterS: 1 })
    : new Fault(500, error);
}
