// A server that speaks Deepgram's streaming recognition, `/v1/listen` and `/v2/listen`, and sends
// what a test tells it to. It recognises no speech. The vendor's own SDK connects to it in tests.
import { startVendorServer, type VendorPeer, type VendorServer } from "./vendor-socket-server.ts";

export interface ScriptedResult {
  text: string;
  isFinal?: boolean;
  fromFinalize?: boolean;
  /** Seconds; by default from the end of the last final result to the end of the audio. */
  start?: number;
  duration?: number;
  /** The languages of models that hear several, the most spoken first. */
  languages?: string[];
  words?: { word: string; punctuated_word?: string; start: number; end: number }[];
}

export type FluxEvent =
  "StartOfTurn" | "Update" | "EagerEndOfTurn" | "TurnResumed" | "EndOfTurn";

/** One connection. */
export interface DeepgramPeer extends VendorPeer {
  /** Types of the messages, e.g. `Finalize`. */
  controls: string[];
  result(result: ScriptedResult): void;
  turn(event: FluxEvent, transcript: string): void;
}

export interface DeepgramServer extends VendorServer<DeepgramPeer> {
  /** What a peer does when asked to finish; by default it sends an empty final result. */
  onFinalize(answer: (peer: DeepgramPeer) => void): void;
  /** What a peer does with audio; by default nothing. */
  onAudio(hear: (peer: DeepgramPeer, pcm: Int16Array) => void): void;
}

export async function startDeepgramServer(): Promise<DeepgramServer> {
  let finalize = (peer: DeepgramPeer): void =>
    peer.result({ text: "", isFinal: true, fromFinalize: true });
  let hear = (_peer: DeepgramPeer, _pcm: Int16Array): void => undefined;
  const server = await startVendorServer<DeepgramPeer>({
    made: peerOf,
    refusalHeaders: "dg-error: No such model\r\n",
    onOpen: (peer) => {
      if (isFlux(peer)) peer.send({ type: "Connected", request_id: REQUEST_ID, sequence_id: 0 });
    },
    onAudio: (peer, bytes) => {
      const pcm = new Int16Array(bytes.length >> 1);
      Buffer.from(pcm.buffer).set(bytes.subarray(0, pcm.byteLength));
      hear(peer, pcm);
    },
    onText: (peer, text) => {
      const { type } = JSON.parse(text) as { type: string };
      peer.controls.push(type);
      if (type === "Finalize") finalize(peer);
      if (type === "CloseStream") {
        if (!isFlux(peer)) peer.send(METADATA);
        peer.end(1000, "");
      }
    },
  });
  return {
    ...server,
    onFinalize: (answer) => (finalize = answer),
    onAudio: (next) => (hear = next),
  };
}

const isFlux = ({ path }: VendorPeer): boolean => path.startsWith("/v2");

function peerOf(bare: VendorPeer): DeepgramPeer {
  let finalS = 0;
  let sequence = 0;
  const seconds = (): number =>
    bare.audioBytes / 2 / Number(bare.query.get("sample_rate") ?? 16_000);
  return Object.assign(bare, {
    controls: [],
    result: (result: ScriptedResult) => {
      const start = result.start ?? finalS;
      const duration = result.duration ?? Math.max(0, seconds() - start);
      if (result.isFinal) finalS = start + duration;
      bare.send(resultsOf(result, start, duration));
    },
    turn: (event: FluxEvent, transcript: string) =>
      bare.send(turnOf(event, transcript, (sequence += 1), seconds())),
  });
}

const REQUEST_ID = "4c1f4d9e-7a9c-4a38-8f5a-6a1d0a4b9f10";

const METADATA = {
  type: "Metadata", transaction_key: "deprecated", request_id: REQUEST_ID, sha256: "0".repeat(64),
  created: "2026-01-15T12:00:00.000Z", duration: 1, channels: 1,
};

function resultsOf(result: ScriptedResult, start: number, duration: number): object {
  const {
    fromFinalize = false, isFinal = false, languages, text, words,
  } = result;
  const spoken = words ?? text.split(" ").filter((word) => word !== "").map((word, at) => {
    const startS = start + at * 0.3;
    return { word, punctuated_word: word, start: startS, end: startS + 0.3, confidence: 0.98 };
  });
  return {
    type: "Results",
    channel_index: [0, 1],
    start,
    duration,
    is_final: isFinal,
    speech_final: false,
    from_finalize: fromFinalize,
    channel: {
      alternatives: [{
        transcript: text, confidence: text === "" ? 0 : 0.98, words: spoken,
        ...(languages ? { languages } : {}),
      }],
    },
    metadata: {
      request_id: REQUEST_ID,
      model_uuid: REQUEST_ID,
      model_info: { name: "general-nova-3", version: "2026-01-01.0", arch: "nova-3" },
    },
  };
}

function turnOf(event: FluxEvent, transcript: string, sequence: number, endS: number): object {
  const words = transcript.split(" ").filter((word) => word !== "");
  return {
    type: "TurnInfo",
    request_id: REQUEST_ID,
    sequence_id: sequence,
    event,
    turn_index: 0,
    audio_window_start: 0,
    audio_window_end: endS,
    transcript,
    words: words.map((word) => ({ word, confidence: 0.9 })),
    end_of_turn_confidence: event === "EndOfTurn" ? 0.8 : 0.1,
    ...(event === "EndOfTurn" ? { trigger: "model" } : {}),
  };
}
