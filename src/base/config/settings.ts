// Every environment variable: type, default, description; those that bound something are in
// bounds.ts. Read by config.ts.
import {
  address, addresses, addressOrName, asteriskEndpoint, baseUrl, carrierRates, countries,
  databaseUrl, ed25519Key, file, iceUrls, integer, languages, natsUrl, networks, numberPrices,
  oneOf, onOff, origins, plainName, plans, portRange, publicUrl, region, rsaKey, secondsList,
  secret, sherpaModel, text, twilioSid, url, uuid,
} from "./values.ts";
import { BOUNDS } from "./bounds.ts";
import { FILE_SETTINGS } from "./files.ts";
import { MAIL_SETTINGS } from "./mail.ts";
import { MONEY_SETTINGS } from "./money.ts";
import { IDENTITY_SETTINGS } from "./identity.ts";
import { LIMITS } from "#core/limits.ts";
import { LOG_LEVELS, type LogLevel } from "#core/logger.ts";
import type { CarrierRates, NumberPrices, Plans } from "#core/price-lists.ts";
import { sights, type Sight } from "./sights.ts";
import { setting, type Setting } from "./setting.ts";
import type { SherpaModel } from "./sherpa-model.ts";

export const SETTINGS = {
  PARLEY_HOST: setting({
    default: "127.0.0.1", description: "Address to listen on", parse: addressOrName,
  }),
  PARLEY_PORT: setting({
    default: 8080, description: "Port to listen on; 0 takes any free one", parse: integer(0, 65535),
  }),
  PARLEY_PUBLIC_URL: setting<string | null>({
    default: null, description: "URL at which people reach the server, if it is behind a proxy",
    parse: publicUrl,
  }),
  PARLEY_NODE_URL: setting<string | null>({
    default: null, description: "URL that reaches only this node, for carriers' requests about its calls; absent: PARLEY_PUBLIC_URL",
    parse: baseUrl,
  }),
  PARLEY_TRUSTED_PROXIES: setting<string[]>({
    default: [], description: "Addresses or networks whose X-Forwarded-For and -Proto are trusted, separated by commas",
    parse: networks,
  }),
  PARLEY_ALLOW_PRIVATE_NETWORKS: setting<string[]>({
    default: [], description: "Private networks (CIDR, separated by commas) that tools, websites, webhooks and SIP trunks may be in, e.g. 127.0.0.1/32 for this machine",
    parse: networks,
  }),
  PARLEY_TLS_KEY_FILE: setting<string | null>({
    default: null, description: "TLS private key (PEM); needs PARLEY_TLS_CERT_FILE", parse: file,
  }),
  PARLEY_TLS_CERT_FILE: setting<string | null>({
    default: null, description: "TLS certificate chain (PEM); needs PARLEY_TLS_KEY_FILE", parse: file,
  }),
  PARLEY_DATA_DIR: setting({
    default: "data/local", description: "Folder for the database and the generated secret", parse: text,
  }),
  PARLEY_DATABASE_URL: setting<string | null>({
    default: null,
    description: "PostgreSQL (15 or later) to store everything in, e.g. postgres://parley:password@db.example.com/parley; absent: a file in the data folder",
    parse: databaseUrl, secret: true,
  }),
  PARLEY_NATS_URL: setting<string | null>({
    default: null, description: "NATS server (several: separated by commas, with one login) that connects the nodes of PARLEY_DATABASE_URL, e.g. nats://127.0.0.1:4222",
    parse: natsUrl, secret: true,
  }),
  PARLEY_CLUSTER: setting({
    default: "parley", description: "Name of the nodes that belong together, if others use the NATS server too",
    parse: plainName,
  }),
  ...FILE_SETTINGS,
  ...MAIL_SETTINGS,
  PARLEY_SECRET: setting<string | null>({
    default: null, description: "Key that encrypts secrets at rest; absent: generated into the data folder",
    parse: secret, secret: true,
  }),
  PARLEY_METRICS_TOKEN: setting<string | null>({
    default: null, description: "Bearer token for reading /metrics; absent: only this machine may read them, and no proxy",
    parse: secret, secret: true,
  }),
  PARLEY_LOG_LEVEL: setting<LogLevel>({
    default: "info", description: `Least severe level of log lines: ${LOG_LEVELS.join(", ")}`,
    parse: oneOf(LOG_LEVELS),
  }),
  PARLEY_DEMO: setting<boolean | null>({
    default: null, description: "Create a demo account, key and assistant in an empty data folder; absent: only if PARLEY_HOST is this machine alone",
    parse: onOff,
  }),
  PARLEY_MODEL_URL: setting<string | null>({
    default: null, description: "OpenAI-compatible server, e.g. http://127.0.0.1:11434/v1; absent: the offline model",
    parse: url,
  }),
  PARLEY_MODEL_KEY: setting<string | null>({
    default: null, description: "Key of the server at PARLEY_MODEL_URL", parse: text, secret: true,
  }),
  PARLEY_MODEL_NAME: setting<string | null>({
    default: null, description: "Model to use at PARLEY_MODEL_URL; absent: the first one it lists", parse: text,
  }),
  PARLEY_MODEL_SEES: setting<Sight[]>({
    default: [], parse: sights,
    description: "What the model of PARLEY_MODEL_URL can see besides text: `image`, `pdf` or both, separated by a comma. For other models, `sees` in the models file",
  }),
  PARLEY_MODELS_FILE: setting<string | null>({
    default: null, description: "Model catalog to use instead of data/models.json", parse: file,
  }),
  PARLEY_EMBEDDINGS_URL: setting<string | null>({
    default: null, description: "OpenAI-compatible server for embeddings; absent: knowledge is searched by words only",
    parse: url,
  }),
  PARLEY_EMBEDDINGS_KEY: setting<string | null>({
    default: null, description: "Key of the server at PARLEY_EMBEDDINGS_URL", parse: text, secret: true,
  }),
  PARLEY_EMBEDDINGS_MODEL: setting({
    default: "text-embedding-3-small", description: "Model to use at PARLEY_EMBEDDINGS_URL", parse: text,
  }),
  PARLEY_SPEECH: setting<"auto" | "loopback">({
    default: "auto", description: "auto: the vendors and engines that are set up; loopback: speech made of numbers, for tests",
    parse: oneOf(["auto", "loopback"] as const),
  }),
  PARLEY_TRANSCRIPTION_URL: setting<string | null>({
    default: null, description: "OpenAI-compatible server for speech recognition, e.g. http://127.0.0.1:8000/v1",
    parse: url,
  }),
  PARLEY_TRANSCRIPTION_KEY: setting<string | null>({
    default: null, description: "Key of the server at PARLEY_TRANSCRIPTION_URL", parse: text, secret: true,
  }),
  PARLEY_TRANSCRIPTION_MODEL: setting({
    default: "whisper-1", description: "Model to use at PARLEY_TRANSCRIPTION_URL", parse: text,
  }),
  PARLEY_SYNTHESIS_URL: setting<string | null>({
    default: null, description: "OpenAI-compatible server for speech synthesis, e.g. http://127.0.0.1:8880/v1", parse: url,
  }),
  PARLEY_SYNTHESIS_KEY: setting<string | null>({
    default: null, description: "Key of the server at PARLEY_SYNTHESIS_URL", parse: text, secret: true,
  }),
  PARLEY_SYNTHESIS_MODEL: setting({
    default: "tts-1", description: "Model to use at PARLEY_SYNTHESIS_URL", parse: text,
  }),
  PARLEY_SYNTHESIS_VOICE: setting<string | null>({
    default: null, description: "Voice to use at PARLEY_SYNTHESIS_URL; absent: OpenAI's name for the assistant's voice",
    parse: text,
  }),
  PARLEY_DEEPGRAM_KEY: setting<string | null>({
    default: null, description: "Key of a Deepgram account, for speech recognition", parse: text, secret: true,
  }),
  PARLEY_DEEPGRAM_MODEL: setting({
    default: "nova-3", description: "Deepgram's model; one that begins with flux detects the ends of turns itself", parse: text,
  }),
  PARLEY_DEEPGRAM_URL: setting<string | null>({
    default: "https://api.deepgram.com", description: "Server of PARLEY_DEEPGRAM_KEY", parse: url,
  }),
  PARLEY_ASSEMBLYAI_KEY: setting<string | null>({
    default: null, description: "Key of an AssemblyAI account, for speech recognition", parse: text, secret: true,
  }),
  PARLEY_ASSEMBLYAI_MODEL: setting({
    default: "universal-streaming-multilingual", description: "AssemblyAI's streaming model; the default understands English, Spanish, German, French, Portuguese and Italian",
    parse: text,
  }),
  PARLEY_ASSEMBLYAI_URL: setting<string | null>({
    default: "https://streaming.assemblyai.com", description: "Server of PARLEY_ASSEMBLYAI_KEY; in the EU https://streaming.eu.assemblyai.com",
    parse: url,
  }),
  PARLEY_SONIOX_KEY: setting<string | null>({
    default: null, description: "Key of a Soniox account, for speech recognition", parse: text, secret: true,
  }),
  PARLEY_SONIOX_MODEL: setting({
    default: "stt-rt-v5", description: "Soniox's model", parse: text,
  }),
  PARLEY_SONIOX_URL: setting<string | null>({
    default: "https://stt-rt.soniox.com", description: "Server of PARLEY_SONIOX_KEY", parse: url,
  }),
  PARLEY_GLADIA_KEY: setting<string | null>({
    default: null, description: "Key of a Gladia account, for speech recognition", parse: text, secret: true,
  }),
  PARLEY_GLADIA_MODEL: setting({
    default: "solaria-1", description: "Gladia's model", parse: text,
  }),
  PARLEY_GLADIA_URL: setting<string | null>({
    default: "https://api.gladia.io", description: "Server of PARLEY_GLADIA_KEY; append ?region=eu-west or ?region=us-west for a region", parse: url,
  }),
  PARLEY_AZURE_KEY: setting<string | null>({
    default: null, description: "Key of an Azure Speech resource, for speech recognition and synthesis; needs PARLEY_AZURE_REGION", parse: text, secret: true,
  }),
  PARLEY_AZURE_REGION: setting<string | null>({
    default: null, description: "Region of that resource, such as westeurope", parse: region,
  }),
  PARLEY_AZURE_URL: setting<string | null>({
    default: null, description: "Server of PARLEY_AZURE_KEY, instead of the two in its region", parse: url,
  }),
  PARLEY_GOOGLE_KEY: setting<string | null>({
    default: null, description: "Key of Google Cloud's Text-to-Speech API, for speech synthesis", parse: text, secret: true,
  }),
  PARLEY_GOOGLE_URL: setting<string | null>({
    default: "https://texttospeech.googleapis.com", description: "Server of PARLEY_GOOGLE_KEY", parse: url,
  }),
  PARLEY_CARTESIA_KEY: setting<string | null>({
    default: null, description: "Key of a Cartesia account, for speech recognition and synthesis", parse: text, secret: true,
  }),
  PARLEY_CARTESIA_TRANSCRIPTION_MODEL: setting({
    default: "ink-2", description: "Cartesia's model for speech recognition; with ink-2, languages other than English use ink-whisper",
    parse: text,
  }),
  PARLEY_CARTESIA_SYNTHESIS_MODEL: setting({
    default: "sonic-3", description: "Cartesia's model for speech synthesis", parse: text,
  }),
  PARLEY_CARTESIA_URL: setting<string | null>({
    default: "https://api.cartesia.ai", description: "Server of PARLEY_CARTESIA_KEY", parse: url,
  }),
  PARLEY_ELEVENLABS_KEY: setting<string | null>({
    default: null, description: "Key of an ElevenLabs account, for speech synthesis", parse: text, secret: true,
  }),
  PARLEY_ELEVENLABS_MODEL: setting({
    default: "eleven_flash_v2_5", description: "ElevenLabs' model", parse: text,
  }),
  PARLEY_ELEVENLABS_URL: setting<string | null>({
    default: "https://api.elevenlabs.io", description: "Server of PARLEY_ELEVENLABS_KEY", parse: url,
  }),
  PARLEY_REALTIME_URL: setting<string | null>({
    default: null, description: "Server for OpenAI's Realtime protocol, e.g. https://api.openai.com/v1, for the modes multimodal and dualplex",
    parse: url,
  }),
  PARLEY_REALTIME_KEY: setting<string | null>({
    default: null, description: "Key of the server at PARLEY_REALTIME_URL", parse: text, secret: true,
  }),
  PARLEY_REALTIME_MODEL: setting({
    default: "gpt-realtime", description: "Model to use at PARLEY_REALTIME_URL", parse: text,
  }),
  PARLEY_GEMINI_KEY: setting<string | null>({
    default: null, description: "Key of the Gemini API, whose Live models hear and speak in the modes multimodal and dualplex", parse: text, secret: true,
  }),
  PARLEY_GEMINI_MODEL: setting({
    default: "gemini-3.8-live", description: "Gemini's Live model, if the assistant does not name one", parse: text,
  }),
  PARLEY_GEMINI_URL: setting<string | null>({
    default: "https://generativelanguage.googleapis.com", description: "Server of PARLEY_GEMINI_KEY", parse: url,
  }),
  PARLEY_SHERPA_DIR: setting<SherpaModel | null>({
    default: null, description: "Folder of a streaming sherpa-onnx model, for speech recognition on this machine",
    parse: sherpaModel,
  }),
  PARLEY_EAGER_REPLIES: setting({
    default: true,
    description: "Calls: ask the model already during the silence that ends the caller's turn, so that the answer is heard sooner; a reply that is not needed is dropped unheard, and costs only what the model charges for it (parley_eager_tokens_dropped_total)",
    parse: onOff,
  }),
  PARLEY_END_OF_TURN_MODEL: setting<string | null>({
    default: null,
    description: "File of an end-of-turn model (ONNX; Smart Turn v3): with it, the sound decides together with the words how long a silence must be to end a turn",
    parse: file,
  }),
  PARLEY_SHERPA_LANGUAGES: setting({
    default: ["en"], description: "Languages (ISO 639-1, separated by commas) that the model of PARLEY_SHERPA_DIR understands",
    parse: languages,
  }),
  PARLEY_CALCOM_URL: setting<string | null>({
    default: "https://api.cal.com",
    description: "Server of Cal.com's API for calendar_integration; it can be self-hosted", parse: url,
  }),
  ...MONEY_SETTINGS,
  PARLEY_NUMBER_PRICES_FILE: setting<NumberPrices | null>({
    default: null, description: "Monthly prices of phone numbers by country, instead of data/number-prices.json",
    parse: numberPrices,
  }),
  PARLEY_CARRIER_RATES_FILE: setting<CarrierRates | null>({
    default: null, description: "Carriers' prices per minute, by carrier, direction and prefix of the called number; absent: carrier_cost is 0",
    parse: carrierRates,
  }),
  PARLEY_PLANS_FILE: setting<Plans | null>({
    default: null, description: "Plans and their limits, instead of data/plans.json; one must be called self-hosted. parley account plan changes the plan of an account",
    parse: plans,
  }),
  PARLEY_WEBHOOK_SECONDS_MAX: setting({
    default: LIMITS.webhookMs / 1000, description: "Seconds the receiver of a webhook may take to answer", parse: integer(1, 120),
  }),
  PARLEY_WEBHOOK_RETRY_SECONDS: setting({
    default: [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400],
    description: "Seconds to wait before the second, third … attempt to deliver a webhook; after the last one it is given up",
    parse: secondsList,
  }),
  PARLEY_TWILIO_ACCOUNT_SID: setting<string | null>({
    default: null, description: "Twilio account for buying phone numbers and for calls; calls need PARLEY_PUBLIC_URL",
    parse: twilioSid,
  }),
  PARLEY_TWILIO_AUTH_TOKEN: setting<string | null>({
    default: null, description: "Token of PARLEY_TWILIO_ACCOUNT_SID", parse: text, secret: true,
  }),
  PARLEY_TWILIO_URL: setting<string | null>({
    default: "https://api.twilio.com", description: "Server of PARLEY_TWILIO_ACCOUNT_SID; for SignalWire https://<space>.signalwire.com/api/laml",
    parse: url,
  }),
  PARLEY_TWILIO_SIGNING_KEY: setting<string | null>({
    default: null, description: "Key that signs webhooks, if it is not the token: SignalWire's signing key",
    parse: text, secret: true,
  }),
  PARLEY_TELNYX_API_KEY: setting<string | null>({
    default: null, description: "Key of a Telnyx account for calls; as with Plivo and Vonage, calls need PARLEY_PUBLIC_URL",
    parse: text, secret: true,
  }),
  PARLEY_TELNYX_PUBLIC_KEY: setting<string | null>({
    default: null, description: "Key that Telnyx signs webhooks with, from its portal (base64)", parse: ed25519Key,
  }),
  PARLEY_TELNYX_CONNECTION_ID: setting<string | null>({
    default: null, description: "Id of the Voice API application that places calls", parse: text,
  }),
  PARLEY_TELNYX_URL: setting<string | null>({
    default: "https://api.telnyx.com", description: "Server of PARLEY_TELNYX_API_KEY", parse: url,
  }),
  PARLEY_PLIVO_AUTH_ID: setting<string | null>({
    default: null, description: "Plivo account for calls", parse: text,
  }),
  PARLEY_PLIVO_AUTH_TOKEN: setting<string | null>({
    default: null, description: "Token of PARLEY_PLIVO_AUTH_ID", parse: text, secret: true,
  }),
  PARLEY_PLIVO_URL: setting<string | null>({
    default: "https://api.plivo.com", description: "Server of PARLEY_PLIVO_AUTH_ID", parse: url,
  }),
  PARLEY_VONAGE_APPLICATION_ID: setting<string | null>({
    default: null, description: "Vonage application for calls", parse: uuid,
  }),
  PARLEY_VONAGE_PRIVATE_KEY: setting<string | null>({
    default: null, description: "Private key of PARLEY_VONAGE_APPLICATION_ID (PEM)", parse: rsaKey, secret: true,
  }),
  PARLEY_VONAGE_SIGNATURE_SECRET: setting<string | null>({
    default: null, description: "Secret that Vonage signs webhooks with, from its dashboard", parse: text, secret: true,
  }),
  PARLEY_VONAGE_URL: setting<string | null>({
    default: "https://api.nexmo.com", description: "Server of PARLEY_VONAGE_APPLICATION_ID", parse: url,
  }),
  PARLEY_ASTERISK_URL: setting<string | null>({
    default: null, description: "Asterisk (20.18, 22.8 or later) for calls: its HTTP server, e.g. http://127.0.0.1:8088",
    parse: url,
  }),
  PARLEY_ASTERISK_USER: setting<string | null>({
    default: null, description: "User in Asterisk's ari.conf", parse: text,
  }),
  PARLEY_ASTERISK_PASSWORD: setting<string | null>({
    default: null, description: "Password of PARLEY_ASTERISK_USER", parse: text, secret: true,
  }),
  PARLEY_ASTERISK_ENDPOINT: setting<string | null>({
    default: null, description: "What Asterisk dials, e.g. PJSIP/{number}@trunk", parse: asteriskEndpoint,
  }),
  PARLEY_ASTERISK_APP: setting({
    default: "parley", description: "Stasis application, and context for transfers in Asterisk's dialplan; different for each server",
    parse: plainName,
  }),
  PARLEY_ASTERISK_MEDIA: setting({
    default: "parley", description: "Entry in Asterisk's websocket_client.conf that points to /carriers/asterisk/media of this server",
    parse: plainName,
  }),
  PARLEY_NUMBER_GRACE_DAYS: setting({
    default: 7, description: "Days that an unpaid phone number still works; it is lost after as many days again",
    parse: integer(1, 365),
  }),
  PARLEY_SIP_PORT: setting<number | null>({
    default: null, description: "Port for telephone calls over SIP (UDP and TCP; TLS on the next one, with PARLEY_TLS_*); absent: none",
    parse: integer(0, 65_534),
  }),
  PARLEY_SIP_HOST: setting({
    default: "0.0.0.0", description: "Address to listen on for SIP and its audio; :: is IPv6 and IPv4", parse: text,
  }),
  PARLEY_SIP_PUBLIC_HOST: setting<string | null>({
    default: null, description: "Address or name at which telephone systems reach the server, if it is behind NAT",
    parse: addressOrName,
  }),
  PARLEY_RTP_PORTS: setting<{ min: number; max: number } | null>({
    default: null, description: "UDP ports for the audio of calls over SIP, such as 10000-10999, two per call; absent: any",
    parse: portRange,
  }),
  PARLEY_WEBRTC: setting({
    default: true, description: "Web calls use WebRTC if the page supports it and UDP gets through; off: only their sockets",
    parse: onOff,
  }),
  PARLEY_WEBRTC_PORT: setting<number | null>({
    default: null, description: "UDP port for the audio of all web calls; 0 takes any free one; absent: the number of PARLEY_PORT",
    parse: integer(0, 65_535),
  }),
  PARLEY_WEBRTC_HOST: setting<string | null>({
    default: null, description: "Address to listen on at PARLEY_WEBRTC_PORT, such as 0.0.0.0 behind a proxy; absent: PARLEY_HOST",
    parse: address,
  }),
  PARLEY_WEBRTC_PUBLIC_HOSTS: setting<string[]>({
    default: [], description: "Addresses at which pages reach PARLEY_WEBRTC_PORT, separated by commas, if the server is behind NAT or in a container",
    parse: addresses,
  }),
  PARLEY_ICE_URLS: setting<string[]>({
    default: [], description: "STUN and TURN servers for pages, such as turn:turn.example.com:3478, separated by commas",
    parse: iceUrls,
  }),
  PARLEY_TURN_USER: setting<string | null>({
    default: null, description: "User name at the TURN servers; absent: names valid for half a day, created with PARLEY_TURN_SECRET",
    parse: text,
  }),
  PARLEY_TURN_SECRET: setting<string | null>({
    default: null, description: "Password of PARLEY_TURN_USER or, without that, the secret shared with the TURN servers (coturn: static-auth-secret)",
    parse: secret, secret: true,
  }),
  PARLEY_CALLS_MAX: setting<number | null>({
    default: null, description: "Calls this server accepts at a time; absent: as many as it can carry without late audio",
    parse: integer(1, 100_000),
  }),
  PARLEY_DIAL_RATE_PER_MINUTE: setting({
    default: 60, description: "Calls an account may place per minute, a sixth of them at once",
    parse: integer(1, 100_000),
  }),
  PARLEY_DIAL_COUNTRIES: setting<string[]>({
    default: [], description: "Countries (ISO 3166, separated by commas) that may be called; absent: all. Premium-rate, shared-cost and satellite numbers never are",
    parse: countries,
  }),
  PARLEY_RECORDING_FORMAT: setting<"wav" | "opus">({
    default: "wav",
    description: "Format of recordings: wav, or opus (Opus in Ogg, a tenth of the size, converted after the call)",
    parse: oneOf(["wav", "opus"] as const),
  }),
  PARLEY_RECORDING_DAYS: setting({
    default: 90, description: "Days that recordings are kept", parse: integer(1, 3650),
  }),
  PARLEY_ALLOWED_ORIGINS: setting({
    default: ["*"], description: "Origins whose pages may use assistants that have no allowed_origins; * is any",
    parse: origins,
  }),
  ...IDENTITY_SETTINGS,
  ...BOUNDS,
} satisfies Record<string, Setting<never> | object>;

