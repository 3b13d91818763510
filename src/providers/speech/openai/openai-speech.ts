// Speech from any server with OpenAI's `/audio/speech`, by a request for each piece of text.
import { createOpenAiHttp, SPEECH_SERVER, type OpenAiAudioOptions } from "./openai-http.ts";
import type { Synthesizer } from "#providers/speech/port.ts";
import { RequestedSpeech } from "#providers/speech/requested-speech.ts";
import { openAiTakesInstructions } from "#providers/speech/vendor-models.ts";

/** What `response_format: "pcm"` means: 16-bit mono at this rate. */
const PCM_RATE = 24_000;
const DEFAULT_VOICES = { female: "alloy", male: "onyx" } as const;

const EMOTION = "Speak warmly and naturally, with the feeling the words call for: pleased at good "
  + "news, sorry and calm at bad, curious in questions. Never exaggerate.";

interface OpenAiSpeechOptions extends OpenAiAudioOptions {
  /** Used whatever the assistant's voice is, for servers have their own; null: the assistant's. */
  voice: string | null;
}

export function createOpenAiSpeech(options: OpenAiSpeechOptions): Synthesizer {
  const { model, voice } = options;
  const http = createOpenAiHttp(options);
  return {
    name: `OpenAI-compatible (${model})`,
    open: (wanted, publish) => new RequestedSpeech({
      vendor: SPEECH_SERVER,
      rate: PCM_RATE,
      request: (input, { gender, hasEmotion, speed, voice: own }, signal) =>
        http.post("/audio/speech", {
          model,
          voice: voice ?? own ?? DEFAULT_VOICES[gender],
          input,
          speed,
          ...(hasEmotion && openAiTakesInstructions(model) ? { instructions: EMOTION } : {}),
          response_format: "pcm",
        }, signal),
    }, wanted, publish),
  };
}
