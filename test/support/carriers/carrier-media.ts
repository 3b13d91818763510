// One call on the media socket of each hosted carrier, in the messages of its documentation: what
// the carrier sends, what that means, and what has to be sent to it.
import { encodeClientState, type DialectName } from "#providers/carriers/hosted/dialect-table.ts";
import type { CarrierFrame } from "#providers/carriers/hosted/dialects.ts";

/** Mu-law codes and their samples, from ITU-T G.711: extremes, both zeros, one between. */
const MU_CODES = Buffer.from([0x00, 0x80, 0x7f, 0xff, 0x55]);
const MU_SAMPLES = Int16Array.of(-32124, 32124, 0, 0, -716);
export const PCM = Int16Array.of(-32124, 32124, 0, 256, -716);
export const LITTLE_ENDIAN = Buffer.from([0x84, 0x82, 0x7c, 0x7d, 0, 0, 0, 1, 0x34, 0xfd]);

export const json = (message: object) => JSON.stringify(message);
export const media = (bytes: Buffer, more: object = {}) => ({ payload: bytes.toString("base64"), ...more });

export interface Story {
  /** What the carrier sends, from before the start to the end. */
  messages: (string | Uint8Array)[];
  frames: CarrierFrame[];
  /** Null: there is no such message. */
  sent: { audio: unknown; clear: unknown; mark: unknown; dtmf: unknown };
}

const TWILIO: Story = {
  messages: [
    json({ event: "connected", protocol: "Call", version: "1.0.0" }),
    json({
      event: "start", sequenceNumber: "1", streamSid: "MZ1",
      start: {
        accountSid: "AC1", streamSid: "MZ1", callSid: "CA1", tracks: ["inbound"],
        mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 },
        customParameters: { token: "t" },
      },
    }),
    json({
      event: "media", sequenceNumber: "3", streamSid: "MZ1",
      media: media(MU_CODES, { track: "inbound", chunk: "1", timestamp: "5" }),
    }),
    json({
      event: "media", sequenceNumber: "4", streamSid: "MZ1",
      media: media(MU_CODES, { track: "outbound", chunk: "1", timestamp: "5" }),
    }),
    json({ event: "dtmf", streamSid: "MZ1", sequenceNumber: "5", dtmf: { track: "inbound_track", digit: "1" } }),
    json({ event: "mark", sequenceNumber: "6", streamSid: "MZ1", mark: { name: "heard" } }),
    json({ event: "stop", sequenceNumber: "7", streamSid: "MZ1", stop: { accountSid: "AC1", callSid: "CA1" } }),
  ],
  frames: [
    { kind: "ignored" },
    { kind: "start", streamId: "MZ1", callSid: "CA1", parameters: { token: "t" } },
    { kind: "audio", pcm: MU_SAMPLES },
    { kind: "ignored" },
    { kind: "dtmf", digit: "1" },
    { kind: "mark", name: "heard" },
    { kind: "stop" },
  ],
  sent: {
    audio: { event: "media", streamSid: "MZ1", media: { payload: "AID/51U=" } },
    clear: { event: "clear", streamSid: "MZ1" },
    mark: { event: "mark", streamSid: "MZ1", mark: { name: "a" } },
    dtmf: null,
  },
};

