// Speech by Azure, by a request for each piece of text (`cognitiveservices/v1`), answered as it is
// made. Where the assistant's voice is none of Azure's, one of the two that speak every language is
// asked for.
import type { VendorConfig } from "#providers/speech/engines.ts";
import type { SynthesisOptions, Synthesizer } from "#providers/speech/port.ts";
import { localeOf } from "#providers/speech/locales.ts";
import { RequestedSpeech } from "#providers/speech/requested-speech.ts";
import { createVendorHttp } from "#providers/speech/vendor-http.ts";

const VENDOR = "Azure";
const DEFAULT_VOICES = {
  female: "en-US-AvaMultilingualNeural", male: "en-US-AndrewMultilingualNeural",
} as const;
const NAMESPACES = "xmlns='http://www.w3.org/2001/10/synthesis'"
  + " xmlns:mstts='http://www.w3.org/2001/mstts'";
const ESCAPES: Record<string, string> = {
  "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&apos;",
};
/** Characters that XML cannot hold, even escaped. */
const NO_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

const escaped = (text: string): string =>
  text.toWellFormed().replace(NO_XML, " ").replace(/[&<>"']/g, (sign) => ESCAPES[sign] ?? sign);

function ssmlOf(text: string, { gender, language, speed, voice }: SynthesisOptions): string {
  const locale = escaped(localeOf(language));
  const name = escaped(voice ?? DEFAULT_VOICES[gender]);
  const percent = Math.round((speed - 1) * 100);
  const paced = percent === 0
    ? escaped(text)
    : `<prosody rate='${percent > 0 ? "+" : ""}${percent}%'>${escaped(text)}</prosody>`;
  // A multilingual voice is told the language; any other speaks its own.
  const spoken = voice === null ? `<lang xml:lang='${locale}'>${paced}</lang>` : paced;
  return `<speak version='1.0' ${NAMESPACES} xml:lang='${locale}'><voice name='${name}'>${spoken}`
    + "</voice></speak>";
}

export function createAzureVoice({ key, url }: Omit<VendorConfig, "model">): Synthesizer {
  const http = createVendorHttp({
    vendor: VENDOR, url, key,
    headers: {
      "content-type": "application/ssml+xml",
      // The service refuses requests without one.
      "user-agent": "Parley",
      ...(key === null ? {} : { "ocp-apim-subscription-key": key }),
    },
  });
  return {
    name: VENDOR,
    open: (wanted, publish) => new RequestedSpeech({
      vendor: VENDOR,
      rate: wanted.rate,
      request: (text, options, signal) => http.post(
        "/cognitiveservices/v1", ssmlOf(text, options), signal,
        { "x-microsoft-outputformat": `raw-${options.rate / 1000}khz-16bit-mono-pcm` }),
    }, wanted, publish),
  };
}
