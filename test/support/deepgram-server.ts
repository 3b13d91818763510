// A server that speaks Deepgram's streaming recognition, `/v1/listen` and `/v2/listen`, and says
// what a test tells it to. It understands no speech. The vendor's own SDK connects to it in tests.
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";

export interface ScriptedResult {
  text: string;
  isFinal?: boolean;
  fromFinalize?: boolean;
  /** Seconds; unless told, from the end of the last final result to the end of the audio. */
  start?: number;
  duration?: number;
  /** The languages of models that hear several, the most spoken first. */
  languages?: string[];
  words?: { word: string; punctuated_word?: string; start: number; end: number }[];
}

export type FluxEvent =
  "StartOfTurn" | "Update" | "EagerEndOfTurn" | "TurnResumed" | "EndOfTurn";

/** One connection. */
export interface DeepgramPeer {
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  /** Bytes of audio, and the sizes of the messages they came in. */
  audioBytes: number;
  chunkBytes: number[];
  /** Types of the messages, e.g. `Finalize`. */
  controls: string[];
  isClosed: boolean;
  result(result: ScriptedResult): void;
  turn(event: FluxEvent, transcript: string): void;
  /** As it is; a Buffer goes as a binary message. */
  send(data: string | Buffer): void;
  /** Without a closing frame. */
  cut(): void;
  end(code: number, reason: string): void;
  /** Stops reading, and answering pings. */
  freeze(): void;
  /** Resolves once it holds; looked at whenever something comes in. */
  until(holds: (peer: DeepgramPeer) => boolean): Promise<void>;
}

export interface DeepgramServer {
  /** `ws://…` */
  url: string;
  /** In order of arrival. */
  peers: DeepgramPeer[];
  /** The connection of that number, from 0, once it is there. */
  peer(number: number): Promise<DeepgramPeer>;
  /** Answers handshakes with this status instead; null takes them again. */
  refuse(status: number | null): void;
  /** What a peer does when asked to finish; at first an empty final result. */
  onFinalize(answer: (peer: DeepgramPeer) => void): void;
  /** What a peer makes of audio; at first nothing. */
  onAudio(hear: (peer: DeepgramPeer, pcm: Int16Array) => void): void;
  close(): Promise<void>;
}

interface Waiter {
  holds(): boolean;
  resolve(): void;
}

export async function startDeepgramServer(): Promise<DeepgramServer> {
  const peers: DeepgramPeer[] = [];
  let status: number | null = null;
  let waiting: Waiter[] = [];
  let finalize = (peer: DeepgramPeer): void =>
    peer.result({ text: "", isFinal: true, fromFinalize: true });
  let hear = (_peer: DeepgramPeer, _pcm: Int16Array): void => undefined;
  const look = (): void => {
    for (const waiter of waiting.filter(({ holds }) => holds())) {
      waiting = waiting.filter((other) => other !== waiter);
      waiter.resolve();
    }
  };
  const until = (holds: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      if (holds()) resolve();
      else waiting.push({ holds, resolve });
    });

  const server = createServer((_, response) => response.writeHead(404).end());
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 4 * 1024 * 1024 });
  server.on("upgrade", (request, socket, head) => {
    if (status !== null) {
      socket.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 0\r\nconnection: close\r\n`
        + "dg-error: No such model\r\n\r\n");
      return;
    }
    sockets.handleUpgrade(request, socket, head, (connection) => {
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://deepgram");
      const peer = createPeer({
        connection, path: pathname, query: searchParams, headers: request.headers, until, look,
        finalize: (asking) => finalize(asking), hear: (heard, pcm) => hear(heard, pcm),
      });
      peers.push(peer);
      look();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    peers,
    peer: async (number) => {
      await until(() => peers.length > number);
      return peers[number]!;
    },
    refuse: (next) => (status = next),
    onFinalize: (answer) => (finalize = answer),
    onAudio: (next) => (hear = next),
    close: async () => {
      for (const connection of sockets.clients) connection.terminate();
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

interface PeerOptions {
  connection: WebSocket;
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  until(holds: () => boolean): Promise<void>;
  look(): void;
  finalize(peer: DeepgramPeer): void;
  hear(peer: DeepgramPeer, pcm: Int16Array): void;
}

function createPeer(options: PeerOptions): DeepgramPeer {
  const { connection, look, query, until } = options;
  const isFlux = options.path.startsWith("/v2");
  let finalS = 0;
  let sequence = 0;
  const seconds = (): number => peer.audioBytes / 2 / Number(query.get("sample_rate") ?? 16_000);
  const send = (message: object): void => connection.send(JSON.stringify(message));
  const peer: DeepgramPeer = {
    path: options.path,
    query,
    headers: options.headers,
    audioBytes: 0,
    chunkBytes: [],
    controls: [],
    isClosed: false,
    result: (result) => {
      const start = result.start ?? finalS;
      const duration = result.duration ?? Math.max(0, seconds() - start);
      if (result.isFinal) finalS = start + duration;
      send(resultsOf(result, start, duration));
    },
    turn: (event, transcript) => send(turnOf(event, transcript, (sequence += 1), seconds())),
    send: (data) => connection.send(data),
    cut: () => connection.terminate(),
    end: (code, reason) => connection.close(code, reason),
    freeze: () => connection.pause(),
    until: (holds) => until(() => holds(peer)),
  };
  connection.on("message", (data: Buffer, isBinary) => {
    if (isBinary) {
      peer.audioBytes += data.length;
      peer.chunkBytes.push(data.length);
      const pcm = new Int16Array(data.length >> 1);
      Buffer.from(pcm.buffer).set(data.subarray(0, pcm.byteLength));
      options.hear(peer, pcm);
    } else {
      const { type } = JSON.parse(data.toString()) as { type: string };
      peer.controls.push(type);
      if (type === "Finalize") options.finalize(peer);
      if (type === "CloseStream") {
        if (!isFlux) send(METADATA);
        connection.close(1000);
      }
    }
    look();
  });
  connection.on("close", () => {
    peer.isClosed = true;
    look();
  });
  // Reported by "close" as well.
  connection.on("error", look);
  if (isFlux) send({ type: "Connected", request_id: REQUEST_ID, sequence_id: 0 });
  return peer;
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
