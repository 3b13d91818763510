// What is said over OpenAI's Realtime protocol: the settings sent, and the server's events as one
// union, whichever of its two sets of names the server uses. Used by openai-realtime.ts.
// `released` are the names OpenAI uses today, `beta` those before, which compatible servers kept.
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { recordOf, textOf } from "#core/values.ts";
import { sayExactly } from "#providers/speech/model-sound.ts";
import type { SpeechToSpeechOptions } from "#providers/speech/port.ts";

/** Samples per second of the audio on the wire, both ways. */
export const WIRE_RATE = 24_000;
/** Audio before the recognised beginning of speech that belongs to it. */
const PREFIX_MS = 300;
const SILENCE_MS_MIN = 200;
const TRANSCRIPTION_MODEL = "gpt-4o-mini-transcribe";
const TRANSCRIPTION_MODEL_BETA = "whisper-1";
const TEMPERATURE_BETA = { min: 0.6, max: 1.2 };

type Dialect = "released" | "beta";

export interface CalledFunction {
  callId: string;
  itemId: string;
  /** Null where only the item has it. */
  name: string | null;
  argumentsJson: string;
}

export type RealtimeEvent =
  /** `transcriptionModel`: the server's default. */
  | { kind: "created"; dialect: Dialect; transcriptionModel: string | null }
  | { kind: "updated" }
  | { kind: "speech_start" }
  | { kind: "speech_end" }
  /** The person's speech is now an item of the conversation, and will be answered. */
  | { kind: "committed" }
  | { kind: "user_delta"; itemId: string; text: string }
  | { kind: "user_text"; itemId: string; text: string }
  | { kind: "response_start"; responseId: string }
  | { kind: "audio"; responseId: string | null; itemId: string; base64: string }
  | { kind: "text"; responseId: string | null; itemId: string; text: string }
  | { kind: "function"; responseId: string | null; call: CalledFunction }
  | { kind: "function_named"; itemId: string; name: string }
  /** `failure`: what the vendor says of a reply that failed; absent: it did not. */
  | { kind: "response_end"; responseId: string; calls: CalledFunction[]; failure?: Failure }
  /** `eventId`: that of our event which caused the error. */
  | { kind: "error"; eventId: string | null; type: string; code: string; detail: unknown };

interface Failure {
  code: string;
  detail: unknown;
}

type Reader = (event: unknown) => RealtimeEvent | null;

function reader<Schema extends TSchema>(
  schema: Schema, map: (event: Static<Schema>) => RealtimeEvent | null,
): Reader {
  const check = TypeCompiler.Compile(schema);
  return (event) => (check.Check(event) ? map(event) : null);
}

const plain = (kind: "updated" | "speech_start" | "speech_end" | "committed"): Reader =>
  () => ({ kind });

const Text = Type.String();
const Nullable = <Schema extends TSchema>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

const created = reader(
  Type.Object({
    session: Type.Object({
      modalities: Type.Optional(Type.Unknown()),
      input_audio_format: Type.Optional(Type.Unknown()),
      input_audio_transcription: Nullable(Type.Object({ model: Nullable(Text) })),
    }),
  }),
  ({ session }) => {
    const isBeta = session.modalities !== undefined || session.input_audio_format !== undefined;
    return {
      kind: "created",
      dialect: isBeta ? "beta" : "released",
      transcriptionModel: session.input_audio_transcription?.model ?? null,
    };
  });

const Delta = Type.Object({ response_id: Nullable(Text), item_id: Text, delta: Text });

const audioDelta = reader(Delta, ({ response_id, item_id, delta }) =>
  ({ kind: "audio", responseId: response_id ?? null, itemId: item_id, base64: delta }));

const textDelta = reader(Delta, ({ response_id, item_id, delta }) =>
  ({ kind: "text", responseId: response_id ?? null, itemId: item_id, text: delta }));

const FunctionItem = Type.Object({
  id: Nullable(Text),
  type: Type.Literal("function_call"),
  call_id: Text,
  name: Text,
  arguments: Text,
});
const functionItem = TypeCompiler.Compile(FunctionItem);

const callOf = (item: Static<typeof FunctionItem>): CalledFunction =>
  ({ callId: item.call_id, itemId: item.id ?? "", name: item.name, argumentsJson: item.arguments });