/** A setting, and the one without which it is of no use. */
export const NEEDS: [keyof typeof SETTINGS, keyof typeof SETTINGS][] = [
  ["PARLEY_NATS_URL", "PARLEY_DATABASE_URL"],
  ["PARLEY_OIDC_DEFAULT_ROLE", "PARLEY_OIDC_ISSUER"],
];

/** Settings that are of no use one without the other. */
export const TOGETHER: (keyof typeof SETTINGS)[][] = [
  ["PARLEY_AZURE_KEY", "PARLEY_AZURE_REGION"],
  ["PARLEY_TLS_KEY_FILE", "PARLEY_TLS_CERT_FILE"],
  ["PARLEY_SMTP_URL", "PARLEY_SMTP_FROM"],
  ["PARLEY_STRIPE_KEY", "PARLEY_STRIPE_WEBHOOK_SECRET"],
  ["PARLEY_OIDC_ISSUER", "PARLEY_OIDC_CLIENT_ID", "PARLEY_OIDC_CLIENT_SECRET"],
  ["PARLEY_S3_ACCESS_KEY", "PARLEY_S3_SECRET_KEY"],
  ["PARLEY_TWILIO_ACCOUNT_SID", "PARLEY_TWILIO_AUTH_TOKEN"],
  ["PARLEY_TELNYX_API_KEY", "PARLEY_TELNYX_PUBLIC_KEY", "PARLEY_TELNYX_CONNECTION_ID"],
  ["PARLEY_PLIVO_AUTH_ID", "PARLEY_PLIVO_AUTH_TOKEN"],
  [
    "PARLEY_VONAGE_APPLICATION_ID", "PARLEY_VONAGE_PRIVATE_KEY", "PARLEY_VONAGE_SIGNATURE_SECRET",
  ],
  [
    "PARLEY_ASTERISK_URL", "PARLEY_ASTERISK_USER", "PARLEY_ASTERISK_PASSWORD",
    "PARLEY_ASTERISK_ENDPOINT",
  ],
];