export const STORIES: Record<DialectName, Story> = {
  twilio: TWILIO,
  signalwire: TWILIO,
  telnyx: {
    messages: [
      json({ event: "connected", version: "1.0.0" }),
      json({
        event: "start", sequence_number: "1", stream_id: "32DE",
        start: {
          user_id: "3E6F", call_control_id: "v2:T02", call_session_id: "ff55",
          from: "+13122010094", to: "+13122123456", tags: ["TAG1"],
          client_state: encodeClientState({ token: "t" }), custom_parameters: { customer: "1" },
          media_format: { encoding: "PCMU", sample_rate: 8000, channels: 1 },
        },
      }),
      json({
        event: "media", sequence_number: "4", stream_id: "32DE",
        media: media(MU_CODES, { track: "inbound", chunk: "2", timestamp: "5" }),
      }),
      json({ event: "dtmf", stream_id: "32DE", occurred_at: "2026", sequence_number: "5", dtmf: { digit: "1" } }),
      json({ event: "mark", sequence_number: "5", stream_id: "32DE", mark: { name: "heard" } }),
      json({ event: "error", stream_id: "32DE", payload: { code: 100003, title: "malformed_frame" } }),
      json({ event: "stop", sequence_number: "6", stream_id: "32DE", stop: { call_control_id: "v2:T02" } }),
    ],
    frames: [
      { kind: "ignored" },
      {
        kind: "start", streamId: "32DE", callSid: "v2:T02", from: "+13122010094", to: "+13122123456",
        parameters: { token: "t", customer: "1" },
      },
      { kind: "audio", pcm: MU_SAMPLES },
      { kind: "dtmf", digit: "1" },
      { kind: "mark", name: "heard" },
      { kind: "ignored" },
      { kind: "stop" },
    ],
    sent: {
      audio: { event: "media", media: { payload: "AID/51U=" } },
      clear: { event: "clear" },
      mark: { event: "mark", mark: { name: "a" } },
      dtmf: null,
    },
  },
  plivo: {
    messages: [
      json({
        event: "start", sequenceNumber: 1,
        start: {
          callId: "1234", streamId: "8765", accountId: "MA1", tracks: ["inbound"],
          mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000 },
        },
        extra_headers: "token=t;customer=1",
      }),
      json({ event: "media", sequenceNumber: 2, streamId: "8765", media: media(MU_CODES, { track: "inbound", chunk: 1, timestamp: "1" }) }),
      json({ event: "dtmf", sequenceNumber: 3, streamId: "8765", dtmf: { track: "inbound", digit: "1", timestamp: "2" } }),
      json({ event: "playedStream", streamId: "8765", name: "heard" }),
      json({ event: "clearedAudio", streamId: "8765" }),
      json({ event: "stop", streamId: "8765" }),
    ],
    frames: [
      { kind: "start", streamId: "8765", callSid: "1234", parameters: { token: "t", customer: "1" } },
      { kind: "audio", pcm: MU_SAMPLES },
      { kind: "dtmf", digit: "1" },
      { kind: "mark", name: "heard" },
      { kind: "cleared" },
      { kind: "stop" },
    ],
    sent: {
      audio: {
        event: "playAudio", streamId: "8765",
        media: { contentType: "audio/x-mulaw", sampleRate: 8000, payload: "AID/51U=" },
      },
      clear: { event: "clearAudio", streamId: "8765" },
      mark: { event: "checkpoint", streamId: "8765", name: "a" },
      dtmf: { event: "sendDTMF", dtmf: "12#" },
    },
  },
  vonage: {
    messages: [
      json({ event: "websocket:connected", "content-type": "audio/l16;rate=16000", token: "t" }),
      LITTLE_ENDIAN,
      json({ event: "websocket:dtmf", digit: "1", duration: 260 }),
      json({ event: "websocket:notify", payload: { name: "heard" } }),
      json({ event: "websocket:cleared" }),
    ],
    frames: [
      {
        kind: "start", streamId: null, callSid: null,
        parameters: { event: "websocket:connected", "content-type": "audio/l16;rate=16000", token: "t" },
      },
      { kind: "audio", pcm: PCM },
      { kind: "dtmf", digit: "1" },
      { kind: "mark", name: "heard" },
      { kind: "cleared" },
    ],
    sent: {
      audio: LITTLE_ENDIAN,
      clear: { action: "clear" },
      mark: { action: "notify", payload: { name: "a" } },
      dtmf: null,
    },
  },
  asterisk: {
    messages: [
      json({
        event: "MEDIA_START", connection_id: "c1", channel: "WebSocket/parley/0x7f1c", channel_id: "parley-media-1",
        format: "slin16", optimal_frame_size: 640, ptime: 20, channel_variables: { token: "t" },
      }),
      LITTLE_ENDIAN,
      json({ event: "DTMF_END", channel_id: "parley-media-1", digit: "1" }),
      json({ event: "MEDIA_MARK_PROCESSED", channel_id: "parley-media-1", correlation_id: "heard" }),
      json({ event: "MEDIA_XOFF", channel_id: "parley-media-1" }),
    ],
    frames: [
      { kind: "start", streamId: "c1", callSid: null, parameters: { token: "t" } },
      { kind: "audio", pcm: PCM },
      { kind: "dtmf", digit: "1" },
      { kind: "mark", name: "heard" },
      { kind: "ignored" },
    ],
    sent: {
      audio: LITTLE_ENDIAN,
      clear: { command: "FLUSH_MEDIA" },
      mark: { command: "MARK_MEDIA", correlation_id: "a" },
      dtmf: null,
    },
  },
};
