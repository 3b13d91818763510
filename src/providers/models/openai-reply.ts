// Parses what a model server sends, from bytes to deltas. Vendors are not trusted: a field of an
// unexpected type counts as absent. Used by openai-compatible.ts.
import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import { ProviderError } from "#core/faults.ts";
import { jsonOf, listOf, recordOf, textOf } from "#core/values.ts";
import { errorText } from "#providers/error-text.ts";
import type { ModelContext } from "./openai-exchange.ts";
import type { ModelDelta, ModelFunctionCall, ModelUsage } from "./port.ts";
import { AnswerFilter } from "./thinking.ts";

const TOOL_CALLS_MAX = 128;
/** How much of a body that is no reply is searched for an error text. */
const START_CHARS_MAX = 4096;
const TYPE_CHARS_MAX = 200;

interface PendingCall {
  index: number | null;
  id: string;
  name: string;
  argumentsJson: string;
  signed: Record<string, unknown> | null;
}

/**
 * What came with a function call and has to be sent back with it. Gemini refuses to go on without
 * its signatures, DeepSeek without its thinking.
 */
interface Enclosed {
  /** Sent as `extra_content`, in the vendor's form. */
  signed: Record<string, unknown> | null;
  /** Sent as `reasoning_content` of the message; empty: none. */
  thinking: string;
}

/** Keyed by the identity of the calls handed over, so that no server is sent what another wrote. */
export type EnclosedByCall = WeakMap<ModelFunctionCall, Enclosed>;

/** Tool calls are handed over with the finish, when it is certain that they are whole. */
export class Reply {
  /** The finish has been handed over. */
  complete = false;
  /** Why the model finished, in the vendor's word. */
  reason: string | null = null;
  /** To be thrown after the deltas that `add` returned, which came before it. */
  failure: ProviderError | null = null;
  /** The body is one whole completion, not a stream; null until its first character. */
  #isJson: boolean | null = null;
  #type: string;
  #context: ModelContext;
  #enclosed: EnclosedByCall;
  // Several times as fast as a streaming TextDecoder.
  #decoder = new StringDecoder("utf8");
  #parser;
  #body = "";
  #start = "";
  /** Whether any part of a completion has come. */
  #isReply = false;
  #text = "";
  #answer = new AnswerFilter();
  #thinking = "";
  #calls: PendingCall[] = [];
  #callChars = 0;
  #usage: ModelUsage | null = null;
  #done = false;

