// One turn: model → functions → model, until the model has answered. A bounded generator over
// ports; it touches no database and no socket. drive.ts runs it, for text conversations and calls.
import { isUnsafeKey, jsonOf, recordOf, wholeStart } from "#core/values.ts";
import { LIMITS } from "#core/limits.ts";
import { assertNever, ProviderError } from "#core/faults.ts";
import type { FunctionCall } from "#events/events.ts";
import type {
  LanguageModel,
  ModelDelta,
  ModelMessage,
  ModelFunctionCall,
  ModelUsage,
} from "#providers/models/port.ts";
import type { TurnFunctions } from "./functions.ts";

export type TurnEvent =
  | { kind: "text"; text: string }
  | { kind: "function_call_start"; callId: string; name: string; arguments: Record<string, unknown> }
  | { kind: "function_call_end"; callId: string; call: FunctionCall }
  | { kind: "usage"; usage: ModelUsage }
  /** The reply ended at a bound: no more text comes. */
  | { kind: "truncated" };

interface TurnRequest {
  model: LanguageModel;
  functions: TurnFunctions;
  messages: ModelMessage[];
  temperature: number;
  tokensMax: number;
  signal: AbortSignal;
}

const PARAGRAPH = "\n\n";

/** What one step (one reply of the model) left behind. */
interface Step {
  text: string;
  calls: ModelFunctionCall[];
  /** The model had more to say than its token limit allowed. */
  isCut: boolean;
  /** The reply exceeded the characters it may hold. */
  isFull: boolean;
}

/** Ends when the model has answered or a bound is reached; throws ProviderError when it cannot. */
export async function* runTurn(request: TurnRequest): AsyncGenerator<TurnEvent[], void> {
  const messages = [...request.messages];
  let replyChars = 0;
  /** Written before the next text, so that no reply ends in it. */
  let gap = "";
  let callsLeft: number = LIMITS.functionCallsPerTurnMax;
  for (let stepNumber = 1; ; stepNumber += 1) {
    const step: Step = { text: "", calls: [], isCut: false, isFull: false };
    const mayCall = stepNumber < LIMITS.turnStepsMax && callsLeft > 0;
    const stream = request.model.stream(
      {
        messages,
        // In the last step the model is offered nothing to call, so that it has to answer.
        functions: mayCall ? request.functions.offered : [],
        temperature: request.temperature,
        tokensMax: request.tokensMax,
      },
      request.signal,
    );
    for await (const deltas of stream) {
      const events = takeDeltas(deltas, step, replyChars + gap.length);
      if (gap !== "" && step.text !== "") {
        events.unshift({ kind: "text", text: gap });
        gap = "";
      }
      for (const event of events) if (event.kind === "text") replyChars += event.text.length;
      if (events.length > 0) yield events;
      if (step.isFull) break;
    }
    const isOver = step.isFull || step.calls.length === 0 || !mayCall;
    if (step.isFull || (isOver && step.isCut)) yield [{ kind: "truncated" }];
    if (isOver) return;
    messages.push({ role: "assistant", content: step.text, functionCalls: step.calls });
    for (const call of step.calls) {
      const refused = callsLeft <= 0 ? { error: "Too many function calls in one turn." } : null;
      callsLeft -= 1;
      const result = refused ?? (yield* callTool(request, call));
      messages.push({ role: "function", functionCallId: call.id, content: resultText(result) });
    }
    if (step.text !== "" && !/\s$/.test(step.text)) gap = PARAGRAPH;
  }
}

function takeDeltas(deltas: ModelDelta[], step: Step, replyChars: number): TurnEvent[] {
  const events: TurnEvent[] = [];
  let room = LIMITS.replyCharsMax - replyChars;
  for (const delta of deltas) {
    switch (delta.kind) {
      case "text": {
        const text = wholeStart(delta.text, room);
        step.isFull ||= delta.text.length > room;
        room -= delta.text.length;
        step.text += text;
        if (text !== "") events.push({ kind: "text", text });
        break;
      }
      case "function_call":
        step.calls.push(delta.call);
        break;
      case "finish":
        step.isCut = delta.reason === "length";
        if (delta.usage) events.push({ kind: "usage", usage: delta.usage });
        break;
      default:
        assertNever(delta);
    }
  }
  return events;
}

async function* callTool(
  request: TurnRequest,
  call: ModelFunctionCall,
): AsyncGenerator<TurnEvent[], FunctionCall["result"]> {
  const args = parseArguments(call.argumentsJson);
  const started = { callId: call.id, name: call.name, arguments: args ?? {} };
  yield [{ kind: "function_call_start", ...started }];
  const result = args === null
    ? { error: "The arguments are not a JSON object." }
    : await request.functions.call(started, request.signal);
  if (request.signal.aborted) {
    throw new ProviderError("the turn was aborted", { retryable: false, cause: request.signal.reason });
  }
  const done: FunctionCall = { name: call.name, arguments: started.arguments, result };
  yield [{ kind: "function_call_end", callId: call.id, call: done }];
  return result;
}

/** Null when the model wrote anything but a JSON object of a sensible size. */
export function parseArguments(json: string): Record<string, unknown> | null {
  if (Buffer.byteLength(json) > LIMITS.toolArgumentsBytesMax) return null;
  const given = json === "" ? {} : recordOf(jsonOf(json));
  return given && Object.fromEntries(Object.entries(given).filter(([key]) => !isUnsafeKey(key)));
}

function resultText(result: FunctionCall["result"]): string {
  return wholeStart(JSON.stringify(result), LIMITS.functionResultCharsMax);
}
