// The media thread: live audio of all calls, so that nothing in the main thread ever delays a
// frame. Started by calls/media.ts.
import { parentPort, workerData } from "node:worker_threads";
import { createBeepDetector } from "#audio/tones.ts";
import { createAmbiences } from "#audio/ambience-thread.ts";
import { createStereoRecorder } from "#audio/wav.ts";
import type { Lateness, MediaWorkerData } from "#features/calls/media.ts";
import { createMediaClock } from "#features/calls/voice/clock.ts";
import { createHost } from "#features/calls/voice/host.ts";
import type { FromCarrier, ToCarrier, ToMedia } from "#features/calls/voice/protocol.ts";
import { createLogger, type LogLevel } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { preferThisThread } from "#core/thread-priority.ts";
import { openEngines } from "#providers/speech/opening.ts";
import { createAddressPolicy } from "#outbound/addresses.ts";
import { openCarrier } from "#providers/carriers/loopback-numbers.ts";
import { createPeerThread } from "#providers/carriers/web/peer-thread.ts";

const port = parentPort;
if (!port) throw new Error("workers/media.ts runs as a worker thread");
preferThisThread();
const { speech, logLevel, sip, reachableNetworks, peers } = workerData as MediaWorkerData;
const system = createSystem();
const log = createLogger(logLevel as LogLevel);
const engines = await openEngines(speech, { system, log });

const post = (message: FromCarrier | Lateness): void => port.postMessage(message);
/** SIP is loaded only where a port is set for it. */
const loadSip = () => import("#providers/carriers/sip/sip.ts");
const sipCarrier = sip && await (await loadSip()).createSipCarrier({
  ...sip,
  mayReach: createAddressPolicy(reachableNetworks).allows,
  onOffer: (offer) => post({ kind: "offer", carrier: "sip", offer }),
  system,
  log,
});
if (sipCarrier) post({ kind: "listening", port: sipCarrier.port, tlsPort: sipCarrier.tlsPort });

/** Ticks reported in one message: one every two seconds. */
const LATENESS_BATCH = 100;
const lateness: number[] = [];

const host = createHost({
  ...engines,
  ambience: createAmbiences(log),
  beeps: createBeepDetector,
  recorder: (file, rate) => {
    const recorder = createStereoRecorder({ file, rate });
    return {
      write: recorder.write,
      close: async () => (await recorder.close()).durationMs,
    };
  },
  carriers: [openCarrier({ engines, system }), ...(sipCarrier ? [sipCarrier] : [])],
  peers: peers && createPeerThread({ peers, logLevel }, log),
  clock: createMediaClock(system, (lateMs) => {
    lateness.push(lateMs);
    if (lateness.length < LATENESS_BATCH) return;
    post({ kind: "lateness", ms: lateness.splice(0) });
  }),
  system,
  log,
  post: (message, transfer) => port.postMessage(message, transfer ?? []),
});

port.on("message", (message: ToMedia | ToCarrier) => {
  switch (message.kind) {
    case "trunks":
      return sipCarrier?.setTrunks(message.trunks);
    case "room":
      return sipCarrier?.setRoom(message.hasRoom);
    case "refuse":
      return sipCarrier?.inbound.refuse(message.offerId, message.cause);
    case "close":
      return void sipCarrier?.close().finally(() => post({ kind: "closed" }));
    default:
      return host.receive(message);
  }
});
