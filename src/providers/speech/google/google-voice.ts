// Speech by Google Cloud, by a request for each piece of text (`/v1/text:synthesize`), answered
// when all of it is made. Its recogniser has no adaptor: it streams over gRPC alone.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProviderError } from "#core/faults.ts";
import type { VendorConfig } from "#providers/speech/engines.ts";
import { localeOf } from "#providers/speech/locales.ts";
import type { SynthesisOptions, Synthesizer } from "#providers/speech/port.ts";
import { RequestedSpeech } from "#providers/speech/requested-speech.ts";
import { createVendorHttp } from "#providers/speech/vendor-http.ts";

const VENDOR = "Google";
const WAV_SIGN = "RIFF";
const WAV_DATA = "data";
/** The tag of the data chunk, and its length. */
const WAV_DATA_BYTES = 8;

const answerCheck = TypeCompiler.Compile(Type.Object({ audioContent: Type.String() }));

const requestOf = (text: string, options: SynthesisOptions): object => {
  const { gender, language, rate, speed, voice } = options;
  const languageCode = voice === null ? localeOf(language) : localeOfVoice(voice);
  return {
    input: { text },
    voice: voice === null
      ? { languageCode, ssmlGender: gender.toUpperCase() }
      : { languageCode, name: voice },
    audioConfig: { audioEncoding: "LINEAR16", sampleRateHertz: rate, speakingRate: speed },
  };
};

/** The locale is the beginning of a voice's name: `de-DE-Neural2-F`. */
const localeOfVoice = (name: string): string => name.split("-").slice(0, 2).join("-");

/** The samples of a WAV file; anything else is taken for bare samples. */
function samplesOf(bytes: Buffer): Buffer {
  if (!bytes.subarray(0, WAV_SIGN.length).equals(Buffer.from(WAV_SIGN))) return bytes;
  const at = bytes.indexOf(WAV_DATA);
  return at < 0 ? Buffer.alloc(0) : bytes.subarray(at + WAV_DATA_BYTES);
}

export function createGoogleVoice({ key, url }: Omit<VendorConfig, "model">): Synthesizer {
  const http = createVendorHttp({
    vendor: VENDOR, url, key,
    headers: key === null ? {} : { "x-goog-api-key": key },
  });
  return {
    name: VENDOR,
    open: (wanted, publish) => new RequestedSpeech({
      vendor: VENDOR,
      rate: wanted.rate,
      request: async (text, options, signal) => {
        const answer = await http.ask("/v1/text:synthesize", requestOf(text, options), signal);
        if (!answerCheck.Check(answer)) {
          throw new ProviderError(`${VENDOR} sent an unexpected answer`, { retryable: false });
        }
        return once(samplesOf(Buffer.from(answer.audioContent, "base64")));
      },
    }, wanted, publish),
  };
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
