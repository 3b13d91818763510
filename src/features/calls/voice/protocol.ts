// The messages the main thread and the media thread exchange about a call. Everything is plain
// data; audio is transferred, not copied.
import type {
  CarrierName, DialRequest, Leg, LegEvent, Offer, RefusalCause,
} from "#providers/carriers/port.ts";
import type { TrunkSetup } from "#providers/carriers/sip/trunks/trunk.ts";
import type { Author } from "#events/events.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import type { Pcm, RealtimeVendor, SpeechToSpeechOptions } from "#providers/speech/port.ts";
import type { AnsweredBy, EndReason } from "#features/calls/records/records.ts";
import type { CallSummary, Said, VoiceState } from "./brain.ts";
import type { VoiceSettings } from "./settings.ts";
import type { WarmReport, WarmSetup } from "./warm-host.ts";
import type { SpeakUp } from "./turns/taking-part.ts";

/** Samples per second of what a person of the account says and hears, whatever the call's are. */
export const PERSON_RATE = 16_000;

/** As catalogs name them; null: none is needed. */
export interface EngineCodes {
  synthesizer: string | null;
  /** Null also when the words come with the leg. */
  transcriber: string | null;
}

export interface CallSetup {
  settings: VoiceSettings;
  /** How long the reserved money lasts. */
  durationMaxMs: number;
  greeting: string;
  leg: LegSetup;
  engines: EngineCodes;
  /** A model that hears by itself, and speaks if no synthesizer is named; null: pipeline mode. */
  realtime: (Omit<SpeechToSpeechOptions, "rate" | "speaks"> & { vendor: RealtimeVendor }) | null;
  /** Absolute path; null: nothing is recorded. */
  recordingPath: string | null;
}

export type LegSetup =
  /** The main thread has the socket and forwards what passes it. `hasLine`: to a telephone. */
  | { kind: "remote"; rate: Leg["rate"]; hasLine: boolean }
  | ({ kind: "dialled"; carrier: CarrierName } & DialRequest)
  | { kind: "offered"; carrier: CarrierName; offerId: string; rate: Leg["rate"] };

/** Messages to a carrier of the media thread that belong to no call yet. */
export type ToCarrier =
  | { kind: "refuse"; carrier: CarrierName; offerId: string; cause: RefusalCause }
  /** All trunks; those that are missing were removed. */
  | { kind: "trunks"; trunks: TrunkSetup[] }
  /** Whether one more call would be taken, for a far end that asks first (SIP OPTIONS). */
  | { kind: "room"; hasRoom: boolean }
  /** Unregisters from the registrars; answered by `closed`. */
  | { kind: "close" };

export type FromCarrier =
  /** Calls can come in over SIP, at these ports. */
  | { kind: "listening"; port: number; tlsPort: number | null }
  | { kind: "offer"; carrier: CarrierName; offer: Offer }
  | { kind: "closed" };

/** The path of a web call's sound: as PCM over its socket, or as packets to its WebRTC peer. */
export type SoundPath = "socket" | "peer";

/** From a page's end of WebRTC: its offer, and over which path it sends from now on. */
export type PeerRequest = { kind: "offer"; sdp: string } | { kind: "path"; path: SoundPath };

/** From this end: the answer, or why there is none, and over which path it sends from now on. */
export type PeerReport =
  | { kind: "answer"; sdp: string }
  | { kind: "refused"; reason: string }
  | { kind: "path"; path: SoundPath }
  /** The page's sound arrives over WebRTC; reported once a second. */
  | { kind: "heard" };