  constructor(contentType: string, context: ModelContext, enclosed: EnclosedByCall) {
    this.#type = contentType;
    this.#context = context;
    this.#enclosed = enclosed;
    this.#parser = createParser({
      onEvent: ({ event, data }) => this.#takeEvent(data, event),
      onError: ({ type }) => {
        if (type === "max-buffer-size-exceeded") this.#fail("sent an event that is too large");
      },
      maxBufferSize: context.limits.modelEventBytesMax,
    });
  }

  /** Takes what one read brought; null for the end of the body. */
  add(bytes: Buffer | null): ModelDelta[] {
    const text = bytes ? this.#decoder.write(bytes) : this.#decoder.end();
    this.#tellApart(text);
    if (this.#isJson) this.#body += text;
    else this.#parser.feed(bytes ? text : `${text}\n\n`);
    if (this.#body.length > this.#context.limits.modelEventBytesMax) this.#fail("sent too much");
    if (!bytes) this.#end();
    this.complete = this.#done && !this.failure;
    if (this.complete) this.#text += this.#answer.rest();
    return this.complete ? [...this.#takeText(), ...this.#finish()] : this.#takeText();
  }

  /** Decides by the text: servers, and proxies before them, mix up the two content types. */
  #tellApart(text: string): void {
    if (this.#start.length < START_CHARS_MAX) this.#start += text.slice(0, START_CHARS_MAX);
    const first = this.#isJson === null && /[^\s\uFEFF]/.exec(text);
    if (first) this.#isJson = first[0] === "{";
  }

  #end(): void {
    if (this.#isJson) this.#takeEvent(this.#body.replace(/^\uFEFF/, ""));
    // Half an event after the finish reason harms nothing.
    if (this.reason !== null) this.failure = null;
    this.#done ||= this.reason !== null;
    if (this.#done) return;
    if (this.#isReply) this.#fail("closed the connection before its reply was complete");
    else this.#failWithout();
  }

  /** The body may be a sign-in page, the answer of another API, or empty. */
  #failWithout(): void {
    const words = errorText(jsonOf(this.#start) ?? this.#start, this.#context.key);
    const type = this.#type.slice(0, TYPE_CHARS_MAX) || "text without a type";
    this.#fail(words === "" ? "sent an empty reply" : `sent no reply, but ${type}: ${words}`);
  }

  #takeEvent(data: string, type?: string): void {
    if (this.failure || this.#done || data === "") return;
    if (data.startsWith("[DONE]")) {
      this.#done = true;
      return;
    }
    const value = jsonOf(data);
    const event = recordOf(value);
    if (type === "error" || event?.error) {
      this.#failWith(value ?? data);
    } else if (choiceOf(event)?.finish_reason === "error") {
      this.#failWith(choiceOf(event)?.error);
    } else if (value === undefined) this.#fail("sent an event that is not JSON");
    else if (event) this.#takeChunk(event);
  }

  #takeChunk(chunk: Record<string, unknown>): void {
    this.#usage = usageOf(chunk.usage) ?? this.#usage;
    const choice = choiceOf(chunk);
    const delta = recordOf(choice?.delta) ?? recordOf(choice?.message);
    this.#isReply ||= delta !== null;
    // A model's refusal comes in a field of its own.
    this.#text += this.#answer.take(contentOf(delta?.content) + textOf(delta?.refusal));
    if (this.#thinking.length < this.#context.limits.modelEventBytesMax) {
      this.#thinking += textOf(delta?.reasoning_content);
    }
    for (const part of listOf(delta?.tool_calls)) this.#takeCall(recordOf(part) ?? {});
    this.reason = textOf(choice?.finish_reason) || this.reason;
  }

  #takeCall(part: Record<string, unknown>): void {
    const called = recordOf(part.function);
    if (!called) return;
    const id = textOf(part.id);
    const name = textOf(called.name);
    const index = typeof part.index === "number" ? part.index : null;
    const written = recordOf(called.arguments);
    const json = written ? JSON.stringify(written) : textOf(called.arguments);
    let call = this.#findCall(index, id, name, json);
    if (!call) {
      call = { index, id, name, argumentsJson: "", signed: null };
      this.#calls.push(call);
    }
    call.id ||= id;
    call.name ||= name;
    call.argumentsJson += json;
    const signed = recordOf(part.extra_content);
    call.signed ??= signed;
    this.#callChars += json.length + (signed ? JSON.stringify(signed).length : 0);
    const isTooMuch = this.#callChars > this.#context.limits.modelEventBytesMax;
    if (isTooMuch || this.#calls.length > TOOL_CALLS_MAX) this.#fail("sent too many tool calls");
  }

  /** The call that a piece belongs to; undefined when it begins a new one. */
  #findCall(
    index: number | null, id: string, name: string, json: string,
  ): PendingCall | undefined {
    if (index === null) {
      const same = id === "" ? undefined : this.#calls.find((call) => call.id === id);
      return same ?? (name === "" ? this.#calls.at(-1) : undefined);
    }
    const same = this.#calls.findLast((call) => call.index === index);
    if (!same || name === "") return same;
    // Some servers send several whole calls, all under index 0, Gemini without ids.
    const isAnother = id !== "" && same.id !== ""
      ? id !== same.id
      : json !== "" && same.name !== "" && recordOf(jsonOf(same.argumentsJson)) !== null;
    return isAnother ? undefined : same;
  }

  /** The text so far, without half a surrogate pair whose other half may follow. */
  #takeText(): ModelDelta[] {
    if (this.#text === "") return [];
    const last = this.#text.charCodeAt(this.#text.length - 1);
    const isHalf = last >= 0xd800 && last <= 0xdbff && !this.complete;
    const text = isHalf ? this.#text.slice(0, -1) : this.#text;
    this.#text = isHalf ? this.#text.slice(-1) : "";
    return text === "" ? [] : [{ kind: "text", text: text.toWellFormed() }];
  }

  #finish(): ModelDelta[] {
    const isCut = this.reason === "length";
    const deltas: ModelDelta[] = [];
    for (const { id, name, argumentsJson, signed } of this.#calls) {
      const json = argumentsJson.trim() === "" ? "{}" : argumentsJson;
      if (name === "" || (isCut && jsonOf(json) === undefined)) continue;
      const call = { id: id || `call_${this.#context.system.uuid()}`, name, argumentsJson: json };
      this.#enclosed.set(call, { signed, thinking: this.#thinking });
      deltas.push({ kind: "function_call", call });
    }
    // The calls decide: several servers say "stop" after them, or "tool_calls" without any.
    const reason = isCut ? "length" : deltas.length > 0 ? "function_calls" : "stop";
    deltas.push({ kind: "finish", reason, usage: this.#usage });
    return deltas;
  }

  #failWith(error: unknown): void {
    const text = errorText(error, this.#context.key);
    this.#fail(`broke off with an error${text && `: ${text}`}`);
  }

  #fail(what: string): void {
    this.failure ??= new ProviderError(`the model server ${what}`, { retryable: false });
  }
}

function usageOf(value: unknown): ModelUsage | null {
  const usage = recordOf(value);
  const inputTokens = usage?.prompt_tokens;
  const outputTokens = usage?.completion_tokens;
  return isCount(inputTokens) && isCount(outputTokens) ? { inputTokens, outputTokens } : null;
}

const choiceOf = (chunk: Record<string, unknown> | null): Record<string, unknown> | null =>
  recordOf(listOf(chunk?.choices)[0]);

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Content is a text or, with some servers, a list of parts. */
function contentOf(value: unknown): string {
  if (typeof value === "string") return value;
  const parts = listOf(value).map((part) => textOf(recordOf(part)?.text));
  return parts.join("");
}
