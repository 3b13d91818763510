// What is said over Gemini's Live interface (`BidiGenerateContent`): the setup of a session, and
// the server's messages, each of which may hold several things at once. Used by gemini-live.ts and
// gemini-turns.ts.
import { Type, type Static } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { SpeechToSpeechOptions } from "#providers/speech/port.ts";

/** Samples per second of the audio on the wire, to the model and from it. */
export const RATE_IN = 16_000;
export const RATE_OUT = 24_000;
/** Audio before the recognised beginning of speech that belongs to it. */
const PREFIX_MS = 300;
const SILENCE_MS_MIN = 200;
/** Above it the vendor's detection is made less sensitive: it has two steps. */
const THRESHOLD_HIGH = 0.5;
/** There for every account. */
const DEFAULT_VOICES = { female: "Kore", male: "Puck" } as const;

const Text = Type.Optional(Type.String());
const Flag = Type.Optional(Type.Boolean());
const Transcription = Type.Optional(Type.Object({ text: Text, finished: Flag }));

const Content = Type.Object({
  modelTurn: Type.Optional(Type.Object({
    parts: Type.Optional(Type.Array(Type.Object({
      inlineData: Type.Optional(Type.Object({ data: Text })),
    }))),
  })),
  turnComplete: Flag,
  interrupted: Flag,
  inputTranscription: Transcription,
  outputTranscription: Transcription,
});
const Call = Type.Object({
  id: Type.String(),
  name: Type.String(),
  args: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
const Message = Type.Object({
  setupComplete: Type.Optional(Type.Object({})),
  serverContent: Type.Optional(Content),
  toolCall: Type.Optional(Type.Object({ functionCalls: Type.Optional(Type.Array(Call)) })),
  toolCallCancellation: Type.Optional(Type.Object({
    ids: Type.Optional(Type.Array(Type.String())),
  })),
  goAway: Type.Optional(Type.Object({})),
  sessionResumptionUpdate: Type.Optional(Type.Object({ newHandle: Text, resumable: Flag })),
  voiceActivity: Type.Optional(Type.Object({ voiceActivityType: Text })),
});

export type GeminiContent = Static<typeof Content>;
export type GeminiCall = Static<typeof Call>;
export type GeminiMessage = Static<typeof Message>;

const messageCheck = TypeCompiler.Compile(Message);

/** Null: the value is not a message. */
export const readMessage = (value: unknown): GeminiMessage | null =>
  (messageCheck.Check(value) ? value : null);

/**
 * The person's speech interrupts a reply at the vendor. Functions block the model, as models before
 * 3.8 do anyway, so that no reply speaks of a result that is not there.
 */
export function setupOf(
  model: string, session: SpeechToSpeechOptions, handle: string | null,
): object {
  const { functions, gender, instructions, silenceMs, temperature, threshold, voice } = session;
  const voiceName = voice ?? DEFAULT_VOICES[gender];
  const functionDeclarations = functions.map(({ name, description, parameters }) =>
    ({ name, description, parametersJsonSchema: parameters, behavior: "BLOCKING" }));
  return {
    setup: {
      model: model.includes("/") ? model : `models/${model}`,
      generationConfig: {
        // The models answer only in audio: a voice of the call's own speaks the transcription.
        responseModalities: ["AUDIO"],
        temperature,
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName } } },
      },
      systemInstruction: { parts: [{ text: instructions }] },
      ...(functionDeclarations.length > 0 ? { tools: [{ functionDeclarations }] } : {}),
      realtimeInputConfig: {
        automaticActivityDetection: {
          startOfSpeechSensitivity: threshold > THRESHOLD_HIGH
            ? "START_SENSITIVITY_LOW"
            : "START_SENSITIVITY_HIGH",
          prefixPaddingMs: PREFIX_MS,
          silenceDurationMs: Math.max(SILENCE_MS_MIN, Math.round(silenceMs)),
        },
        activityHandling: "START_OF_ACTIVITY_INTERRUPTS",
      },
      inputAudioTranscription: {},
      outputAudioTranscription: {},
      sessionResumption: handle === null ? {} : { handle },
      // Without it an audio session ends after 15 minutes.
      contextWindowCompression: { slidingWindow: {} },
    },
  };
}

export const audioMessage = (data: string): object =>
  ({ realtimeInput: { audio: { data, mimeType: `audio/pcm;rate=${RATE_IN}` } } });

/** The vendor's ear waits for a silence otherwise. */
export const AUDIO_ENDS = { realtimeInput: { audioStreamEnd: true } };

/** The model answers at once, whatever it was saying. */
export const textMessage = (text: string): object =>
  ({ clientContent: { turns: [{ role: "user", parts: [{ text }] }], turnComplete: true } });

export interface GeminiAnswer {
  id: string;
  name: string;
  response: Record<string, unknown>;
}

export const answersMessage = (functionResponses: GeminiAnswer[]): object =>
  ({ toolResponse: { functionResponses } });