const READERS = new Map<string, Reader>([
  ["session.created", created],
  ["session.updated", plain("updated")],
  ["input_audio_buffer.speech_started", plain("speech_start")],
  ["input_audio_buffer.speech_stopped", plain("speech_end")],
  ["input_audio_buffer.committed", plain("committed")],
  ["conversation.item.input_audio_transcription.delta", reader(
    Type.Object({ item_id: Text, delta: Text }),
    ({ item_id, delta }) => ({ kind: "user_delta", itemId: item_id, text: delta }))],
  ["conversation.item.input_audio_transcription.completed", reader(
    Type.Object({ item_id: Text, transcript: Text }),
    ({ item_id, transcript }) => ({ kind: "user_text", itemId: item_id, text: transcript }))],
  ["response.created", reader(
    Type.Object({ response: Type.Object({ id: Text }) }),
    ({ response }) => ({ kind: "response_start", responseId: response.id }))],
  ["response.output_audio.delta", audioDelta],
  ["response.audio.delta", audioDelta],
  ["response.output_audio_transcript.delta", textDelta],
  ["response.audio_transcript.delta", textDelta],
  ["response.output_text.delta", textDelta],
  ["response.text.delta", textDelta],
  ["response.output_item.added", reader(
    Type.Object({ item: Type.Pick(FunctionItem, ["id", "type", "name"]) }),
    ({ item }) => ({ kind: "function_named", itemId: item.id ?? "", name: item.name }))],
  ["response.function_call_arguments.done", reader(
    Type.Object({
      response_id: Nullable(Text), item_id: Text, call_id: Text, name: Nullable(Text),
      arguments: Text,
    }),
    (event) => ({
      kind: "function",
      responseId: event.response_id ?? null,
      call: {
        callId: event.call_id,
        itemId: event.item_id,
        name: event.name ?? null,
        argumentsJson: event.arguments,
      },
    }))],
  ["response.output_item.done", reader(
    Type.Object({ response_id: Nullable(Text), item: FunctionItem }),
    ({ response_id, item }) =>
      ({ kind: "function", responseId: response_id ?? null, call: callOf(item) }))],
  ["response.done", reader(
    Type.Object({
      response: Type.Object({
        id: Text, output: Nullable(Type.Array(Type.Unknown())),
        status: Type.Optional(Type.Unknown()), status_details: Type.Optional(Type.Unknown()),
      }),
    }),
    ({ response: { id, output, status, status_details: details } }) => {
      const detail = recordOf(details)?.error;
      return {
        kind: "response_end",
        responseId: id,
        calls: (output ?? []).filter((item) => functionItem.Check(item)).map(callOf),
        ...(status === "failed"
          ? { failure: { code: textOf(recordOf(detail)?.code), detail } } : {}),
      };
    })],
  ["error", reader(
    Type.Object({
      error: Type.Object({
        type: Nullable(Text), code: Nullable(Text), event_id: Nullable(Text),
      }),
    }),
    ({ error }) => ({
      kind: "error",
      eventId: error.event_id ?? null,
      type: error.type ?? "",
      code: error.code ?? "",
      detail: error,
    }))],
]);

const Named = TypeCompiler.Compile(Type.Object({ type: Type.String() }));

/** Null: the value is not an event, or not one of interest. */
export function readEvent(value: unknown): RealtimeEvent | null {
  if (!Named.Check(value)) return null;
  return READERS.get(value.type)?.(value) ?? null;
}

/**
 * The person's speech never makes the server stop a reply: it does not know what was played, so the
 * call decides, and then cancels and truncates.
 */
function turnDetection({ threshold, silenceMs }: SpeechToSpeechOptions): object {
  return {
    type: "server_vad",
    threshold: Math.min(1, Math.max(0, threshold)),
    prefix_padding_ms: PREFIX_MS,
    silence_duration_ms: Math.max(SILENCE_MS_MIN, Math.round(silenceMs)),
    create_response: true,
    interrupt_response: false,
  };
}

export interface SettingsOptions {
  dialect: Dialect;
  transcriptionModel: string | null;
  session: SpeechToSpeechOptions;
}

/** The `session` of `session.update`. The temperature is an option of the beta only. */
export function settingsOf({ dialect, transcriptionModel, session }: SettingsOptions): object {
  const { instructions, language, speaks, temperature, voice } = session;
  const tools = session.functions.map((tool) => ({ type: "function", ...tool }));
  const common = { instructions, tools, tool_choice: "auto" };
  const spokenLanguage = language === "" ? {} : { language };
  if (dialect === "beta") {
    const model = transcriptionModel ?? TRANSCRIPTION_MODEL_BETA;
    const { min, max } = TEMPERATURE_BETA;
    return {
      ...common,
      modalities: speaks ? ["text", "audio"] : ["text"],
      input_audio_format: "pcm16",
      output_audio_format: "pcm16",
      input_audio_transcription: { model, ...spokenLanguage },
      turn_detection: turnDetection(session),
      temperature: Math.min(max, Math.max(min, temperature)),
      ...(voice === null ? {} : { voice }),
    };
  }
  const format = { type: "audio/pcm", rate: WIRE_RATE };
  const model = transcriptionModel ?? TRANSCRIPTION_MODEL;
  return {
    ...common,
    type: "realtime",
    output_modalities: [speaks ? "audio" : "text"],
    audio: {
      input: {
        format,
        transcription: { model, ...spokenLanguage },
        turn_detection: turnDetection(session),
      },
      output: { format, ...(voice === null ? {} : { voice }) },
    },
  };
}

export function speakingOf(text: string): object {
  return {
    instructions: sayExactly(text),
    tool_choice: "none",
  };
}
