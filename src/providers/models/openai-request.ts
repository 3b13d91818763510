// The request to a model server, in the form of OpenAI's chat completions, and how that changes
// when a server refuses it. Used by openai-compatible.ts only.
import { jsonOf } from "#core/values.ts";
import type { EnclosedByCall } from "./openai-reply.ts";
import type { ModelFile, ModelFunctionCall, ModelMessage, ModelRequest } from "./port.ts";

/** What servers differ in. */
export interface RequestForm {
  /** The server's name for the bound of a reply. */
  tokensField: "max_tokens" | "max_completion_tokens";
  /** Sent instead of what the request says, for models that take one value only. */
  temperature?: number | undefined;
  sendsTemperature: boolean;
  asksUsage: boolean;
}

const REFUSES_TEMPERATURE =
  /(unsupported|not support|not permitted)[^.]*temperature|temperature[^.]*(unsupported|not support|deprecated)/i;

/** The change of form that a refusal asks for; null: it is about something else. */
export function changeFor(refusal: string, form: RequestForm): Partial<RequestForm> | null {
  const { tokensField, sendsTemperature, asksUsage } = form;
  if (tokensField === "max_tokens" && refusal.includes("max_completion_tokens")) {
    return { tokensField: "max_completion_tokens" };
  }
  if (sendsTemperature && REFUSES_TEMPERATURE.test(refusal)) return { sendsTemperature: false };
  if (asksUsage && refusal.includes("stream_options")) return { asksUsage: false };
  return null;
}

export function bodyOf(
  request: ModelRequest, model: string, form: RequestForm, enclosed: EnclosedByCall,
): object {
  const tools = request.functions.map((tool) => ({ type: "function", function: tool }));
  return {
    model,
    messages: request.messages.map((message) => wireMessage(message, enclosed)),
    // Several servers refuse an empty list.
    ...(tools.length === 0 ? {} : { tools }),
    ...(form.sendsTemperature ? { temperature: form.temperature ?? request.temperature } : {}),
    [form.tokensField]: request.tokensMax,
    stream: true,
    ...(form.asksUsage ? { stream_options: { include_usage: true } } : {}),
  };
}

const fileUrl = ({ type, data }: ModelFile): string => `data:${type};base64,${data}`;

const wireFile = (file: ModelFile): object => (file.sight === "image"
  ? { type: "image_url", image_url: { url: fileUrl(file) } }
  : { type: "file", file: { filename: file.name, file_data: fileUrl(file) } });

function wireMessage(
  { role, content, files, functionCalls, functionCallId }: ModelMessage, enclosed: EnclosedByCall,
): object {
  if (files && files.length > 0) {
    const text = content === "" ? [] : [{ type: "text", text: content }];
    return { role, content: [...text, ...files.map(wireFile)] };
  }
  if (role === "function") return { role: "tool", tool_call_id: functionCallId ?? "", content };
  if (!functionCalls || functionCalls.length === 0) return { role, content };
  const thinking = functionCalls[0] && enclosed.get(functionCalls[0])?.thinking;
  return {
    role,
    content: content === "" ? null : content,
    ...(thinking ? { reasoning_content: thinking } : {}),
    tool_calls: functionCalls.map((call) => wireCall(call, enclosed)),
  };
}

function wireCall(call: ModelFunctionCall, enclosed: EnclosedByCall): object {
  const { id, name, argumentsJson } = call;
  const signed = enclosed.get(call)?.signed;
  return {
    id,
    type: "function",
    // Servers that parse the arguments of earlier calls refuse the whole request over bad ones.
    function: { name, arguments: jsonOf(argumentsJson) === undefined ? "{}" : argumentsJson },
    ...(signed ? { extra_content: signed } : {}),
  };
}
