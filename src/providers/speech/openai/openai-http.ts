// What OpenAI's two audio interfaces over HTTP have in common, which OpenAI, Speaches,
// Kokoro-FastAPI and others serve. Used by openai-speech.ts and openai-transcription.ts.
import { keyHeaders } from "#providers/openai-server.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { createVendorHttp, type VendorHttp, type VendorHttpLimits } from "#providers/speech/vendor-http.ts";

/** The name in messages for operators: the server may be anybody's. */
export const SPEECH_SERVER = "the speech server";

export interface OpenAiAudioOptions extends VendorArgs {
  limits?: Partial<VendorHttpLimits>;
}

export const createOpenAiHttp = ({ key, limits, url }: OpenAiAudioOptions): VendorHttp =>
  createVendorHttp({
    vendor: SPEECH_SERVER, url, key,
    headers: keyHeaders(url, key),
    ...(limits ? { limits } : {}),
  });
