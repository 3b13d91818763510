// Voice samples with settings that need not be saved: a sentence, spoken as calls would speak it.
// The contract has prices for messages and call minutes only, so samples are free; that is why they
// are short and rate-limited.
import { Type } from "@sinclair/typebox";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { SharedRateLimiter } from "#core/rate-limit.ts";
import { about, named, NonBlank } from "#core/schema.ts";
import { rateLimitFault } from "#http/errors.ts";
import { keyRoute, type Route } from "#http/route.ts";
import type { Catalogs } from "./catalogs.ts";
import { invalid } from "./rules.ts";
import { AssistantSettings, UpdateBody } from "./settings.ts";
import type { VoicePreviews } from "./voice-previews.ts";

interface SampleRouteOptions {
  catalogs: Catalogs;
  previews: VoicePreviews;
  /** Samples per account; null switches the limit off. */
  limiter: SharedRateLimiter | null;
}

const { voice_id, language_id } = AssistantSettings.properties;
const {
  synthesizer_provider_id, speech_speed, voice_stability, voice_similarity, tts_emotion_enabled,
} = UpdateBody.properties;
const BODY = Type.Object({
  voice_id, language_id, synthesizer_provider_id, speech_speed, voice_stability, voice_similarity,
  tts_emotion_enabled,
  text: Type.Optional(NonBlank(LIMITS.voiceSampleCharsMax, about(
    "The text to say. Defaults to a sentence in the language.", "Hello, how can I help?"))),
});
const WAV = "audio/wav";
const SOUND = Type.String(named("VoiceSample", "WAV audio: 16-bit PCM, mono.", "RIFF…"));
const FAILED = "No speech engine on this server supports these settings, or the engine has failed.";

export function voiceSampleRoutes({ catalogs, previews, limiter }: SampleRouteOptions): Route[] {
  return [keyRoute({
    method: "POST",
    path: "/user/assistants/voice-sample",
    tag: "Assistant lookups",
    summary: "Preview a voice with unsaved settings",
    description: `Free; ${LIMITS.voiceSamplesPerMinuteMax} a minute for each account.`,
    errorShape: "message",
    body: BODY,
    responses: {
      200: { description: "WAV, one channel", schema: SOUND, contentType: WAV },
      429: { description: "Too many samples" },
      503: { description: "No speech engine on this server can speak with these settings" },
    },
    handle: async ({ caller, body }) => {
      const voice = catalogs.findVoice(body.voice_id);
      if (!voice) throw fieldFault("voice_id", invalid("voice_id"));
      const language = catalogs.findLanguage(body.language_id);
      if (!language) throw fieldFault("language_id", invalid("language_id"));
      const decision = await limiter?.take(String(caller.accountId));
      if (decision && !decision.allowed) throw rateLimitFault(decision.retryAfterMs, "message");
      const providerId = body.synthesizer_provider_id ?? voice.synthesizer_provider_id;
      const provider = providerId === null ? null : catalogs.findSynthesizer(providerId);
      const file = await previews.say({
        voice, language: language.iso_2, provider: provider?.code ?? null,
        speed: body.speech_speed ?? 1, stability: body.voice_stability ?? 0.7,
        similarity: body.voice_similarity ?? 0.5, hasEmotion: body.tts_emotion_enabled ?? true,
      }, body.text ?? null);
      if (!file) throw new Fault(503, FAILED);
      if (file.length === 0) throw fieldFault("text", "The text contains nothing that can be spoken.");
      return { status: 200, contentType: WAV, content: Buffer.from(file.buffer) };
    },
  })];
}