export type ToMedia =
  | { kind: "open"; callId: number; setup: CallSetup }
  /** Something happened to a `remote` leg. */
  | { kind: "leg"; callId: number; event: LegEvent }
  | { kind: "peer"; callId: number; request: PeerRequest }
  | { kind: "reply_text"; callId: number; turn: number; text: string }
  | { kind: "reply_end"; callId: number; turn: number; failed: boolean }
  | { kind: "function"; callId: number; running: boolean }
  /** Answers `function_call`. */
  | { kind: "function_result"; callId: number; functionCallId: string; json: string }
  | { kind: "say"; callId: number; text: string }
  | { kind: "mute"; callId: number; on: boolean }
  | { kind: "listen"; callId: number; on: boolean }
  | { kind: "send_dtmf"; callId: number; digits: string }
  /** A person joins, or changes whether they are alone. `ears`: the code of a recogniser. */
  | {
      kind: "person_joined"; callId: number; author: Author; isAlone: boolean; ears: string | null;
    }
  /** What the person says, at PERSON_RATE. */
  | { kind: "person_audio"; callId: number; pcm: Pcm }
  | { kind: "person_left"; callId: number; wasLost: boolean }
  | { kind: "hint"; callId: number }
  /** Words for a model that hears by itself, which answers them. */
  | { kind: "tell"; callId: number; text: string }
  /** Another assistant takes over, with its own voice and manners. */
  | {
      kind: "become"; callId: number; settings: VoiceSettings; greeting: string;
      engines: EngineCodes; instructions: string; functions: ModelFunction[];
    }
  /** A colleague is to be called, and briefed once the summary of the call has come. */
  | { kind: "warm"; callId: number; setup: WarmSetup }
  | { kind: "summary"; callId: number; text: string }
  | { kind: "end_after_speech"; callId: number; reason: EndReason; to: string | null }
  | { kind: "hang_up"; callId: number; reason: EndReason };

export type FromMedia =
  | { kind: "ringing"; callId: number }
  | { kind: "answered"; callId: number }
  /** Whether the customer's sound arrives; false once nothing has come for some seconds. */
  | { kind: "sound"; callId: number; isComing: boolean }
  | { kind: "answered_by"; callId: number; by: AnsweredBy }
  | {
      kind: "reply"; callId: number; turn: number; text: string; language: string | null;
      ahead: string | null;
    }
  | { kind: "go_ahead"; callId: number; turn: number }
  | { kind: "reengage"; callId: number; turn: number }
  | { kind: "speak_up"; callId: number; turn: number; why: SpeakUp }
  | { kind: "cancel"; callId: number; turn: number }
  | {
      kind: "function_call"; callId: number; turn: number; functionCallId: string; name: string;
      argumentsJson: string;
    }
  | { kind: "said"; callId: number; said: Said }
  | { kind: "delta"; callId: number; speaker: "assistant" | "customer"; text: string }
  | { kind: "state"; callId: number; state: VoiceState }
  /** The next frame of a `remote` leg, for the main thread to send. */
  | { kind: "frame"; callId: number; pcm: Pcm }
  | { kind: "peer"; callId: number; report: PeerReport }
  | { kind: "clear"; callId: number }
  | { kind: "mark"; callId: number }
  | { kind: "dtmf"; callId: number; digits: string }
  | { kind: "transfer"; callId: number; to: string }
  | { kind: "warm"; callId: number; report: WarmReport }
  | { kind: "transfer_failed"; callId: number; detail: string | null }
  /** What a person who takes part hears: the call without their own voice, at PERSON_RATE. */
  | { kind: "person_hears"; callId: number; pcm: Pcm }
  /** Both sides mixed, while somebody listens in. */
  | { kind: "tap"; callId: number; pcm: Pcm }
  /** Nothing follows. `recordedMs`: the length of the recording; 0: there is none. */
  | { kind: "over"; callId: number; summary: CallSummary; recordedMs: number };

/** The media thread, as the main thread sees it. */
export interface MediaThread {
  send(message: ToMedia): void;
  /** One handler; set before the first `send`. */
  onMessage(handler: (message: FromMedia) => void): void;
  /** Receives inbound calls; one handler. */
  onOffer(handler: (carrier: CarrierName, offer: Offer) => void): void;
  refuse(carrier: CarrierName, offerId: string, cause: RefusalCause): void;
  /**
   * Starts the thread if a carrier takes inbound calls, and keeps it running. Resolves to the SIP
   * ports, null without SIP; rejects when they cannot be opened.
   */
  listen(): Promise<{ port: number; tlsPort: number | null } | null>;
  /** Reads the trunks again after a change. */
  trunksChanged(): Promise<void>;
  /** Whether there is a place for one more call. */
  setRoom(hasRoom: boolean): void;
  /** Resolves once it has stopped. Calls that are live are lost. */
  close(): Promise<void>;
}
