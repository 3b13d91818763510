// What each speech engine can do with an assistant's settings, in one table: it is read when a call
// is opened, and when an owner is warned that a setting has no effect here.
import type { SpeechConfig } from "./engines.ts";
import {
  assemblyAiHearsSeveral, deepgramHearsSeveral, openAiTakesInstructions,
} from "./vendor-models.ts";

interface SynthesizerAbilities {
  /** `voice_stability` and `voice_similarity`. */
  stability: boolean;
  /** `tts_emotion_enabled`. */
  emotion: boolean;
}

interface TranscriberAbilities {
  /** `recogniser_hints`, and the words it receives beside them. */
  hints: boolean;
  /** `secondary_language_ids`: follows a speaker from one language into another. */
  severalLanguages: boolean;
}

export function synthesizerAbilities(code: string, config: SpeechConfig): SynthesizerAbilities {
  switch (code) {
    case "elevenlabs":
      return { stability: true, emotion: true };
    case "openai-compatible":
      return { stability: false, emotion: openAiTakesInstructions(config.synthesis?.model ?? "") };
    default:
      return { stability: false, emotion: false };
  }
}

export function transcriberAbilities(code: string, config: SpeechConfig): TranscriberAbilities {
  switch (code) {
    case "deepgram":
      return { hints: true, severalLanguages: deepgramHearsSeveral(config.deepgram?.model ?? "") };
    case "assemblyai":
      return {
        hints: true, severalLanguages: assemblyAiHearsSeveral(config.assemblyAi?.model ?? ""),
      };
    case "azure":
    case "cartesia":
      return { hints: true, severalLanguages: false };
    case "gladia":
    case "openai-compatible":
    case "soniox":
      return { hints: true, severalLanguages: true };
    case "loopback":
      return { hints: false, severalLanguages: true };
    default:
      return { hints: false, severalLanguages: false };
  }
}
